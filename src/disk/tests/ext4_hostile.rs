//! Volumes that are refused, damaged or cut: a clear error, and never a panic.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::common::*;
use proptest::prelude::*;
use vmbake_disk::ext4::{
    Corruption, Depth, DirectoryFault, InodeFault, Location, MappingFault, ReadError, VolumeFault, Want, author, probe,
    read, read_some,
};
use vmbake_disk::source::{FileSource, MapReader};
use vmbake_disk::tree::{Kind, Origin};

fn parse(bytes: Vec<u8>) -> Result<usize, ReadError> {
    read(Arc::new(bytes), Origin::default()).map(|(_, tree)| tree.walk().count())
}

fn parse_file(path: &Path) -> Result<usize, ReadError> {
    let source = FileSource::new(std::fs::File::open(path).unwrap()).unwrap();
    read(Arc::new(source), Origin::default()).map(|(_, tree)| tree.walk().count())
}

/// A small volume with a large directory, attribute blocks, long links and deep extents.
fn sample() -> &'static Vec<u8> {
    static SAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    SAMPLE.get_or_init(|| {
        let mut tree = empty_tree();
        put(&mut tree, "/dir", Kind::directory());
        for index in 0..300 {
            put_file(&mut tree, &format!("/dir/quite-a-long-name-{index}"), b"x");
        }
        put(&mut tree, "/link", Kind::Symlink(vec![b'l'; 100]));
        let acl = put_file(&mut tree, "/acl", b"content");
        tree.meta_mut(acl).xattrs.insert(b"system.posix_acl_access".to_vec(), ACL.to_vec());
        tree.meta_mut(acl).xattrs.insert(b"user.large".to_vec(), vec![5; 1000]);
        let source = bytes(&mut tree, b"x");
        let mut map = vmbake_disk::source::Map::hole(1 << 20);
        for index in 0..6 {
            map.push(vmbake_disk::source::Extent { at: index * 9000, len: 1, source, offset: 0 });
        }
        put(&mut tree, "/deep", Kind::File(map));
        let volume = author(&tree, &smallest()).unwrap();
        let mut image = Vec::new();
        std::io::Read::read_to_end(&mut MapReader::new(volume.map(), volume.sources()), &mut image).unwrap();
        image
    })
}

/// The first blocks of file content and of the journal do not matter to a reader; all else that is not zero does.
fn metadata_bytes() -> &'static Vec<usize> {
    static BYTES: OnceLock<Vec<usize>> = OnceLock::new();
    BYTES.get_or_init(|| (0..sample().len()).filter(|at| sample()[*at] != 0).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..4)) {
        let mut image = sample().clone();
        for (at, bit) in flips {
            image[*at.get(metadata_bytes())] ^= 1 << bit;
        }
        drop(parse(image));
    }

    #[test]
    fn mutations_with_good_checksums_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        // Without the feature nothing is verified, so every structure is parsed with arbitrary contents.
        let mut image = sample().clone();
        image[1024 + 0x65] &= !4;
        for (at, value) in changes {
            let at = *at.get(metadata_bytes());
            if at >= 2048 {
                image[at] = value;
            }
        }
        drop(parse(image));
    }

    #[test]
    fn mutations_of_the_superblock_never_panic(changes in prop::collection::vec((0usize..0x3fc, any::<u8>()), 1..4)) {
        let mut image = sample().clone();
        for (at, value) in changes {
            image[1024 + at] = value;
        }
        let sum = mkext4::csum::superblock(&image[1024..2048]).to_le_bytes();
        image[2044..2048].copy_from_slice(&sum);
        drop(parse(image));
    }

    #[test]
    fn cut_volumes_are_errors(len in 0usize..(16 << 20)) {
        prop_assert!(parse(sample()[..len].to_vec()).is_err());
    }
}

