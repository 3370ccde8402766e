//! The volume for cloud-init.

use super::*;

const TOOLS: [&str; 4] = ["sgdisk", "qemu-system-x86_64", "fsck.vfat", "mtype"];

/// The volume that a machine with these files has.
fn seed(lab: &Lab, args: &[&str]) -> PathBuf {
    let machine = lab.machine(&[&["disk.raw"], args].concat());
    let copy = lab.path("seed.img");
    fs::copy(machine.file("seed"), &copy).unwrap();
    run("fsck.vfat", &["-n", copy.to_str().unwrap()]);
    copy
}

fn listed(seed: &Path, name: &str) -> Vec<u8> {
    let output = Command::new("mtype").arg("-i").arg(seed).arg(format!("::/{name}")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn cloud_init_gets_the_files_of_any_size() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    // FAT12, the border to FAT16, the most that is taken.
    for len in [14, 1 << 20, (2 << 20) - 1, 2 << 20, 16 << 20] {
        let mut text = b"#cloud-config\n".to_vec();
        text.extend((text.len()..len).map(|i| b"# ab\n"[i % 5]));
        lab.write("user", &text);
        lab.write("net", "version: 2\n");
        let seed = seed(&lab, &["--user-data", "user", "--network-config", "net"]);
        let image = seed.to_str().unwrap();
        assert!(run("mlabel", &["-s", "-i", image, "::"]).contains("CIDATA"));
        let names = run("mdir", &["-b", "-i", image, "::"]);
        assert_eq!(names.lines().collect::<Vec<_>>(), ["::/user-data", "::/meta-data", "::/network-config"]);
        assert!(listed(&seed, "user-data") == text, "{len}");
        assert_eq!(listed(&seed, "network-config"), b"version: 2\n");
    }
    lab.write("user", [b"#!".as_slice(), &[b'x'; (16 << 20) - 1]].concat());
    let said = lab.command(&["disk.raw", "--user-data", "user"]).output().unwrap().stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("error: user: 16777217 bytes, more than the limit of 16777216"), "{said}");
}

#[test]
fn the_instance_is_what_its_data_are() {
    if !have(&TOOLS) {
        return;
    }
    let lab = Lab::new();
    lab.write("a", "#cloud-config\nhostname: a\n");
    lab.write("b", "#cloud-config\nhostname: b\n");
    lab.write("key.pub", "# mine\nssh-ed25519 AAAA me@\"here\"\n\n");
    lab.write("meta", "instance-id: i-1\n");
    let bytes = |args: &[&str]| fs::read(seed(&lab, args)).unwrap();
    let of_a = bytes(&["--user-data", "a"]);
    assert!(bytes(&["--user-data", "a"]) == of_a, "the same data give the same bytes");
    let id = |args: &[&str]| {
        let text = String::from_utf8(listed(&seed(&lab, args), "meta-data")).unwrap();
        text.lines().next().unwrap().strip_prefix("instance-id: ").unwrap().to_owned()
    };
    let ids = [&["--user-data", "a"][..], &["--user-data", "b"], &[], &["--ssh-key", "key.pub"]].map(id);
    assert!((1..ids.len()).all(|i| !ids[..i].contains(&ids[i])), "{ids:?}");
    assert_eq!(id(&["--user-data", "a", "--meta-data", "meta"]), "i-1");
    let keys = listed(&seed(&lab, &["--ssh-key", "key.pub"]), "user-data");
    let keys: Value = serde_json::from_slice(keys.strip_prefix(b"#cloud-config\n").unwrap()).unwrap();
    assert_eq!(keys["ssh_authorized_keys"], serde_json::json!(["ssh-ed25519 AAAA me@\"here\""]));
    assert_eq!(listed(&seed(&lab, &[]), "user-data"), b"#cloud-config\n{}\n");
    lab.write("text", "hostname: a\n");
    let said = lab.command(&["disk.raw", "--user-data", "text"]).output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("start with \"hostname: a\"") && said.contains("hint: the first line"), "{said}");
}
