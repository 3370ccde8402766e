//! Unreadable parts are named, and the rest is shown.

use super::*;

#[test]
fn inspect_tells_what_it_can_of_any_root() {
    if !have(&["sgdisk", "mke2fs", "mkfs.vfat", "mkfs.xfs", "mkfs.btrfs", "mkswap"]) {
        return;
    }
    let lab = Lab::new();
    let uuid = "11111111-2222-3333-4444-555555555555";
    let mut damaged = lab.ext4("lab", &[]);
    // The superblock's checksum tells.
    damaged[1024 + 0x20] ^= 1;
    let mut luks = vec![0; PART];
    luks[..8].copy_from_slice(b"LUKS\xba\xbe\0\x02");
    let mut unknown = vec![0; PART];
    unknown[..7].copy_from_slice(b"unknown");
    let only = "unsupported file system, only ext2, ext3, ext4 and FAT can be read";
    for (content, kind, label, reason) in [
        (lab.formatted("mkfs.xfs", &["-q", "-L", "lab"], 320 << 20), "xfs", "lab", format!("xfs: {only}")),
        (lab.formatted("mkfs.btrfs", &["-q", "-L", "lab"], 128 << 20), "btrfs", "lab", format!("btrfs: {only}")),
        (lab.formatted("mkswap", &["-L", "lab", "-U", uuid], 1 << 20), "swap", "lab", "swap space has no files".into()),
        (luks, "LUKS", "", "encrypted (LUKS): its contents are unreadable without the key".into()),
        (damaged, "ext4", "lab", "corrupt ext4 volume: superblock: checksum".into()),
        (unknown, "", "", "unknown file system".into()),
    ] {
        let esp = lab.formatted("mkfs.vfat", &["-n", "ESP"], 4 << 20);
        lab.gpt("disk.raw", &[("8304", &content), ("EF00", &esp)]);
        let report = lab.json(&["inspect", "--json", "disk.raw"]);
        let (root, esp) = (&report["partitions"][0], &report["partitions"][1]);
        assert_eq!((&report["arch"], &report["root"], &report["system"]), (&"amd64".into(), &1.into(), &Value::Null));
        let note = report["notes"][0].as_str().unwrap();
        assert!(note.starts_with("unknown operating system: partition 1: ") && note.contains(&reason), "{note}");
        assert_eq!((root["name"].as_str(), esp["filesystem"]["label"].as_str()), (Some("slot-1"), Some("ESP")));
        if kind.is_empty() {
            assert_eq!((&root["filesystem"], &root["unread"]), (&Value::Null, &Value::Null));
        } else {
            assert_eq!((&root["filesystem"]["kind"], &root["filesystem"]["label"]), (&kind.into(), &label.into()));
            assert!(root["unread"].as_str().unwrap().starts_with(&reason), "{root}");
            let text = lab.says(&["inspect", "disk.raw"]);
            assert!(text.contains(&format!("              not read: {reason}")), "{text}");
        }
        // The other partition is read all the same; the root is refused by every query, by the file's name.
        assert_eq!(lab.says(&["ls", "disk.raw", "/", "--partition", "2"]), "");
        for command in [&["ls"][..], &["lint"], &["cat", "/x"], &["explain", "/x"]] {
            let (error, _) = lab.refuses(&[&command[..1], &["disk.raw"], &command[1..]].concat());
            assert!(error.starts_with("disk.raw: partition 1: "), "{command:?}: {error}");
        }
    }
    let (error, hint) = lab.refuses(&["ls", "disk.raw"]);
    assert_eq!(error, "disk.raw: partition 1: unknown file system");
    assert_eq!(
        hint,
        "use --partition N to choose another partition; `vmbake inspect disk.raw` lists the contents of each"
    );
}

