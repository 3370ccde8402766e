//! The partitions of disks of all types, their root, and messages about unreadable ones.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use vmbake_disk::disk::{self, AssembleError};
use vmbake_disk::gpt::GptError;
use vmbake_disk::layout::{Layout, LayoutError, PartKind, Scheme, WHOLE};
use vmbake_disk::signature::{self, Role};

use crate::tools::{have, run};

const MIB: usize = 1 << 20;

/// An ext4 file system of 4 MiB, with an operating system or without.
fn ext4(dir: &Path, label: &str, system: bool) -> Vec<u8> {
    let (tree, file) = (dir.join("tree"), dir.join("ext4"));
    let release = tree.join("usr/lib");
    std::fs::create_dir_all(&release).unwrap();
    if system {
        std::fs::write(release.join("os-release"), "ID=debian\n").unwrap();
    }
    let (from, to) = (tree.to_str().unwrap(), file.to_str().unwrap());
    run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", "-O", "^has_journal", "-L", label, "-d", from, to, "4M"]);
    std::fs::remove_dir_all(tree).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    bytes
}

/// A disk with these partitions of 4 MiB each: type code of sgdisk and content.
fn disk(dir: &Path, parts: &[(&str, &[u8])]) -> Vec<u8> {
    let path = dir.join("disk.raw");
    std::fs::File::create(&path).unwrap().set_len(32 << 20).unwrap();
    let mut args = Vec::new();
    for (index, (code, _)) in parts.iter().enumerate() {
        let (number, start) = (index + 1, 2048 + index * 8192);
        args.push(format!("--new={number}:{start}:{}", start + 8191));
        args.push(format!("--typecode={number}:{code}"));
        args.push(format!("--change-name={number}:slot-{number}"));
    }
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    args.push(path.to_str().unwrap());
    run("sgdisk", &args);
    let mut bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    for (index, (_, content)) in parts.iter().enumerate() {
        bytes[MIB + index * 4 * MIB..][..content.len()].copy_from_slice(content);
    }
    bytes
}

fn layout(bytes: Vec<u8>) -> Result<Layout, LayoutError> {
    Layout::read(Arc::new(bytes))
}

#[test]
fn the_partition_with_a_system_is_the_root() {
    if !have("sgdisk") || !have("mke2fs") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (boot, root) = (ext4(dir.path(), "boot", false), ext4(dir.path(), "root", true));
    // Type codes, contents, and the number of the root.
    for (parts, expected) in [
        (&[("8300", &boot), ("8300", &root)][..], 2),
        (&[("8304", &root), ("8304", &boot), ("8300", &root)], 1),
        (&[("8300", &root), ("8304", &boot)], 2),
        (&[("EF00", &root), ("8200", &root), ("8300", &boot)], 3),
    ] {
        let parts: Vec<(&str, &[u8])> = parts.iter().map(|(code, bytes)| (*code, &bytes[..])).collect();
        let found = layout(disk(dir.path(), &parts)).unwrap();
        assert_eq!(found.root(None).unwrap().number, expected);
        assert_eq!(found.root(Some(1)).unwrap().number, 1);
        assert!(matches!(found.root(Some(WHOLE)), Err(LayoutError::NoPartition { .. })));
    }
    let found = layout(disk(dir.path(), &[("8304", &root), ("8304", &root), ("8304", &boot)])).unwrap();
    let text = found.root(None).unwrap_err().to_string();
    assert_eq!(
        text,
        "several partitions can be the root file system: 1 (\"slot-1\", 4.0 MiB, ext4 labelled \"root\"), 2 (\"slot-2\", 4.0 MiB, ext4 labelled \"root\"), 3 (\"slot-3\", 4.0 MiB, ext4 labelled \"boot\")"
    );
}

