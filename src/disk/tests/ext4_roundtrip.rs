//! Authored volumes as others see them: e2fsck, debugfs, the kernel, and our own reader.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::path::Path;

use crate::common::*;
use proptest::prelude::*;
use vmbake_disk::ext4::{Depth, Want, read_some};
use vmbake_disk::source::{Extent, FileSource, Map};
use vmbake_disk::tree::{Kind, Origin, Tree};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_come_back(tree in any_tree()) {
        if !have(&["e2fsck", "debugfs"]) {
            return Ok(());
        }
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        build(&tree, &smallest(), &image);
        let expected = table(&tree);
        assert_same(&table(&open(&image)), &expected);
        let dump = dir.path().join("dump");
        std::fs::create_dir(&dump).unwrap();
        run("debugfs", &["-R", &format!("rdump / {}", text(&dump)), text(&image)]);
        for (path, seen) in expected.iter().filter(|(_, seen)| seen.what.starts_with("file")) {
            let found = std::fs::read(dump.join(&path[1..])).unwrap();
            prop_assert!(found == seen.content, "{path}: debugfs reads {} bytes of {}", found.len(), seen.what);
        }
    }
}

/// Every kind of node and attribute in one tree.
fn hard_cases() -> Tree {
    let mut tree = empty_tree();
    for path in ["/etc", "/dev", "/deep", "/deep/a", "/deep/a/b"] {
        put(&mut tree, path, Kind::directory());
    }
    put_file(&mut tree, "/etc/hostname", b"golden\n");
    put_file(&mut tree, "/empty", b"");
    let linked = put_file(&mut tree, "/deep/linked", &[0xa5; 10_000]);
    let etc = tree.lookup(b"/etc").unwrap();
    tree.link(etc, b"also", linked).unwrap();
    tree.link(etc, "ünïcode".as_bytes(), linked).unwrap();
    put(&mut tree, "/fast", Kind::Symlink(vec![b'f'; 59]));
    put(&mut tree, "/slow", Kind::Symlink(vec![b's'; 60]));
    put(&mut tree, "/slowest", Kind::Symlink(vec![b'x'; 4095]));
    put(&mut tree, "/dev/null", Kind::CharDevice { major: 1, minor: 3 });
    put(&mut tree, "/dev/big", Kind::CharDevice { major: 4095, minor: 1_048_575 });
    put(&mut tree, "/dev/loop300", Kind::BlockDevice { major: 7, minor: 300 });
    put(&mut tree, "/dev/pipe", Kind::Fifo);
    put(&mut tree, "/dev/socket", Kind::Socket);
    for index in 0..500 {
        put_file(&mut tree, &format!("/deep/a/b/a-name-that-fills-blocks-{index:04}"), format!("{index}").as_bytes());
    }
    metadata_cases(&mut tree);
    let source = bytes(&mut tree, &[0x5a; 20_000]);
    let mut map = Map::hole(3 << 20);
    for (at, len, offset) in
        [(100, 50, 7), (150, 5000, 3000), (9000, 1, 0), (1 << 20, 12_288, 1), ((3 << 20) - 5, 5, 0)]
    {
        map.push(Extent { at, len, source, offset });
    }
    put(&mut tree, "/sparse", Kind::File(map));
    put(&mut tree, "/hole", Kind::File(Map::hole(123_457)));
    tree
}

