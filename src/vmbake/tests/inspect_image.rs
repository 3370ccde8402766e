//! Inspection of an image made by sgdisk, mke2fs and mkfs.vfat, as raw and as qcow2, and of damaged ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use vmbake_disk::gpt::GptError;
use vmbake_disk::layout::LayoutError;
use vmbake_image::disk::InspectError;
use vmbake_image::inspect::{inspect, open_tree};

use crate::tools::have;

const SECTOR: u64 = 512;
const TOOLS: [&str; 5] = ["sgdisk", "mke2fs", "mkfs.vfat", "mcopy", "qemu-img"];

fn run(program: &str, args: &[&str]) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(args).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A disk as Debian's cloud images: p14 BIOS boot, p15 ESP, p1 root.
fn image(dir: &Path) -> PathBuf {
    let root = dir.join("root");
    for (path, content) in [
        ("usr/lib/os-release", "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nIMAGE_ID=node\nIMAGE_VERSION=1.2\n"),
        ("boot/vmlinuz-6.12.1-cloud-amd64", "kernel"),
        (
            "boot/grub/grub.cfg",
            "menuentry 'Debian' {\n\tlinux /boot/vmlinuz-6.12.1-cloud-amd64 root=PARTUUID=x ro\n}\n",
        ),
        ("etc/hostname", "node\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    std::os::unix::fs::symlink("../usr/lib/os-release", root.join("etc/os-release")).unwrap();
    let disk = dir.join("disk.raw");
    fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    let text = disk.to_str().unwrap();
    let sgdisk = [
        "--disk-guid=01234567-89AB-CDEF-0123-456789ABCDEF",
        "--new=14:2048:8191",
        "--typecode=14:EF02",
        "--new=15:8192:24575",
        "--typecode=15:EF00",
        "--change-name=15:efi",
        "--new=1:24576:129023",
        "--typecode=1:8304",
        "--partition-guid=1:00000000-0000-4000-8000-000000000001",
        text,
    ];
    run("sgdisk", &sgdisk);
    let ext4 = dir.join("ext4.img");
    let uuid = "11111111-2222-3333-4444-555555555555";
    let (from, to) = (root.to_str().unwrap(), ext4.to_str().unwrap());
    run("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "-U", uuid, "-L", "rootfs", "-d", from, to, "52224k"]);
    let esp = dir.join("esp.img");
    run("mkfs.vfat", &["-C", "-F", "16", "-s", "2", "-n", "EFI", "-i", "CAFE1234", esp.to_str().unwrap(), "8192"]);
    run("mcopy", &["-i", esp.to_str().unwrap(), root.join("etc/hostname").to_str().unwrap(), "::/readme.txt"]);
    let mut bytes = fs::read(&disk).unwrap();
    for (start, part) in [(24576 * SECTOR, ext4), (8192 * SECTOR, esp)] {
        let (start, part) = (usize::try_from(start).unwrap(), fs::read(part).unwrap());
        bytes[start..start + part.len()].copy_from_slice(&part);
    }
    fs::write(&disk, bytes).unwrap();
    disk
}

#[test]
fn tells_what_an_image_is() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let raw = image(dir.path());
    let qcow2 = dir.path().join("disk.qcow2");
    run("qemu-img", &["convert", "-c", "-O", "qcow2", raw.to_str().unwrap(), qcow2.to_str().unwrap()]);
    for (path, format) in [(&raw, "raw"), (&qcow2, "qcow2")] {
        let report = inspect(path, None).unwrap();
        let size = fs::metadata(path).unwrap().len();
        assert_eq!((report.format.as_str(), report.virtual_size, report.file_size), (format, 64 << 20, size));
        assert_eq!((report.arch, report.root, report.notes.len()), (Some("amd64"), Some(1), 0));
        let system = report.system.as_ref().unwrap();
        assert_eq!(system.pretty_name.as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!((system.image_id.as_deref(), system.image_version.as_deref()), (Some("node"), Some("1.2")));
        assert_eq!(system.kernels, ["6.12.1-cloud-amd64"]);
        assert_eq!(system.command_line.as_deref(), Some("root=PARTUUID=x ro"));
        let numbers: Vec<_> = report.partitions.iter().map(|partition| partition.number).collect();
        assert_eq!(numbers, [1, 14, 15]);
        let root = &report.partitions[0];
        assert_eq!((root.start, root.size), (24576 * SECTOR, 104_448 * SECTOR));
        assert_eq!(root.guid, "00000000-0000-4000-8000-000000000001");
        let ext4 = root.filesystem.as_ref().unwrap();
        let usage = ext4.usage.as_ref().unwrap();
        assert_eq!((ext4.kind, ext4.label.as_str(), usage.blocks), ("ext4", "rootfs", 13056));
        assert_eq!(ext4.uuid, "11111111-2222-3333-4444-555555555555");
        assert!(usage.inodes.as_ref().unwrap().free < usage.inodes.as_ref().unwrap().total);
        assert_eq!((&report.partitions[1].filesystem, &report.partitions[1].unread), (&None, &None));
        let esp = report.partitions[2].filesystem.as_ref().unwrap();
        assert_eq!((esp.kind, esp.label.as_str(), esp.uuid.as_str()), ("FAT16", "EFI", "CAFE-1234"));

        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["partitions"][2]["filesystem"]["kind"], "FAT16");
        let text = report.to_string();
        for line in [
            "virtual size  64.0 MiB (67108864 bytes)",
            "system        Debian GNU/Linux 13 (trixie)",
            "command line  root=PARTUUID=x ro",
            "partition 1   Linux root (x86-64), 51.0 MiB at 12.0 MiB",
            "label \"rootfs\", UUID 11111111-2222-3333-4444-555555555555",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}

#[test]
fn opens_the_tree_of_any_partition() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = image(dir.path());
    assert_eq!(open_tree(&path, None).unwrap().read(b"/etc/hostname", 100).unwrap(), b"node\n");
    assert_eq!(open_tree(&path, Some(15)).unwrap().read(b"/readme.txt", 100).unwrap(), b"node\n");
    assert!(matches!(open_tree(&path, Some(14)), Err(InspectError::NoFileSystem { at }) if at.number == 14));
    let error = open_tree(&path, Some(2)).unwrap_err().to_string();
    assert_eq!(error, format!("{}: no partition 2 on the disk, it has 1, 14, 15", path.display()));
}

#[test]
fn damage_is_reported_not_hidden() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = image(dir.path());
    let intact = fs::read(&path).unwrap();
    let mut bytes = intact.clone();
    bytes[512 + 24] ^= 1;
    bytes[8192 * 512 + 13] = 3;
    fs::write(&path, &bytes).unwrap();
    let report = inspect(&path, None).unwrap();
    assert!(report.notes[0].starts_with("using backup partition table: "), "{:?}", report.notes);
    // A flipped bit in the ext4 superblock.
    bytes[24576 * 512 + 1024 + 0x20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = inspect(&path, None).unwrap();
    assert!(report.notes[1].starts_with("unknown operating system: partition 1: "), "{:?}", report.notes);
    assert_eq!((report.root, report.arch, &report.system), (Some(1), Some("amd64"), &None));
    let root = &report.partitions[0];
    assert!(root.unread.as_ref().is_some_and(|reason| reason.contains("checksum")), "{root:?}");
    assert_eq!(root.filesystem.as_ref().unwrap().uuid, "11111111-2222-3333-4444-555555555555");
    assert!(matches!(open_tree(&path, None), Err(InspectError::Ext4 { at, .. }) if at.number == 1));
    fs::write(&path, &intact[..1 << 20]).unwrap();
    let Err(InspectError::Layout { error: LayoutError::Gpt(GptError::BothUnusable { .. }), path: named }) =
        inspect(&path, None)
    else {
        panic!("a truncated disk was read");
    };
    assert_eq!(named, path);
}
