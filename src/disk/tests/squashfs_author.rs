//! SquashFS volumes as unsquashfs and the kernel see them, that they are the same each time, and what is refused.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::fs::File;
use std::path::Path;

use crate::common::*;
use crate::image_tools::noise;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use vmbake_disk::source::{Extent, Map};
use vmbake_disk::squashfs::{self, SquashfsError};
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, ROOT, Timestamp, Tree};

/// The bytes of [`fixed_tree`]; they change with the versions of backhand and zstd.
const GOLDEN: &str = "be3ad703167f809c896d263a2f4c1e75aa474604c7f0fbe0b71aa696f5c2a2cd";

/// What a SquashFS holds of a time.
fn at(secs: i64) -> Timestamp {
    Timestamp { secs, nanos: 0 }
}

fn empty() -> Tree {
    Tree::new(Metadata::root(0o755, at(0)), Origin::default())
}

/// Writes a volume to `path`.
fn build(tree: &Tree, path: &Path) {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    let len = squashfs::write(tree, &file).unwrap();
    assert_eq!((len, len % 4096), (file.metadata().unwrap().len(), 0));
}

fn fixed_tree() -> Tree {
    let mut tree = empty();
    for path in ["/usr", "/usr/bin", "/usr/many"] {
        put(&mut tree, path, Kind::directory());
    }
    put_file(&mut tree, "/usr/bin/say", b"#!/bin/sh\necho say\n");
    put_file(&mut tree, "/usr/empty", b"");
    put(&mut tree, "/usr/link", Kind::Symlink(b"../usr/bin/say".to_vec()));
    // On both sides of a block, with and without a rest, compressible or not.
    for (name, content) in [
        ("block", noise(1, 128 << 10)),
        ("less", noise(2, (128 << 10) - 1)),
        ("more", noise(3, (128 << 10) + 1)),
        ("text", b"text\n".repeat(100_000)),
    ] {
        put_file(&mut tree, &format!("/usr/{name}"), &content);
    }
    let source = bytes(&mut tree, &[0x5a; 20_000]);
    let mut map = Map::hole(3 << 20);
    map.push(Extent { at: 100, len: 50, source, offset: 7 });
    map.push(Extent { at: (2 << 20) - 5, len: 6000, source, offset: 0 });
    put(&mut tree, "/usr/sparse", Kind::File(map));
    // More than a list of names holds, and more than 64 KiB of them.
    for index in 0..1500 {
        put_file(&mut tree, &format!("/usr/many/a-name-that-fills-a-directory-soon-{index:05}"), b"x");
    }
    let ids: Vec<_> = tree.walk().map(|(_, id, _)| id).filter(|id| *id != ROOT).collect();
    for id in ids {
        tree.meta_mut(id).mtime = at(EPOCH);
    }
    let owned = tree.lookup(b"/usr/bin/say").unwrap();
    let meta = tree.meta_mut(owned);
    (meta.mode, meta.uid, meta.gid) = (0o6755, 65_536, 7);
    tree
}

/// A volume as others see it.
fn judge(tree: &Tree, image: &Path) {
    let expected = table(tree);
    if have(&["unsquashfs"]) {
        let dir = tempfile::tempdir().unwrap();
        let found = dir.path().join("found");
        run("unsquashfs", &["-q", "-n", "-ignore-errors", "-d", text(&found), text(image)]);
        for (path, seen) in expected.iter().filter(|(_, seen)| seen.what.starts_with("file")) {
            assert!(std::fs::read(found.join(&path[1..])).unwrap() == seen.content, "{path}");
        }
        let listed = String::from_utf8(run("unsquashfs", &["-lls", text(image)]).stdout).unwrap();
        assert_eq!(listed.lines().filter(|line| line.contains("squashfs-root")).count(), expected.len());
    }
    if can_mount() {
        let mount = Mount::of("squashfs", image, "loop,ro");
        let mut found = kernel_table(mount.path());
        // Each name is a separate file.
        found.iter_mut().for_each(|(path, seen)| seen.first.clone_from(path));
        let mut expected = expected;
        expected.iter_mut().for_each(|(path, seen)| seen.first.clone_from(path));
        assert_same(&found, &expected);
    }
}

/// The tree without what no SquashFS of ours holds.
fn plain(random: &Tree) -> Tree {
    let mut tree = empty();
    for (path, _, inode) in random.walk().filter(|(path, ..)| !path.is_empty()) {
        let kind = match &inode.kind {
            Kind::Directory(_) => Kind::directory(),
            Kind::File(map) => {
                let mut content = vec![0; map.len() as usize];
                map.read_exact_at(random.sources(), &mut content, 0).unwrap();
                let source = bytes(&mut tree, &content);
                Kind::File(Map::whole(source, 0, map.len()))
            }
            Kind::Symlink(target) => Kind::Symlink(target.clone()),
            _ => continue,
        };
        let meta = Metadata { mtime: at(inode.meta.mtime.secs & 0xffff_ffff), xattrs: [].into(), ..inode.meta.clone() };
        let origin = tree.first_origin();
        tree.place(&path, Inode { meta, kind, origin }).unwrap();
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_are_what_others_see(random in any_tree()) {
        let dir = tempfile::tempdir().unwrap();
        let (image, tree) = (dir.path().join("image"), plain(&random));
        build(&tree, &image);
        judge(&tree, &image);
    }
}

#[test]
fn hard_cases_are_what_others_see_and_the_same_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let (image, again) = (dir.path().join("image"), dir.path().join("again"));
    let tree = fixed_tree();
    build(&tree, &image);
    judge(&tree, &image);
    build(&fixed_tree(), &again);
    let bytes = std::fs::read(&image).unwrap();
    assert!(bytes == std::fs::read(&again).unwrap());
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, GOLDEN);
    // Nothing but directories, and nothing but a root.
    for tree in [empty(), {
        let mut tree = empty();
        put(&mut tree, "/usr", Kind::directory());
        tree
    }] {
        let tree = plain(&tree);
        build(&tree, &image);
        judge(&tree, &image);
    }
}

#[test]
fn what_it_cannot_hold_is_refused_by_name() {
    let file = tempfile::tempfile().unwrap();
    let refused = |change: &dyn Fn(&mut Tree), expected: &str| {
        let mut tree = empty();
        let id = put_file(&mut tree, "/file", b"content");
        tree.meta_mut(id).mtime = at(0);
        change(&mut tree);
        match squashfs::write(&tree, &file) {
            Err(SquashfsError::Unsupported { path, what }) => assert_eq!(format!("{path} {what}"), expected),
            other => panic!("{expected}: {other:?}"),
        }
    };
    let meta = |change: fn(&mut Metadata)| {
        move |tree: &mut Tree| {
            let id = tree.lookup(b"/file").unwrap();
            change(tree.meta_mut(id));
        }
    };
    let xattr = meta(|meta| drop(meta.xattrs.insert(b"security.capability".to_vec(), vec![1])));
    refused(&xattr, "/file has the extended attribute security.capability");
    refused(&meta(|meta| meta.mtime = at(-1)), "/file has the time -1, in seconds since 1970");
    refused(&meta(|meta| meta.mtime = at(1 << 32)), "/file has the time 4294967296, in seconds since 1970");
    let place = |path: &'static str, kind: Kind| move |tree: &mut Tree| _ = put(tree, path, kind.clone());
    refused(&place("/pipe", Kind::Fifo), "/pipe is a named pipe");
    refused(&place("/dev", Kind::BlockDevice { major: 1, minor: 2 }), "/dev is a block device");
    refused(&|tree| tree.meta_mut(ROOT).mtime = at(1), "/ modification time is not 0");
}
