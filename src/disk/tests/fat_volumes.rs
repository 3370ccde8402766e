//! FAT volumes: read what mkfs.vfat and mtools made, what another library made of random names, and survive damage.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::Arc;

use crate::tools::{have, run};
use proptest::prelude::*;
use vmbake_disk::fat::{self, ChainFault, EntryFault, FatError, FatPart};
use vmbake_disk::tree::{Kind, Origin, Tree};

/// Bytes that no cluster of another file repeats.
fn content(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 31 + at / 509 + seed * 17) % 251).unwrap()).collect()
}

fn files() -> BTreeMap<String, Vec<u8>> {
    [
        ("/EFI/debian/grub.cfg", 123),
        ("/EFI/debian/shimx64.efi", 900_001),
        ("/EFI/BOOT/BOOTX64.EFI", 65_536),
        ("/EFI/BOOT/a rather long name, with spaces ä €.txt", 1),
        ("/empty", 0),
        ("/UPPER.TXT", 512),
        ("/lower.txt", 2048),
    ]
    .into_iter()
    .enumerate()
    .map(|(seed, (path, len))| (path.to_owned(), content(len, seed)))
    .collect()
}

/// Contents by path.
type Files = BTreeMap<String, Vec<u8>>;

/// A volume of `kib` KiB with the files above and 300 more in one directory.
fn volume(dir: &Path, bits: &str, kib: &str, cluster: &str) -> Option<(Vec<u8>, Files)> {
    if !have("mkfs.vfat") || !have("mcopy") || !have("fsck.vfat") {
        return None;
    }
    let mut files = files();
    for number in 0..300 {
        files.insert(format!("/many/file number {number}"), content(number, number));
    }
    let source = dir.join("source");
    for (path, bytes) in &files {
        let path = source.join(&path[1..]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    // 2020-02-29 12:34:56 UTC, which is what mtools stores with TZ=UTC.
    run("touch", &["-d", "2020-02-29T12:34:56Z", source.join("lower.txt").to_str().unwrap()]);
    let image = dir.join("fat.img");
    let image = image.to_str().unwrap();
    run("mkfs.vfat", &["-C", "-F", bits, "-s", cluster, "-n", "ESP LABEL", "-i", "CAFE1234", image, kib]);
    let names = ["EFI", "many", "empty", "UPPER.TXT", "lower.txt"].map(|name| source.join(name));
    let names: Vec<&str> = names.iter().map(|name| name.to_str().unwrap()).collect();
    let env = ["TZ=UTC", "LC_ALL=C.UTF-8", "mcopy", "-s", "-m", "-i", image];
    run("env", &[&env[..], &names, &["::"]].concat());
    run("fsck.vfat", &["-n", image]);
    Some((std::fs::read(image).unwrap(), files))
}

fn read(bytes: &[u8]) -> Result<Tree, FatError> {
    fat::read(Arc::new(bytes.to_vec()), Origin::default())
}

/// All regular files of a tree by path.
fn contents(tree: &Tree) -> BTreeMap<String, Vec<u8>> {
    tree.walk()
        .filter(|(_, _, inode)| matches!(inode.kind, Kind::File(_)))
        .map(|(path, _, _)| (String::from_utf8(path.clone()).unwrap(), tree.read(&path, 1 << 24).unwrap()))
        .collect()
}

const VOLUMES: [(&str, &str, &str, &str); 3] =
    [("12", "6000", "4", "FAT12"), ("16", "16384", "4", "FAT16"), ("32", "40000", "1", "FAT32")];

#[test]
fn reads_what_mtools_wrote() {
    for (bits, kib, cluster, kind) in VOLUMES {
        let dir = tempfile::tempdir().unwrap();
        let Some((bytes, files)) = volume(dir.path(), bits, kib, cluster) else { return };
        let info = fat::probe(&bytes).unwrap();
        assert_eq!((info.kind, info.label.as_str(), info.volume_id), (kind, "ESP LABEL", 0xCAFE_1234));
        assert_eq!(info.cluster_size, cluster.parse::<u32>().unwrap() * 512);
        // fsck.vfat counts: "…: N files, USED/TOTAL clusters".
        let verdict = run("fsck.vfat", &["-n", dir.path().join("fat.img").to_str().unwrap()]);
        let counts = format!("{}/{} clusters", info.clusters - info.free_clusters, info.clusters);
        assert!(verdict.contains(&counts), "{counts}: {verdict}");

        let tree = read(&bytes).unwrap();
        assert!(contents(&tree) == files, "{kind}: {:?}", contents(&tree).keys());
        let lower = tree.inode(tree.lookup(b"/lower.txt").unwrap());
        assert_eq!((lower.meta.mtime.secs, lower.meta.mode), (1_582_979_696, 0o755));
    }
}

/// mkfs.vfat and Linux accept FAT32 with fewer clusters than the specification; mtools does not.
#[test]
fn small_fat32_is_fat32() {
    if !have("mkfs.vfat") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("small.img");
    run("mkfs.vfat", &["-C", "-F", "32", "-s", "1", image.to_str().unwrap(), "8192"]);
    let bytes = std::fs::read(image).unwrap();
    let info = fat::probe(&bytes).unwrap();
    assert_eq!((info.kind, info.label.as_str()), ("FAT32", ""));
    // The root directory takes one.
    assert_eq!(info.free_clusters, info.clusters - 1);
    assert_eq!(read(&bytes).unwrap().walk().count(), 1);
}

/// Offset of the directory entry of a short name in the volume.
fn entry_of(bytes: &[u8], short: &[u8; 11]) -> usize {
    bytes.windows(11).position(|window| window == short).unwrap()
}

#[test]
fn damaged_chains_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let Some((bytes, _)) = volume(dir.path(), "16", "16384", "4") else { return };
    let upper = entry_of(&bytes, b"UPPER   TXT");
    let shim = entry_of(&bytes, b"SHIMX64 EFI");
    let efi = entry_of(&bytes, b"EFI        ");
    let first = |entry: usize| u16::from_le_bytes([bytes[entry + 26], bytes[entry + 27]]);
    let fat = 512 * usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
    let link = |cluster: u16| fat + usize::from(cluster) * 2;
    let cases: [(usize, u16, ChainFault); 7] = [
        (upper + 26, 1, ChainFault::NoCluster),
        (upper + 26, 0, ChainFault::NoCluster),
        (upper + 26, 0xFFF0, ChainFault::NoCluster),
        (upper + 26, first(shim), ChainFault::Taken),
        (link(first(shim)), first(shim), ChainFault::Taken),
        (link(first(shim)), 0xFFFF, ChainFault::NoCluster),
        // A directory below itself.
        (entry_of(&bytes, b"DEBIAN     ") + 26, first(efi), ChainFault::Taken),
    ];
    for (offset, value, fault) in cases {
        let mut damaged = bytes.clone();
        damaged[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
        let error = read(&damaged).unwrap_err();
        assert!(matches!(error, FatError::Chain { what, .. } if what == fault), "{fault}: {error}");
    }
    let mut twice = bytes.clone();
    let empty = entry_of(&bytes, b"EMPTY      ");
    let copy: Vec<u8> = bytes[empty..empty + 32].to_vec();
    twice[upper..upper + 32].copy_from_slice(&copy);
    assert!(matches!(read(&twice), Err(FatError::Entry { what: EntryFault::NameTwice, .. })));
}

#[test]
fn bad_boot_sectors_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let Some((bytes, _)) = volume(dir.path(), "16", "16384", "4") else { return };
    let cases: [(usize, &[u8], FatPart); 12] = [
        (510, &[0], FatPart::Signature),
        (0, &[0], FatPart::Jump),
        (11, &[0, 0], FatPart::BytesPerSector),
        (11, &[0, 1], FatPart::BytesPerSector),
        (13, &[0], FatPart::SectorsPerCluster),
        (13, &[3], FatPart::SectorsPerCluster),
        (14, &[0, 0], FatPart::ReservedSectors),
        (16, &[0], FatPart::Fats),
        (17, &[0, 0], FatPart::RootEntries),
        (21, &[0x55], FatPart::Media),
        (19, &[9, 0], FatPart::FirstDataSector),
        (13, &[1], FatPart::Clusters),
    ];
    for (offset, value, part) in cases {
        let mut damaged = bytes.clone();
        damaged[offset..offset + value.len()].copy_from_slice(value);
        // 16384 KiB in clusters of 512 bytes stay below FAT16's limit, so lengthen the volume for that case.
        if part == FatPart::Clusters {
            (damaged[19], damaged[20]) = (0, 0);
            damaged[32..36].copy_from_slice(&100_000u32.to_le_bytes());
            damaged.resize(100_000 * 512, 0);
        }
        match read(&damaged) {
            Err(FatError::NotFat { what, .. } | FatError::TooLarge { what, .. }) => assert_eq!(what, part),
            other => panic!("{part}: {other:?}"),
        }
    }
    let error = read(&bytes[..bytes.len() - 1]).unwrap_err();
    assert!(matches!(error, FatError::TooLarge { what: FatPart::Len, .. }), "{error}");
    assert!(matches!(read(&[]), Err(FatError::Read { .. })));
    // A FAT of 4 GiB sectors must not be allocated.
    let dir = tempfile::tempdir().unwrap();
    let Some((mut wide, _)) = volume(dir.path(), "32", "40000", "1") else { return };
    wide[36..40].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&wide), Err(FatError::TooLarge { .. })));
}