#[test]
fn every_query_names_the_file_and_a_command() {
    if !have(&["qemu-img", "sgdisk", "mke2fs"]) {
        return;
    }
    let lab = Lab::new();
    lab.gpt("disk.raw", &[("8304", &lab.system("root"))]);
    let qemu = |args: &[&str]| {
        run("sh", &["-c", &format!("cd {} && qemu-img {}", lab.0.path().display(), args.join(" "))]);
    };
    qemu(&["convert -O vmdk disk.raw disk.vmdk"]);
    qemu(&["create -q -f qcow2 -F raw -b disk.raw top.qcow2"]);
    qemu(&["convert -O qcow2 -o data_file=data.raw disk.raw outside.qcow2"]);
    // qemu-img makes no LUKS header on a busy machine; `crypt_method` (offset 32) says that there is one.
    qemu(&["convert -O qcow2 disk.raw locked.qcow2"]);
    let mut locked = fs::read(lab.path("locked.qcow2")).unwrap();
    locked[35] = 2;
    fs::write(lab.path("locked.qcow2"), locked).unwrap();
    fs::write(lab.path("sums"), "0000  disk.raw\n").unwrap();
    fs::write(lab.path("zeros"), vec![0; 1 << 20]).unwrap();
    fs::write(lab.path("half.raw"), &fs::read(lab.path("disk.raw")).unwrap()[..4 << 20]).unwrap();
    let (volume, at) = (&mut vec![0; 64 << 10], 0x8001);
    volume[at..at + 5].copy_from_slice(b"CD001");
    fs::write(lab.path("cd.iso"), volume).unwrap();
    for (file, text, command) in [
        (
            "disk.vmdk",
            "a VMware disk image (vmdk); only raw and qcow2 disk images are supported",
            "qemu-img convert -f vmdk -O qcow2 disk.vmdk disk.qcow2",
        ),
        ("top.qcow2", "qcow2 image with a backing file", "qemu-img convert -O qcow2"),
        ("outside.qcow2", "qcow2 image with an external data file", "qemu-img convert -O qcow2"),
        ("locked.qcow2", "qcow2 image with encryption", "qemu-img convert --image-opts"),
        ("sums", "a text file; only raw and qcow2 disk images are supported", "`head sums`"),
        ("zeros", "neither a partition table nor a known file system", "`qemu-img info zeros`"),
        ("half.raw", "both copies of the partition table are invalid", "`sgdisk --verify half.raw`"),
        (
            "cd.iso",
            "iso9660: unsupported file system, only ext2, ext3, ext4 and FAT can be read",
            "xorriso -osirrox on -indev cd.iso",
        ),
    ] {
        for query in [&["ls"][..], &["lint"], &["inspect"], &["cat", "/x"], &["explain", "/x"]] {
            // A medium without a table is a disk with one file system.
            if file == "cd.iso" && query == ["inspect"] {
                assert!(
                    lab.says(&["inspect", file]).contains(
                        "not read: iso9660: unsupported file system, only ext2, ext3, ext4 and FAT can be read"
                    )
                );
                continue;
            }
            let (error, hint) = lab.refuses(&[&query[..1], &[file], &query[1..]].concat());
            assert!(error.starts_with(&format!("{file}: ")) && error.contains(text), "{query:?}: {error}");
            assert!(error.contains(command) || hint.contains(command), "{query:?}: {error}: {hint}");
        }
        let (error, hint) = lab.refuses(&["diff", file, "disk.raw"]);
        assert_eq!(error, format!("{file}: cannot be compared"));
        assert!(text.starts_with("qcow2") || hint.contains(command), "{hint}");
    }
    // Its table of clusters leads out of the file.
    qemu(&["convert -O qcow2 disk.raw torn.qcow2"]);
    let table = u64::from_be_bytes(fs::read(lab.path("torn.qcow2")).unwrap()[40..48].try_into().unwrap());
    put(&lab.path("torn.qcow2"), usize::try_from(table).unwrap(), &(1u64 << 63 | 1 << 40).to_be_bytes());
    let output = lab.vmbake(&["inspect", "torn.qcow2"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: torn.qcow2: corrupt qcow2 image: "), "{said}");
    let (error, _) = lab.refuses(&["cat", "disk.raw", "/absent"]);
    assert!(error.starts_with("disk.raw: /absent"), "{error}");
    assert!(
        lab.refuses(&["cat", "disk.raw", "/etc"])
            .0
            .starts_with("disk.raw: /etc: expected a regular file, found a directory")
    );
    assert!(lab.refuses(&["ls", "disk.raw", "/absent"]).0.starts_with("disk.raw: /absent"));
}