fn metadata_cases(tree: &mut Tree) {
    for (index, (secs, nanos)) in
        [(-(1 << 31), 1), (-1, 999_999_999), (0, 0), (1 << 32, 5), ((3 << 32) - (1 << 31) - 1, 7)]
            .into_iter()
            .enumerate()
    {
        let id = put_file(tree, &format!("/time{index}"), b"t");
        tree.meta_mut(id).mtime = vmbake_disk::tree::Timestamp { secs, nanos };
    }
    let id = put_file(tree, "/suid", b"#!");
    let meta = tree.meta_mut(id);
    (meta.mode, meta.uid, meta.gid) = (0o6755, 65_536, 4_294_967_294);
    meta.xattrs.insert(b"security.capability".to_vec(), b"\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec());
    let id = put_file(tree, "/acl", b"");
    let meta = tree.meta_mut(id);
    meta.mode = 0o670;
    meta.xattrs.insert(b"system.posix_acl_access".to_vec(), ACL.to_vec());
    meta.xattrs.insert(b"user.long".to_vec(), vec![b'v'; 3000]);
    meta.xattrs.insert(b"trusted.empty".to_vec(), vec![]);
    let etc = tree.lookup(b"/etc").unwrap();
    tree.meta_mut(etc).mode = 0o1777;
    tree.meta_mut(etc).xattrs.insert(b"system.posix_acl_default".to_vec(), ACL.to_vec());
}

#[test]
fn hard_cases_are_what_the_kernel_sees() {
    if !have(&["e2fsck"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let tree = hard_cases();
    build(&tree, &smallest(), &image);
    assert_same(&table(&open(&image)), &table(&tree));
    if can_mount() {
        let mount = Mount::new(&image, "loop,ro");
        assert_same(&kernel_table(mount.path()), &table(&tree));
        holes_have_no_blocks(mount.path());
    }
}

fn holes_have_no_blocks(root: &Path) {
    use std::os::unix::fs::MetadataExt;
    let blocks = |name: &str| std::fs::metadata(root.join(name)).unwrap().blocks() / 8;
    assert_eq!(blocks("hole"), 0);
    // Bytes 100 to 5150 take two blocks, 9000 the third, three blocks at 1 MiB, and the last one.
    assert_eq!(blocks("sparse"), 7);
}

#[test]
fn a_volume_read_and_authored_again_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    build(&hard_cases(), &smallest(), &first);
    let tree = open(&first);
    build(&tree, &smallest(), &second);
    assert_same(&table(&open(&second)), &table(&tree));
}

#[test]
fn a_part_that_is_read_is_what_the_whole_has_there() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let mut tree = hard_cases();
    put(&mut tree, "/deep/link", Kind::Symlink(b"../deep/./a/../../etc".to_vec()));
    put(&mut tree, "/deep/loop", Kind::Symlink(b"loop".to_vec()));
    put(&mut tree, "/deep/top", Kind::Symlink(b"/etc/hostname".to_vec()));
    build(&tree, &smallest(), &image);
    let whole = open(&image);
    let part = |wants: &[(&[u8], Depth)]| {
        let wants: Vec<Want<'_>> = wants.iter().map(|(path, depth)| Want { path, depth: *depth }).collect();
        let source = FileSource::new(std::fs::File::open(&image).unwrap()).unwrap();
        read_some(std::sync::Arc::new(source), Origin::default(), &wants).unwrap().1
    };
    let names = |tree: &Tree| tree.walk().map(|(path, ..)| String::from_utf8(path).unwrap()).collect::<Vec<_>>();
    for (path, id, expected) in whole.walk() {
        let part = part(&[(&path, Depth::Node)]);
        let found = part.inode(part.lookup(&path).unwrap());
        assert_eq!(found.meta, expected.meta);
        match &expected.kind {
            Kind::Directory(_) => assert_eq!(names(&part).len(), path.iter().filter(|byte| **byte == b'/').count() + 1),
            kind => assert_eq!(&found.kind, kind),
        }
        assert_eq!(part.resolve(&path).is_ok(), whole.resolve(&path).is_ok(), "{id:?}");
    }
    let large = part(&[(b"/deep/a/b", Depth::Entries)]);
    assert_eq!(large.walk_from(large.lookup(b"/deep/a/b").unwrap()).count(), 501);
    // Names of one file are names of one file, and the volume's own directory does not show.
    let top = part(&[(b"/deep/link", Depth::Entries), (b"/", Depth::Targets), (b"/deep/linked", Depth::Node)]);
    assert_eq!(top.lookup(b"/etc/also"), top.lookup(b"/deep/linked"));
    let listed = |tree: &Tree| tree.walk().filter(|(path, ..)| path.iter().filter(|b| **b == b'/').count() < 2).count();
    assert_eq!(listed(&top), listed(&whole));
    let targets = part(&[(b"/deep", Depth::Targets)]);
    assert!(targets.lookup(b"/etc/hostname").is_some() && targets.lookup(b"/etc/also").is_none());
    assert_eq!(
        names(&part(&[(b"/none/x", Depth::Entries), (b"/empty/x", Depth::Node), (b"", Depth::Node)])),
        ["", "/empty"]
    );
}