#[test]
fn a_blank_or_foreign_volume_is_no_fat() {
    assert!(matches!(fat::probe(&vec![0; 4096]), Err(FatError::NotFat { what: FatPart::Signature, .. })));
    let mut mbr = vec![0; 4096];
    (mbr[510], mbr[511]) = (0x55, 0xAA);
    assert!(matches!(fat::probe(&mbr), Err(FatError::NotFat { what: FatPart::Jump, .. })));
}

/// A volume made in memory by another implementation, so that no tool is needed.
fn made_by_fatfs(kind: fatfs::FatType, names: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let len = if kind == fatfs::FatType::Fat12 { 1 << 20 } else { 9 << 20 };
    let mut image = Cursor::new(vec![0u8; len]);
    let options = fatfs::FormatVolumeOptions::new().fat_type(kind).bytes_per_cluster(512).volume_label(*b"RANDOM     ");
    fatfs::format_volume(&mut image, options).unwrap();
    image.set_position(0);
    {
        let volume = fatfs::FileSystem::new(&mut image, fatfs::FsOptions::new()).unwrap();
        volume.root_dir().create_dir("sub").unwrap();
        for (path, bytes) in names {
            volume.root_dir().create_file(&path[1..]).unwrap().write_all(bytes).unwrap();
        }
    }
    image.into_inner()
}