#[test]
fn a_flip_in_any_structure_is_reported_where_it_is() {
    let image = sample();
    assert_eq!(parse(image.clone()).unwrap(), 1 + 1 + 300 + 3);
    let find = |needle: &[u8]| image.windows(needle.len()).position(|window| window == needle).unwrap();
    let inode_table = {
        let desc = &image[4096..4128];
        4096 * u32::from_le_bytes(desc[8..12].try_into().unwrap()) as usize
    };
    let leaf = find(b"quite-a-long-name-7");
    let attribute = find(&[5; 1000]);
    let index = find(&[0x0a, 0xf3, 6, 0, 84, 1]);
    // The root of the index of /dir: its info structure of 8 bytes, hash version 1.
    let htree = find(b"..\0\0\0\0\0\0\x01\x08") + 8;
    let block = |at: usize| Location::Block { inode: 0, block: at as u64 / 4096 };
    let cases = [
        (1024 + 0x68, Location::Superblock),
        (4096 + 12, Location::Group(0)),
        (inode_table + 256 + 8, Location::Inode(2)),
        (leaf, block(leaf)),
        (htree + 16, block(htree)),
        (attribute, block(attribute)),
        (index + 20, block(index)),
    ];
    for (at, expected) in cases {
        let mut damaged = image.clone();
        damaged[at] ^= 0x10;
        match parse(damaged) {
            Err(ReadError::Corrupt { place, what }) => {
                let place = match place {
                    Location::Block { block, .. } => Location::Block { inode: 0, block },
                    other => other,
                };
                assert_eq!(place, expected, "byte {at}: {what}");
                assert!(matches!(what, Corruption::Checksum { .. }), "byte {at}: {what}");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

/// What is wrong with a volume that is corrupt.
fn corruption(read: Result<usize, ReadError>) -> Corruption {
    match read {
        Err(ReadError::Corrupt { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_bytes_are_not_ext4() {
    assert!(matches!(parse(vec![0; 1 << 20]), Err(ReadError::NotExt4 { found: 0 })));
    assert!(matches!(parse(vec![]), Err(ReadError::Io { .. })));
}

/// Makes an image with mke2fs and reads it.
fn made(dir: &Path, args: &[&str]) -> std::path::PathBuf {
    let image = dir.join("image");
    drop(std::fs::remove_file(&image));
    let args = [&["-q", "-F", "-t", "ext4", "-b", "4096"], args, &[text(&image), "64M"]].concat();
    run("mke2fs", &args);
    image
}

#[test]
fn clusters_are_blocks_without_bigalloc() {
    if !have(&["mke2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = std::fs::read(made(dir.path(), &["-O", "^metadata_csum"])).unwrap();
    assert!(parse(image.clone()).is_ok());
    for s_log_cluster_size in [0u32, 1, 3, 11] {
        let mut image = image.clone();
        image[1024 + 0x1c..1024 + 0x20].copy_from_slice(&s_log_cluster_size.to_le_bytes());
        match parse(image) {
            Err(ReadError::Corrupt { place: Location::Superblock, what }) => {
                assert_eq!(what, VolumeFault::ClusterSize { log: s_log_cluster_size }.into());
            }
            other => panic!("{s_log_cluster_size}: {other:?}"),
        }
    }
}

fn unsupported(result: Result<usize, ReadError>, word: &str) {
    match result {
        Err(ReadError::Unsupported { feature, .. }) => assert!(feature.contains(word), "{feature:?}, not {word:?}"),
        other => panic!("{word}: {other:?}"),
    }
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (request, word) in [
        ("feature compression", "compression"),
        ("feature journal_dev", "journal_dev"),
        ("feature dirdata", "dirdata"),
        ("feature FEATURE_I30", "FEATURE_I30"),
    ] {
        let image = made(dir.path(), &[]);
        run("debugfs", &["-w", "-R", request, text(&image)]);
        unsupported(parse_file(&image), word);
        let source = FileSource::new(std::fs::File::open(&image).unwrap()).unwrap();
        unsupported(probe(&source).map(|_| 0), word);
    }
    let image = made(dir.path(), &["-O", "encrypt"]);
    run("debugfs", &["-w", "-R", "sif / flags 0x80800", text(&image)]);
    unsupported(parse_file(&image), "encrypted file");
}

#[test]
fn maps_that_lead_to_themselves_end() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "1024", text(&image), "32M"]);
    run("debugfs", &["-w", "-R", "write /etc/hostname f", text(&image)]);
    run("debugfs", &["-w", "-R", "sif f block[TIND] 20000", text(&image)]);
    let good = std::fs::read(&image).unwrap();
    let map = |number: u32| {
        let mut image = good.clone();
        let numbers = number.to_le_bytes().repeat(256);
        image[20_000 * 1024..20_001 * 1024].copy_from_slice(&numbers);
        parse(image)
    };
    assert!(map(0).is_ok());
    // The first block of the file that a block of numbers in the block of all of them would map.
    let outside = |block| MappingFault::Map { logical: 12 + 256 + 256 * 256, block };
    for (number, fault) in
        [(20_000, MappingFault::MapTwice { block: 20_000 }), (1, outside(1)), (32_768, outside(32_768))]
    {
        assert_eq!(corruption(map(number)), fault.into());
    }
}

/// Volumes that the author never makes, and without checksums, so that every structure is parsed with arbitrary
/// contents.
fn samples() -> &'static [Vec<u8>] {
    static SAMPLES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir_all(tree.join("dir")).unwrap();
        for index in 0..40 {
            std::fs::write(tree.join(format!("dir/a-name-of-some-length-{index}")), "x").unwrap();
        }
        for len in [0, 50, 120, 20_000, 300_000] {
            std::fs::write(tree.join(format!("{len}")), vec![b'c'; len]).unwrap();
        }
        std::os::unix::fs::symlink("l".repeat(100), tree.join("link")).unwrap();
        std::fs::write(dir.path().join("value"), vec![b'v'; 3000]).unwrap();
        let request = format!("ea_set -f {} 50 user.value", text(&dir.path().join("value")));
        let image = dir.path().join("image");
        let make = |args: &[&str]| {
            drop(std::fs::remove_file(&image));
            run("mke2fs", &[&["-q", "-F", "-b", "1024"], args, &["-d", text(&tree), text(&image), "4M"]].concat());
            run("debugfs", &["-w", "-R", &request, text(&image)]);
            std::fs::read(&image).unwrap()
        };
        vec![
            make(&["-t", "ext2"]),
            make(&["-t", "ext4", "-O", "^metadata_csum,inline_data,ea_inode,^has_journal"]),
            make(&[
                "-t",
                "ext4",
                "-g",
                "256",
                "-O",
                "^metadata_csum,meta_bg,^resize_inode,^has_journal,bigalloc",
                "-C",
                "4096",
            ]),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutations_of_old_and_odd_volumes_never_panic(
        sample in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        if !have(&["mke2fs", "debugfs"]) {
            return Ok(());
        }
        let mut image = samples()[sample].clone();
        // Content does not matter to a reader.
        let used: Vec<usize> = (0..image.len()).filter(|at| !matches!(image[*at], 0 | b'c' | b'v')).collect();
        for (at, value) in changes {
            image[*at.get(&used)] = value;
        }
        drop(parse(image));
    }
}

#[test]
fn damage_that_checksums_do_not_show_is_found() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&[&str], Corruption); 9] = [
        (&["mkdir a", "mkdir a/b", "link a/b c"], DirectoryFault::Parent { found: 12, expected: 2 }.into()),
        (&["mkdir a", "link a a/loop"], DirectoryFault::Parent { found: 2, expected: 12 }.into()),
        (&["write /etc/hostname f", "sif f links_count 2"], InodeFault::Links { links: 2, names: 1 }.into()),
        (&["write /etc/hostname f", "link f g"], InodeFault::Links { links: 1, names: 2 }.into()),
        (&["mkdir a", "sif a links_count 7"], InodeFault::Subdirectories { links: 7, found: 0 }.into()),
        (&["write /etc/hostname f", "clri f"], DirectoryFault::EntryUnused { directory: 2 }.into()),
        (&["mkdir a", "sif a size 4095"], DirectoryFault::Len { len: 4095 }.into()),
        (&["mkdir a", "sif a size 8192"], DirectoryFault::Hole { block: 1 }.into()),
        (&["write /etc/hostname f", "sif f mode 0120644"], DirectoryFault::EntryType { found: 1, expected: 7 }.into()),
    ];
    for (requests, fault) in cases {
        let image = made(dir.path(), &[]);
        for request in requests {
            run("debugfs", &["-w", "-R", request, text(&image)]);
        }
        assert_eq!(corruption(parse_file(&image)), fault, "{requests:?}");
    }
}

/// Each of 39 links leads through 13 names, the last of which is the next link, and 2,200 lead to the first.
#[test]
fn links_that_lead_through_links_end() {
    let mut tree = empty_tree();
    put(&mut tree, "/dir", Kind::directory());
    put(&mut tree, "/boot", Kind::directory());
    put_file(&mut tree, "/end", b"x");
    for index in 0..39 {
        let next = if index == 38 { "/end".to_owned() } else { format!("/l{}", index + 1) };
        put(&mut tree, &format!("/l{index}"), Kind::Symlink(("/dir/..".repeat(6) + &next).into_bytes()));
    }
    for index in 0..2200 {
        put(&mut tree, &format!("/boot/first{index}"), Kind::Symlink(b"/l0".to_vec()));
    }
    let volume = author(&tree, &smallest()).unwrap();
    let mut image = Vec::new();
    std::io::Read::read_to_end(&mut MapReader::new(volume.map(), volume.sources()), &mut image).unwrap();
    let source = Arc::new(image);
    let wants = |depth| read_some(source.clone(), Origin::default(), &[Want { path: b"/boot", depth }]);
    assert_eq!(wants(Depth::Entries).unwrap().1.lookup(b"/end"), None);
    unsupported(wants(Depth::Targets).map(|_| 0), "lead through more than 1048576 names");
}

#[test]
fn a_block_has_one_place_unless_files_may_share() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    run("mke2fs", &["-q", "-F", "-t", "ext2", "-b", "1024", text(&image), "32M"]);
    let debugfs = |request: &str| run("debugfs", &["-w", "-R", request, text(&image)]);
    debugfs("write /etc/hostname f");
    debugfs("write /etc/hostname g");
    let expect = |fault: MappingFault| assert_eq!(corruption(parse_file(&image)), fault.into());
    debugfs("sif f block[0] 15000");
    debugfs("sif f block[1] 15000");
    expect(MappingFault::BlockTwice { block: 15_000 });
    debugfs("sif f block[1] 0");
    debugfs("sif g block[0] 15000");
    expect(MappingFault::BlockShared { block: 15_000, other: 12 });
    debugfs("feature shared_blocks");
    assert_eq!(parse_file(&image).unwrap(), 3);
    // A directory shares nothing all the same.
    debugfs("mkdir d");
    let names = run("debugfs", &["-R", "blocks d", text(&image)]);
    let block = String::from_utf8_lossy(&names.stdout).trim().parse().unwrap();
    debugfs("mkdir e");
    debugfs(&format!("sif e block[0] {block}"));
    expect(MappingFault::BlockShared { block, other: 14 });
}
