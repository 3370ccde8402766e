//! The kernel on a separate `/boot` partition.

use vmbake_image::grub;

use super::*;

const MENU: &str = "menuentry 'Debian' {\n\tlinux /vmlinuz-6.1 root=x ro\n\tinitrd /initrd.img-6.1\n}\n";

fn boot_files() -> [(&'static str, &'static str); 3] {
    [("grub/grub.cfg", MENU), ("vmlinuz-6.1", "kernel"), ("initrd.img-6.1", "initrd")]
}

#[test]
fn a_separate_boot_is_found() {
    if !have(&["sgdisk", "mke2fs"]) {
        return;
    }
    let lab = Lab::new();
    let bytes = lab.ext4("bootfs", &boot_files());
    // What another disk of the same kind would have: its menu counts only where nothing says which one does.
    let decoy = lab.ext4("decoy", &boot_files());
    let uuid: String = bytes[1024 + 0x68..][..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let uuid = [&uuid[..8], &uuid[8..12], &uuid[12..16], &uuid[16..20], &uuid[20..]].join("-");
    for (spec, with_decoy) in [
        (format!("UUID={uuid}"), true),
        ("LABEL=\"bootfs\"".to_owned(), true),
        ("PARTLABEL=slot-1".to_owned(), true),
        (format!("/dev/disk/by-uuid/{uuid}"), true),
        ("/dev/vda1".to_owned(), true),
        ("# none".to_owned(), false),
    ] {
        let fstab = format!("# comment\nUUID=x / ext4 defaults 0 1\n{spec} /boot ext4 defaults 0 2\n");
        let root =
            lab.ext4("root", &[("etc/os-release", "PRETTY_NAME=apart\n"), ("etc/fstab", &fstab), ("boot/.k", "")]);
        let mut parts: Vec<(&str, &[u8])> = vec![("8300", &bytes), ("8304", &root)];
        parts.extend(with_decoy.then_some(("8300", &decoy[..])));
        let disk = lab.gpt("disk.raw", &parts);
        let report = lab.json(&["inspect", "--json", "disk.raw"]);
        assert_eq!(report["system"]["kernels"], serde_json::json!(["6.1"]), "{spec}");
        assert_eq!(report["system"]["command_line"], "root=x ro");
        let found = grub::read(&disk, None).unwrap();
        assert_eq!((found.kernel.partition, found.kernel.path.as_str()), (1, "/vmlinuz-6.1"), "{spec}");
        assert_eq!((found.initrd.partition, found.initrd.path.as_str()), (1, "/initrd.img-6.1"));
        assert_eq!(found.kernel.digest, vmbake_common::digest::Digest::of(b"kernel"));
    }
}

#[test]
fn the_root_has_its_own_menu() {
    if !have(&["sgdisk", "mke2fs"]) {
        return;
    }
    let lab = Lab::new();
    let menu = MENU.replace(" /", " /boot/");
    let files = [("boot/grub/grub.cfg", &menu[..]), ("boot/vmlinuz-6.1", "own"), ("boot/initrd.img-6.1", "")];
    let (root, other) = (lab.ext4("root", &files), lab.ext4("other", &boot_files()));
    let disk = lab.gpt("disk.raw", &[("8304", &root), ("8300", &other)]);
    let found = grub::read(&disk, None).unwrap();
    assert_eq!((found.kernel.partition, found.kernel.path.as_str()), (1, "/boot/vmlinuz-6.1"));
    // Two other partitions with a menu are ambiguous.
    let disk = lab.gpt("none.raw", &[("8304", &lab.ext4("root", &[])), ("8300", &other), ("8300", &other)]);
    let error = grub::read(&disk, None).unwrap_err().to_string();
    assert_eq!(error, format!("{}: cannot read /boot/grub/grub.cfg", disk.display()));
    let disk = lab.gpt("ab.raw", &[("8304", &root), ("8304", &root)]);
    assert!(grub::read(&disk, None).is_err());
    assert_eq!(grub::read(&disk, Some(2)).unwrap().kernel.partition, 2);
}
