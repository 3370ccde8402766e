//! Partition tables of all types, and none.

use super::*;

const TOOLS: [&str; 4] = ["sgdisk", "mke2fs", "mkfs.vfat", "sfdisk"];

#[test]
fn partitions_of_an_mbr_are_read() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    File::create(lab.path("disk.raw")).unwrap().set_len(64 << 20).unwrap();
    fs::write(
        lab.path("script"),
        "label: dos\nlabel-id: 0x1234abcd\nstart=2048,size=16384,type=83\nstart=18432,size=16384,type=ef\n\
         start=34816,size=60000,type=5\nstart=36864,size=16384,type=83\nstart=55296,size=16384,type=82\n",
    )
    .unwrap();
    run("sh", &["-c", &format!("cd {} && sfdisk --quiet disk.raw < script", lab.0.path().display())]);
    let disk = lab.path("disk.raw");
    put(&disk, 2048 * 512, &lab.system("mbr"));
    put(&disk, 18432 * 512, &lab.formatted("mkfs.vfat", &["-n", "ESP"], 8 << 20));
    put(&disk, 36864 * 512, &lab.ext4("data", &[("etc/hostname", "logical")]));

    let report = lab.json(&["inspect", "--json", "disk.raw"]);
    assert_eq!((&report["table"], &report["root"]), (&"mbr".into(), &1.into()));
    assert_eq!((&report["disk_signature"], &report["disk_guid"]), (&"1234abcd".into(), &Value::Null));
    assert_eq!(report["system"]["pretty_name"], "mbr");
    let parts = report["partitions"].as_array().unwrap();
    let found: Vec<_> = parts.iter().map(|part| (part["number"].as_u64(), part["type_id"].as_str())).collect();
    let expected = [(1, "83"), (2, "ef"), (3, "05"), (5, "83"), (6, "82")];
    assert_eq!(found, expected.map(|(number, id)| (Some(number), Some(id))));
    assert_eq!((&parts[3]["guid"], &parts[3]["filesystem"]["label"]), (&"1234abcd-05".into(), &"data".into()));
    let text = lab.says(&["inspect", "disk.raw"]);
    for line in
        ["disk id       1234abcd, MBR partition table", "partition 5   Linux, 8.0 MiB at 18.0 MiB, id 1234abcd-05"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }

    // Only the first has a system.
    assert_eq!(lab.says(&["cat", "disk.raw", "/etc/hostname"]), "mbr");
    assert_eq!(lab.says(&["cat", "disk.raw", "/etc/hostname", "--partition", "5"]), "logical");
    assert_eq!(lab.says(&["ls", "disk.raw", "/", "--partition", "2"]), "");
    assert!(lab.says(&["inspect", "disk.raw", "--partition", "5"]).contains("system        none"));
    assert_eq!(lab.says(&["diff", "disk.raw", "disk.raw", "--partition", "5"]), "");
    let linted = lab.vmbake(&["lint", "disk.raw", "--partition", "5"]);
    assert!(String::from_utf8(linted.stdout).unwrap().contains("image-name"), "linted");
    let blocks = lab.says(&["diff", "--blocks", "disk.raw", "disk.raw"]);
    assert!(!blocks.contains("not known"), "{blocks}");
}

#[test]
fn a_file_system_needs_no_table() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    fs::write(lab.path("root.img"), lab.system("bare")).unwrap();
    fs::write(lab.path("esp.img"), lab.formatted("mkfs.vfat", &["-n", "ESP"], 8 << 20)).unwrap();
    let report = lab.json(&["inspect", "--json", "root.img"]);
    assert_eq!((&report["table"], &report["root"]), (&"none".into(), &0.into()));
    assert_eq!((&report["system"]["pretty_name"], &report["notes"]), (&"bare".into(), &Value::Array(Vec::new())));
    assert!(lab.says(&["inspect", "esp.img"]).contains("partition 0   whole disk, 8.0 MiB at 0 B\n"));
    for chosen in [&[][..], &["--partition", "0"]] {
        let with = |args: &[&'static str]| [args, chosen].concat();
        assert_eq!(lab.says(&with(&["cat", "root.img", "/etc/hostname"])), "bare");
        assert!(lab.says(&with(&["ls", "-R", "root.img"])).contains(" /etc/os-release\n"));
        assert_eq!(lab.says(&with(&["ls", "esp.img"])), "");
        assert_eq!(lab.says(&with(&["diff", "root.img", "root.img"])), "");
        let linted = lab.vmbake(&with(&["lint", "root.img"]));
        assert!(String::from_utf8(linted.stdout).unwrap().contains("image-name"));
    }
    let (error, hint) = lab.refuses(&["ls", "root.img", "--partition", "1"]);
    assert_eq!(error, "root.img: no partition 1 on the disk, it has 0");
    assert_eq!(hint, "`vmbake inspect root.img` lists the partitions");
}

#[test]
fn of_several_roots_one_is_chosen() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    let (a, b) = (lab.system("a"), lab.system("b"));
    lab.gpt("ab.raw", &[("8304", &a), ("8304", &b)]);
    let list = "several partitions can be the root file system: 1 (\"slot-1\", 8.0 MiB, ext4 labelled \"a\"), 2 (\"slot-2\", 8.0 MiB, ext4 labelled \"b\")";
    let report = lab.json(&["inspect", "--json", "ab.raw"]);
    assert_eq!((&report["notes"][0], &report["root"]), (&list.into(), &Value::Null));
    for args in [
        &["ls", "ab.raw"][..],
        &["cat", "ab.raw", "/etc/hostname"],
        &["lint", "ab.raw"],
        &["explain", "ab.raw", "/etc/hostname"],
    ] {
        let hint = "use --partition N to choose one";
        assert_eq!(lab.refuses(args), (format!("ab.raw: {list}"), hint.to_owned()), "{args:?}");
    }
    assert_eq!(lab.refuses(&["diff", "ab.raw", "ab.raw"]).0, "ab.raw: cannot be compared");

    for (number, name) in [("1", "a"), ("2", "b")] {
        let choose = ["--partition", number];
        assert_eq!(lab.says(&[&["cat", "ab.raw", "/etc/hostname"], &choose[..]].concat()), name);
        let report = lab.json(&[&["inspect", "--json", "ab.raw"], &choose[..]].concat());
        assert_eq!((&report["system"]["pretty_name"], report["root"].to_string()), (&name.into(), number.to_owned()));
        assert!(lab.says(&[&["explain", "ab.raw", "/etc/hostname"], &choose[..]].concat()).contains("/etc/hostname"));
        assert_eq!(lab.says(&[&["diff", "ab.raw", "ab.raw"], &choose[..]].concat()), "");
    }
    // One option for both images: slot 2 of another disk.
    lab.gpt("ba.raw", &[("8304", &b), ("8304", &a)]);
    let differ = lab.vmbake(&["diff", "ab.raw", "ba.raw", "--partition", "2"]);
    assert_eq!(differ.status.code(), Some(1));
    assert!(String::from_utf8(differ.stdout).unwrap().contains("changed /etc/hostname"));
}