fn names() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let name = "[a-z0-9äß€][a-z0-9 _.äß€]{0,60}[a-z0-9ä]";
    let file = (prop::bool::ANY, name, 0usize..5000);
    prop::collection::vec(file, 0..20).prop_map(|files| {
        let numbered = files.into_iter().enumerate();
        numbered
            .map(|(n, (sub, name, len))| (format!("/{}{name}{n}", if sub { "sub/" } else { "" }), content(len, n)))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reads_random_names_as_another_implementation_wrote_them(names in names(), small in any::<bool>()) {
        let kind = if small { fatfs::FatType::Fat12 } else { fatfs::FatType::Fat16 };
        let tree = read(&made_by_fatfs(kind, &names)).unwrap();
        prop_assert_eq!(contents(&tree), names);
    }

    #[test]
    fn random_damage_never_panics(
        names in names(),
        small in any::<bool>(),
        flips in prop::collection::vec((0usize..48 * 1024, any::<u8>()), 0..40),
        boot in prop::collection::vec((11usize..64, any::<u8>()), 0..3),
        cut in prop::option::of(0usize..1 << 20),
    ) {
        let kind = if small { fatfs::FatType::Fat12 } else { fatfs::FatType::Fat16 };
        let mut bytes = made_by_fatfs(kind, &names);
        for (at, value) in flips.into_iter().chain(boot) {
            bytes[at] = value;
        }
        (bytes[510], bytes[511]) = (0x55, 0xAA);
        bytes.truncate(cut.unwrap_or(bytes.len()));
        let _ = fat::probe(&bytes);
        if let Ok(tree) = read(&bytes) {
            // Whatever is accepted can be read.
            contents_exist(&tree);
        }
    }
}

fn contents_exist(tree: &Tree) {
    for (path, _, inode) in tree.walk() {
        if let Kind::File(map) = &inode.kind {
            assert_eq!(tree.read(&path, 1 << 24).unwrap().len() as u64, map.len());
        }
    }
}

const LEN: u64 = 16 << 20;

#[test]
fn authored_volumes_have_their_files() {
    if !have("fsck.vfat") {
        return;
    }
    let mut files: Files = [
        ("/EFI/debian/grub.cfg", 123),
        ("/EFI/debian/shimx64.efi", 900_001),
        ("/EFI/BOOT/BOOTX64.EFI", 2048),
        ("/empty", 0),
        ("/A-1_B.C", 1),
    ]
    .into_iter()
    .enumerate()
    .map(|(seed, (path, len))| (path.to_owned(), content(len, seed)))
    .collect();
    // More entries than one cluster holds.
    files.extend((0..200).map(|number| (format!("/many/file{number}.txt"), content(number, number))));
    let list: Vec<_> = files.iter().map(|(path, content)| (path[1..].to_owned(), content.clone())).collect();
    let mut volume = fat::author(LEN, 0xCAFE_1234, &list).unwrap();
    volume.resize(usize::try_from(LEN).unwrap(), 0);
    let info = fat::probe(&volume).unwrap();
    assert_eq!((info.kind, info.volume_id, info.cluster_size), ("FAT16", 0xCAFE_1234, 2048));
    assert_eq!(contents(&read(&volume).unwrap()), files);
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("fat.img");
    std::fs::write(&image, &volume).unwrap();
    run("fsck.vfat", &["-n", image.to_str().unwrap()]);
}

#[test]
fn volumes_that_cannot_be_authored_are_refused() {
    let refusal = |len: u64, paths: &[&str], size: usize| {
        let files: Vec<_> = paths.iter().map(|path| ((*path).to_owned(), vec![1; size])).collect();
        fat::author(len, 0, &files).unwrap_err().to_string()
    };
    for path in ["Mixed", "name.", ".name", "", "a/", "/a", "a b", "ä", "a.b.c", "ninechars", "a.text", "a/Bb/c"] {
        let expected =
            format!("{path}: expected a name of 8 and an extension of 3 letters and digits, each of one case");
        assert_eq!(refusal(LEN, &[path], 1), expected);
    }
    for paths in [["a", "a"], ["a", "A"], ["a", "a/b"], ["a/b", "a"]] {
        assert_eq!(refusal(LEN, &paths, 1), format!("{}: there is a file of this name already", paths[1]));
    }
    assert_eq!(refusal(LEN, &["a"], 16 << 20), "the files need 8192 clusters, but the volume has 8167");
    for len in [0, 4 << 20, 256 << 20, u64::MAX] {
        assert!(refusal(len, &["a"], 1).starts_with(&format!("a FAT16 volume of {len} bytes: expected 4085 to ")));
    }
}
