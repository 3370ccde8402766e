//! Volumes as mke2fs makes them with one feature or another, filled by it and debugfs: read as they were filled.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of tests are small")]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use vmbake_disk::ext4::{ReadError, probe, read, read_base};
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::{Kind, Origin, Tree};

/// What is at a place of a sparse file that only a block of blocks of blocks of numbers leads to, where blocks have 1 KiB.
const FAR: (u64, &[u8]) = (70 << 20, &[b'3'; 4096]);

/// How mke2fs is called, and whether such a volume can be a base.
const VOLUMES: &[(&[&str], bool)] = &[
    (&["-t", "ext2", "-r", "0"], true),
    (&["-t", "ext2", "-b", "1024", "-I", "128"], true),
    (&["-t", "ext2", "-b", "2048", "-O", "^filetype"], true),
    (&["-t", "ext2", "-b", "4096", "-O", "^dir_index,^sparse_super,^resize_inode"], true),
    (&["-t", "ext3", "-b", "1024"], true),
    (&["-t", "ext3", "-b", "4096"], true),
    (&["-t", "ext4", "-b", "1024"], true),
    (&["-t", "ext4", "-b", "1024", "-I", "1024"], true),
    (&["-t", "ext4", "-b", "2048", "-g", "1024"], true),
    (&["-t", "ext4", "-b", "8192"], true),
    (&["-t", "ext4", "-b", "16384"], true),
    (&["-t", "ext4", "-b", "32768"], true),
    (&["-t", "ext4", "-b", "65536"], true),
    (&["-t", "ext4", "-b", "65536", "-O", "^extents,^64bit,^metadata_csum"], true),
    (&["-t", "ext4", "-b", "1024", "-O", "^extents,^64bit"], true),
    (&["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,uninit_bg"], true),
    (&["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,uninit_bg,^64bit,^flex_bg"], true),
    (&["-t", "ext4", "-b", "1024", "-g", "256", "-O", "meta_bg,^resize_inode"], true),
    (&["-t", "ext4", "-b", "4096", "-O", "meta_bg,^resize_inode,^64bit"], true),
    (&["-t", "ext4", "-b", "1024", "-g", "512", "-O", "sparse_super2"], true),
    (&["-t", "ext4", "-b", "4096", "-O", "bigalloc", "-C", "65536"], true),
    (&["-t", "ext4", "-b", "1024", "-O", "bigalloc", "-C", "16384"], true),
    (&["-t", "ext4", "-b", "4096", "-O", "inline_data"], true),
    (&["-t", "ext4", "-b", "1024", "-I", "512", "-O", "inline_data,^metadata_csum"], true),
    (&["-t", "ext4", "-b", "4096", "-O", "ea_inode"], true),
    (&["-t", "ext4", "-b", "1024", "-O", "ea_inode,^metadata_csum"], true),
    (&["-t", "ext4", "-b", "1024", "-O", "large_dir,stable_inodes,fast_commit,orphan_file"], true),
    (&["-t", "ext4", "-O", "quota"], false),
    (&["-t", "ext4", "-O", "project,quota"], false),
    (&["-t", "ext4", "-O", "mmp"], false),
    (&["-t", "ext4", "-O", "verity"], false),
    (&["-t", "ext4", "-O", "encrypt"], false),
    (&["-t", "ext4", "-O", "casefold"], false),
];

/// Files, directories and links on the host, for mke2fs to copy.
fn host_tree(dir: &Path) -> PathBuf {
    let root = dir.join("tree");
    let at = |name: &str| root.join(name);
    std::fs::create_dir_all(at("many/deep/er")).unwrap();
    for index in 0..300 {
        std::fs::write(at(&format!("many/a-file-with-quite-a-long-name-{index}")), format!("{index}")).unwrap();
    }
    for len in [0, 1, 59, 60, 61, 150, 1024, 12 * 1024, 12 * 1024 + 1, 300 * 1024 + 7] {
        let content: Vec<u8> = (0..len).map(|at| (at * 31 % 251) as u8 + 1).collect();
        std::fs::write(at(&format!("many/deep/{len}")), content).unwrap();
    }
    for len in [1, 59, 60, 150, 900] {
        symlink("l".repeat(len), at(&format!("link{len}"))).unwrap();
    }
    std::fs::hard_link(at("many/deep/150"), at("again")).unwrap();
    let sparse = File::create(at("sparse")).unwrap();
    for (offset, content) in [(13 << 10, &b"one level"[..]), (300 << 10, b"two levels"), FAR] {
        sparse.write_all_at(content, offset).unwrap();
    }
    // Old inodes have no fractions of seconds.
    run("find", &[text(&root), "-exec", "touch", "-h", "-d", "@1700000000", "{}", "+"]);
    root
}

/// Makes a volume, copies the tree into it, and adds attributes; returns which.
fn make(args: &[&str], tree: &Path, image: &Path, dir: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    drop(std::fs::remove_file(image));
    run("mke2fs", &[&["-q", "-F"], args, &["-d", text(tree), text(image), "64M"]].concat());
    // In the inode where there is room, in a block, and in an inode; revision 0 has none of them.
    let mut values = if args.contains(&"0") { vec![] } else { vec![("user.small", 12), ("user.block", 700)] };
    if args.iter().any(|arg| arg.contains("ea_inode")) {
        // Too much for a block with anything else; debugfs takes no more.
        values.push(("user.inode", args[3].parse().unwrap()));
    }
    let mut all = BTreeMap::new();
    for (name, len) in values {
        let value: Vec<u8> = (0..len).map(|at| (at % 89) as u8 + b'!').collect();
        std::fs::write(dir.join("value"), &value).unwrap();
        let request = format!("ea_set -f {} again {name}", text(&dir.join("value")));
        run("debugfs", &["-w", "-R", &request, text(image)]);
        all.insert(name.as_bytes().to_vec(), value);
    }
    // debugfs does not count the blocks of an inode with a value to the inode that has the attribute.
    run_any("e2fsck", &["-fy", text(image)]);
    fsck(image);
    all
}