/// A hostile MBR has a hundred partitions at one offset; with so many, the user has to choose.
#[test]
fn at_most_16_partitions_are_asked_for_a_system() {
    if !have("sgdisk") || !have("mke2fs") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = ext4(dir.path(), "root", true);
    for (others, is_found) in [(15, true), (16, false)] {
        let path = dir.path().join("disk.raw");
        std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let mut args = vec!["--set-alignment=1".to_owned(), "--new=1:2048:10239".to_owned()];
        args.extend((0..others).map(|index| format!("--new={}:{1}:{1}", index + 2, 10240 + index)));
        args.push(path.to_str().unwrap().to_owned());
        run("sgdisk", &args.iter().map(String::as_str).collect::<Vec<_>>());
        let mut bytes = std::fs::read(path).unwrap();
        bytes[MIB..][..root.len()].copy_from_slice(&root);
        let layout = layout(bytes).unwrap();
        match layout.root(None) {
            Ok(part) => assert!(is_found && part.number == 1, "{others}"),
            Err(error) => assert!(!is_found && matches!(error, LayoutError::SeveralRoots { .. }), "{error}"),
        }
    }
}

#[test]
fn a_message_describes_some_partitions() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk.raw");
    std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let new: Vec<String> = (1..=20).map(|number| format!("--new={number}:{0}:{0}", 2047 + number)).collect();
    let mut args = vec!["--set-alignment=1"];
    args.extend(new.iter().map(String::as_str));
    args.push(path.to_str().unwrap());
    run("sgdisk", &args);
    let text = layout(std::fs::read(&path).unwrap()).unwrap().root(None).unwrap_err().to_string();
    assert!(text.ends_with("16 (512 B, no known file system), and 4 more"), "{text}");
}

#[test]
fn a_file_system_without_a_table_is_partition_0() {
    if !["mke2fs", "mkfs.vfat", "mkswap"].into_iter().all(have) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let fat = file("fat");
    run("mkfs.vfat", &["-C", "-n", "ESP", fat.to_str().unwrap(), "4096"]);
    let mut unsigned = std::fs::read(&fat).unwrap();
    // A boot sector need not name its type, and its contents may look like a partition table.
    unsigned[54..62].fill(b' ');
    unsigned[446 + 4] = 0x83;
    unsigned[446 + 12] = 1;
    let swap = file("swap");
    std::fs::File::create(&swap).unwrap().set_len(1 << 20).unwrap();
    run("mkswap", &["-L", "pages", swap.to_str().unwrap()]);
    for (bytes, name) in [
        (ext4(dir.path(), "data", false), "ext4"),
        (std::fs::read(&fat).unwrap(), "FAT"),
        (unsigned, "FAT12"),
        (std::fs::read(&swap).unwrap(), "swap"),
    ] {
        let len = bytes.len() as u64;
        let found = layout(bytes).unwrap();
        let Scheme::Whole(signature) = found.scheme() else { panic!("{name}") };
        assert_eq!(signature.name, name);
        let root = found.root(None).unwrap();
        assert_eq!((root.number, root.start, root.len, root.kind), (WHOLE, 0, len, PartKind::Whole));
        assert_eq!(found.root(Some(WHOLE)).unwrap(), root);
        assert!(matches!(found.root(Some(1)), Err(LayoutError::NoPartition { .. })));
    }
}

#[test]
fn partitions_of_large_sectors_are_opened() {
    if !have("mke2fs") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = crate::gpt_tables::large_sectors();
    let root = ext4(dir.path(), "root", true);
    let (start, len) = (16 * 4096, MIB);
    bytes[start..start + len].copy_from_slice(&root[..len]);
    let found = layout(bytes.clone()).unwrap();
    let source = found.open(found.root(None).unwrap()).unwrap();
    assert_eq!(signature::probe(&*source).unwrap().label, "root");
    let error = disk::open(Arc::new(bytes), None).map(|_| ()).unwrap_err();
    assert!(matches!(error, AssembleError::Gpt(GptError::SectorSize { found: 4096 })), "{error}");
}

#[test]
fn what_is_no_disk_is_told() {
    for bytes in [vec![0; 1 << 20], vec![7; 100], vec![0xFF; 4096]] {
        assert!(matches!(layout(bytes), Err(LayoutError::Nothing)));
    }
}

