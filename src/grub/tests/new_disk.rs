//! New disks, verified by sgdisk, sfdisk, fsck.vfat and mtools.

use std::fs::File;
use std::num::NonZeroUsize;

use vmbake_disk::disk::assemble;
use vmbake_disk::image::Format;
use vmbake_disk::source::{Map, Sources};
use vmbake_disk::tree::Tree;
use vmbake_disk::write::{Output, write};
use vmbake_grub::{DiskIds, check, new_disk, with_mounts, without_initrd};

use crate::tools::{have, run};
use crate::trees::{add, empty, with_bios};

const LEN: u64 = 1 << 30;

/// Files that are called like the signed programs.
const EFI: [(&str, usize); 5] = [
    ("/usr/lib/shim/shimX.efi.signed", 1_036_152),
    ("/usr/lib/shim/mmX.efi.signed", 873_904),
    ("/usr/lib/shim/fbX.efi.signed", 118_832),
    ("/usr/lib/grub/P-signed/grubX.efi.signed", 2_684_352),
    ("/usr/lib/shim/BOOTY.CSV", 108),
];

/// Their paths with the names of an architecture, and contents that differ.
fn programs(arch: &str, platform: &str) -> Vec<(String, Vec<u8>)> {
    let path = |path: &str| path.replace('X', arch).replace('Y', &arch.to_uppercase()).replace('P', platform);
    let byte = |seed: usize, at: usize| u8::try_from((at * 31 + at / 509 + seed) % 251).unwrap();
    EFI.iter()
        .enumerate()
        .map(|(seed, (name, len))| (path(name), (0..*len).map(|at| byte(seed, at)).collect()))
        .collect()
}