fn open_as(image: &Path, base: bool) -> Result<Tree, ReadError> {
    let source = Arc::new(FileSource::new(File::open(image).unwrap()).unwrap());
    let read = if base { read_base } else { read };
    read(source, Origin::default()).map(|(_, tree)| tree)
}

/// The kernel lists none of them either, and debugfs does.
#[test]
fn attributes_of_no_namespace_are_not_shown() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (tree, image) = (dir.path().join("tree"), dir.path().join("image"));
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("file"), "x").unwrap();
    let options = ["-q", "-F", "-t", "ext4", "-O", "^metadata_csum", "-d", text(&tree), text(&image), "4M"];
    run("mke2fs", &options);
    run("debugfs", &["-w", "-R", "ea_set file user.name value", text(&image)]);
    let xattrs = || {
        let tree = open_as(&image, false).unwrap();
        tree.inode(tree.lookup(b"/file").unwrap()).meta.xattrs.clone()
    };
    assert_eq!(xattrs()[&b"user.name"[..]], b"value");
    let mut bytes = std::fs::read(&image).unwrap();
    let is_entry = |entry: &[u8]| entry.starts_with(&[4, 1]) && entry.ends_with(b"name");
    let at = bytes.windows(20).position(is_entry).unwrap();
    bytes[at + 1] = 0;
    std::fs::write(&image, bytes).unwrap();
    assert!(xattrs().is_empty());
}

#[test]
fn volumes_of_any_features_are_read_as_they_were_filled() {
    if !have(&["mke2fs", "debugfs", "e2fsck", "touch", "find"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let host = host_tree(dir.path());
    let mut expected = kernel_table(&host);
    // What the volume says of its root, and what the host does, need not be the same.
    expected.remove("");
    let image = dir.path().join("image");
    for (args, can_be_base) in VOLUMES {
        let xattrs = make(args, &host, &image, dir.path());
        let tree = open_as(&image, false).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        let mut found = table(&tree);
        found.remove("");
        for path in ["/again", "/many/deep/150"] {
            let seen = found.get_mut(path).unwrap();
            assert_eq!(std::mem::take(&mut seen.meta.xattrs), xattrs, "{args:?}: {path}");
        }
        println!("{args:?}");
        assert_same(&found, &expected);
        let Kind::File(map) = &tree.inode(tree.lookup(b"/sparse").unwrap()).kind else { panic!("{args:?}") };
        let mut far = vec![0; FAR.1.len()];
        map.read_exact_at(tree.sources(), &mut far, FAR.0).unwrap();
        assert_eq!(far, FAR.1, "{args:?}");
        match open_as(&image, true) {
            Ok(base) => assert!(*can_be_base && table(&base) == table(&tree), "{args:?}"),
            Err(ReadError::Unsupported { feature, .. }) => {
                assert!(!can_be_base && feature.contains("feature"), "{feature}")
            }
            Err(other) => panic!("{args:?}: {other}"),
        }
    }
}

#[test]
fn flags_are_read_but_not_of_a_base() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    for (request, word) in [
        ("sif / flags 0x80010", "immutable"),
        ("sif / flags 0x80020", "append-only"),
        ("sif / flags 0x180000", "fs-verity"),
        ("sif / flags 0x40080000", "case-insensitive"),
        ("ssv state 0", "not clean"),
        ("ssv state 3", "not clean"),
        ("ssv last_orphan 12", "inode 12"),
        ("feature orphan_present", "orphan_present"),
        ("feature FEATURE_R27", "FEATURE_R27"),
        ("feature FEATURE_C27", "FEATURE_C27"),
    ] {
        drop(std::fs::remove_file(&image));
        run("mke2fs", &["-q", "-F", "-t", "ext4", "-O", "orphan_file", text(&image), "16M"]);
        run("debugfs", &["-w", "-R", request, text(&image)]);
        assert_eq!(open_as(&image, false).unwrap().walk().count(), 1, "{request}");
        match open_as(&image, true) {
            Err(ReadError::Unsupported { feature, .. }) => assert!(feature.contains(word), "{request}: {feature}"),
            other => panic!("{request}: {other:?}"),
        }
    }
    let info = probe(&FileSource::new(File::open(&image).unwrap()).unwrap()).unwrap();
    assert_eq!(info.unknown_features, ["FEATURE_C27"]);
    assert!(info.check_base().is_err());
}

/// The superblock counts free blocks in blocks, group descriptors in clusters.
#[test]
fn free_blocks_are_those_of_dumpe2fs() {
    if !have(&["mke2fs", "dumpe2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    for options in [&["-b", "4096"][..], &["-b", "1024"], &["-b", "1024", "-O", "bigalloc", "-C", "16384"]] {
        run("mke2fs", &[&["-q", "-F", "-t", "ext4"], options, &[text(&image), "64M"]].concat());
        let said = String::from_utf8(run("dumpe2fs", &["-h", text(&image)]).stdout).unwrap();
        let free = said.lines().find_map(|line| line.strip_prefix("Free blocks:")).unwrap().trim().to_owned();
        let info = probe(&FileSource::new(File::open(&image).unwrap()).unwrap()).unwrap();
        assert_eq!(info.free_blocks.to_string(), free, "{options:?}");
    }
}