#[test]
fn file_systems_have_the_names_that_their_tools_give_them() {
    let dir = tempfile::tempdir().unwrap();
    let uuid = "11111111-2222-3333-4444-555555555555";
    for (tool, args, len, name, role, known) in [
        ("mkfs.xfs", &["-q", "-L", "lab", "-m", &format!("uuid={uuid}")][..], 320 << 20, "xfs", Role::FileSystem, true),
        ("mkfs.btrfs", &["-q", "-L", "lab", "-U", uuid], 128 << 20, "btrfs", Role::FileSystem, true),
        ("mkswap", &["-L", "lab", "-U", uuid], 1 << 20, "swap", Role::Swap, true),
        ("mke2fs", &["-q", "-L", "lab", "-U", uuid], 1 << 20, "ext4", Role::Known, true),
        ("mkfs.vfat", &["-F", "12"], 1 << 20, "FAT", Role::Known, false),
    ] {
        if !have(tool) {
            continue;
        }
        let path = dir.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(len).unwrap();
        run(tool, &[args, &[path.to_str().unwrap()]].concat());
        let image = vmbake_disk::image::Image::open(&path).unwrap();
        let found = signature::probe(&image).unwrap();
        assert_eq!((found.name, found.role), (name, role));
        let (label, expected) = if known { ("lab", uuid) } else { ("", "") };
        assert_eq!((found.label.as_str(), found.uuid.as_str()), (label, expected), "{name}");
    }
}

/// Magic numbers of what needs tools that are heavy or need root: at their offsets, as the specifications have them.
#[test]
fn magic_numbers_are_known() {
    for (offset, magic, name) in [
        (0, &b"LUKS\xba\xbe\0\x02"[..], "LUKS"),
        (3, b"-FVE-FS-", "BitLocker"),
        (536, b"LVM2 001", "LVM2 physical volume"),
        (4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0", "Linux software RAID member"),
        (0, b"verity\0\0", "dm-verity hash tree"),
        (4120, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", "bcachefs"),
        (1024, b"\x10\x20\xf5\xf2", "f2fs"),
        (0, b"hsqs", "squashfs"),
        (1024, b"\xe2\xe1\xf5\xe0", "erofs"),
        (32768, b"JFS1", "jfs"),
        (65536 + 52, b"ReIsEr2Fs", "reiserfs"),
        (32, b"NXSB", "APFS"),
        (3, b"NTFS    ", "ntfs"),
        (3, b"EXFAT   ", "exfat"),
        (65526, b"SWAPSPACE2", "swap"),
        (32769, b"CD001\x01", "iso9660"),
    ] {
        let mut bytes = vec![0; 128 << 10];
        assert_eq!(signature::probe(&bytes), None);
        bytes[offset..offset + magic.len()].copy_from_slice(magic);
        let found = signature::probe(&bytes).unwrap();
        assert_eq!(found.name, name);
        assert!(matches!(layout(bytes).unwrap().scheme(), Scheme::Whole(whole) if *whole == found));
        assert!(!found.reason().is_empty());
    }
}

proptest! {
    /// A disk with two file systems and damage anywhere in its first sectors: no panic, and partitions that open are inside.
    #[test]
    fn random_damage_never_panics(
        flips in prop::collection::vec((0usize..4096, any::<u8>()), 0..12),
        magic in prop::sample::select(vec![(0usize, 0xEBu8), (510, 0x55), (1080, 0x53)]),
        cut in prop::option::of(0usize..(256 << 10)),
    ) {
        let mut bytes = vec![0; 256 << 10];
        (bytes[511], bytes[1081], bytes[446 + 4], bytes[446 + 12]) = (0xAA, 0xEF, 0x83, 9);
        bytes[magic.0] = magic.1;
        for (at, value) in flips {
            bytes[at] = value;
        }
        bytes.truncate(cut.unwrap_or(bytes.len()));
        let len = bytes.len() as u64;
        if let Ok(found) = layout(bytes) {
            let _ = found.root(None);
            for part in found.parts() {
                if let Ok(source) = found.open(part) {
                    prop_assert!(source.len() <= len);
                }
            }
        }
    }
}