#[test]
fn partitions_and_esp_are_accepted_by_other_tools() {
    if !["sgdisk", "sfdisk", "fsck.vfat", "mcopy", "mdir"].into_iter().all(have) {
        return;
    }
    for (arch, efi, platform) in [("amd64", "x64", "x86_64-efi"), ("arm64", "aa64", "arm64-efi")] {
        let bios = if arch == "amd64" { with_bios() } else { Some(empty()) };
        let Some(mut tree) = bios else { return };
        let programs = programs(efi, platform);
        programs.iter().for_each(|(path, content)| add(&mut tree, path, content.clone()));
        let ids = DiskIds::of(&format!("test.debian-13.{arch}"));
        let base = new_disk(&tree, arch, &ids).unwrap();
        let disk = assemble(&base, LEN, &Map::hole(1 << 20), &Sources::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk.raw");
        write(&disk, &[Output::new(Format::Raw, &File::create(&path).unwrap())], NonZeroUsize::MIN, &|_| ()).unwrap();
        let path = path.to_str().unwrap();
        assert!(run("sgdisk", &["--verify", path]).contains("No problems found"));
        let verified = run("sfdisk", &["--verify", path]);
        assert!(verified.contains("No errors detected"), "{verified}");
        let dump = run("sfdisk", &["--dump", path]);
        let lines: Vec<&str> = dump.lines().filter_map(|line| line.strip_prefix(path)).collect();
        let expected: &[[&str; 3]] = match arch {
            "amd64" => &[
                ["1 : start=      262144", "size=     1832960", "type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"],
                ["14 : start=        2048", "size=        6144", "type=21686148-6449-6E6F-744E-656564454649"],
                ["15 : start=        8192", "size=      253952", "type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B"],
            ],
            _ => &[
                ["1 : start=      262144", "size=     1832960", "type=B921B045-1DF0-41C3-AF44-4C6F280D3FAE"],
                ["15 : start=        2048", "size=      260096", "type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B"],
            ],
        };
        assert_eq!(lines.len(), expected.len(), "{dump}");
        for (line, parts) in lines.iter().zip(expected) {
            assert!(parts.iter().all(|part| line.contains(part)), "{line}: {parts:?}");
        }
        assert!(dump.contains(&format!("uuid={}", ids.root_partuuid().to_uppercase())), "{dump}");
        check_esp(dir.path().to_str().unwrap(), path, &base, &programs, efi);
        if arch == "arm64" {
            assert!(base.bios_boot().is_none());
        }
    }
}

fn check_esp(dir: &str, disk: &str, base: &vmbake_disk::disk::BaseDisk, programs: &[(String, Vec<u8>)], efi: &str) {
    let esp = base.esp().unwrap();
    let file = format!("{dir}/esp");
    let (skip, count) = (format!("skip={}", esp.start / 512), format!("count={}", esp.len / 512));
    run("dd", &[&format!("if={disk}"), &format!("of={file}"), "bs=512", &skip, &count]);
    run("fsck.vfat", &["-n", &file]);
    let listed = run("mdir", &["-/", "-b", "-i", &file, "::"]);
    let content = |path: &str| {
        let copy = format!("{dir}/copy");
        run("mcopy", &["-n", "-o", "-i", &file, &format!("::{path}"), &copy]);
        std::fs::read(copy).unwrap()
    };
    let upper = efi.to_uppercase();
    let of = |part: &str| &programs.iter().find(|(path, _)| path.contains(part)).unwrap().1;
    let copies = [
        (format!("EFI/BOOT/BOOT{upper}.EFI"), "/shim/shim"),
        (format!("EFI/BOOT/grub{efi}.efi"), "-signed/grub"),
        (format!("EFI/BOOT/mm{efi}.efi"), "/shim/mm"),
        (format!("EFI/debian/shim{efi}.efi"), "/shim/shim"),
        (format!("EFI/debian/grub{efi}.efi"), "-signed/grub"),
        (format!("EFI/debian/mm{efi}.efi"), "/shim/mm"),
        (format!("EFI/debian/fb{efi}.efi"), "/shim/fb"),
        (format!("EFI/debian/BOOT{upper}.CSV"), ".CSV"),
    ];
    for (path, part) in &copies {
        assert!(content(path) == *of(part), "{path}");
    }
    assert_eq!(listed.lines().filter(|line| !line.ends_with('/')).count(), copies.len() + 1, "{listed}");
    let menu = String::from_utf8(content("EFI/debian/grub.cfg")).unwrap();
    let uuid =
        DiskIds::of(&format!("test.debian-13.{}", if efi == "x64" { "amd64" } else { "arm64" })).root_uuid_text();
    let expected =
        format!("search.fs_uuid {uuid} root \nset prefix=($root)'/boot/grub'\nconfigfile $prefix/grub.cfg\n");
    assert_eq!(menu, expected);
}

#[test]
fn systems_that_cannot_start_are_refused() {
    let ids = DiskIds::of("x");
    let mut tree = empty();
    let refusal = |tree: &Tree, arch: &str| check(tree, arch, &ids).err().map(|error| error.to_string());
    let refused = |tree: &Tree, expected: &str| assert_eq!(refusal(tree, "amd64").as_deref(), Some(expected));
    assert!(refusal(&tree, "riscv64").unwrap().starts_with("unsupported architecture \"riscv64\""));
    refused(&tree, "the image has no kernel: there is no /boot/vmlinuz-VERSION");
    add(&mut tree, "/boot/vmlinuz-1", Vec::new());
    refused(&tree, "the image has no boot loader: neither grub-pc-bin nor shim-signed with grub-efi-amd64-signed");
    programs("x64", "x86_64-efi").into_iter().for_each(|(path, content)| add(&mut tree, &path, content));
    refused(&tree, "the image has no /usr/sbin/grub-mkconfig, which writes the menu of the boot loader");
    add(&mut tree, "/usr/sbin/grub-mkconfig", Vec::new());
    assert_eq!(refusal(&tree, "amd64"), None);
    assert_eq!(without_initrd(&tree), ["1"]);
    add(&mut tree, "/etc/fstab", b"# / is\nUUID=0 / ext4 defaults 0 1\n".to_vec());
    let expected = format!("PARTUUID={}, the partition of the new disk", ids.root_partuuid());
    refused(&tree, &format!("/etc/fstab mounts UUID=0 on /: expected {expected}"));
}

#[test]
fn fstab_gets_the_partitions_that_it_lacks() {
    let ids = DiskIds::of("x");
    let mut tree = empty();
    let root = format!("PARTUUID={} / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1\n", ids.root_partuuid());
    assert_eq!(with_mounts(&tree, "amd64", &ids).unwrap(), Some(root.clone()), "no ESP without programs for it");
    programs("x64", "x86_64-efi").into_iter().for_each(|(path, content)| add(&mut tree, &path, content));
    let esp = format!("PARTUUID={} /boot/efi vfat defaults,umask=077 0 2\n", ids.esp_partuuid());
    for (before, after) in [
        ("# comment", Some(format!("# comment\n{root}{esp}"))),
        ("tmpfs /tmp tmpfs\n", Some(format!("tmpfs /tmp tmpfs\n{root}{esp}"))),
        ("UUID=1 / ext4\n", Some(format!("UUID=1 / ext4\n{esp}"))),
        ("UUID=1 / ext4\nUUID=2 /boot/efi/ vfat", None),
    ] {
        add(&mut tree, "/etc/fstab", before.into());
        assert_eq!(with_mounts(&tree, "amd64", &ids).unwrap(), after, "{before}");
    }
}
