//! Size, placement, determinism, large inputs and refusals of the ext4 author.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::collections::BTreeMap;

use crate::common::*;
use sha2::{Digest, Sha256};
use vmbake_disk::ext4::{AuthorError, Refusal, Size, Volume, author, probe};
use vmbake_disk::source::{Extent, FileSource, Map, SourceId};
use vmbake_disk::tree::{Inode, Kind, Origin, OriginId, ROOT, Timestamp, Tree};

/// The bytes of [`fixed_tree`]; they change with mkext4's version and with our placement, and with nothing else.
const GOLDEN: &str = "fafa04eeb4cb6325b38e528e4270c2178eb63a7663dc8bbaff0195fc26d87ea7";

pub fn fixed_tree() -> Tree {
    let mut tree = empty_tree();
    put(&mut tree, "/etc", Kind::directory());
    put_file(&mut tree, "/etc/hostname", b"golden\n");
    put(&mut tree, "/bin", Kind::Symlink(b"usr/bin".to_vec()));
    let acl = put_file(&mut tree, "/acl", &[1; 5000]);
    tree.meta_mut(acl).xattrs.insert(b"system.posix_acl_access".to_vec(), ACL.to_vec());
    tree
}

fn digest(volume: &Volume) -> String {
    let mut reader = vmbake_disk::source::MapReader::new(volume.map(), volume.sources());
    let (mut hash, mut buf) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let len = std::io::Read::read(&mut reader, &mut buf).unwrap();
        if len == 0 {
            return hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        }
        hash.update(&buf[..len]);
    }
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let volumes = [author(&fixed_tree(), &smallest()).unwrap(), author(&fixed_tree(), &smallest()).unwrap()];
    assert_eq!(digest(&volumes[0]), GOLDEN);
    assert_eq!(digest(&volumes[1]), GOLDEN);
}

#[test]
fn the_superblock_is_what_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let volume = build(&fixed_tree(), &options(Size::Exact(200 * MIB + 777)), &image);
    assert_eq!(volume.len(), 200 * MIB + 777);
    let info = probe(&FileSource::new(std::fs::File::open(&image).unwrap()).unwrap()).unwrap();
    assert_eq!((&info.uuid, &info.label[..], info.hash_seed), (b"vmbake-test-uuid", &b"cloudimg"[..], [7; 16]));
    let stats = volume.stats();
    assert_eq!((info.blocks, info.free_blocks, info.reserved_blocks), (51_200, stats.free_blocks, 51_200 / 20));
    assert_eq!((info.inodes, info.inodes - info.free_inodes), (12_800, 10 + 1 + 4));
    assert_eq!(stats.data_start.unwrap() % (4 * MIB), 0, "a 64th of 200 MiB, as a power of two");
    assert!(info.features.contains(&"metadata_csum"), "{:?}", info.features);
}

#[test]
fn too_small_a_size_tells_the_size_that_is_needed() {
    let mut tree = empty_tree();
    let source = bytes(&mut tree, &vec![1; 8 << 20]);
    for index in 0..12 {
        put(&mut tree, &format!("/f{index}"), Kind::File(Map::whole(source, 0, 8 * MIB)));
    }
    let Err(AuthorError::TooSmall { needed_bytes, given_bytes }) = author(&tree, &options(Size::Exact(40 * MIB)))
    else {
        panic!("expected TooSmall")
    };
    assert_eq!(given_bytes, 40 * MIB);
    assert!((96 * MIB..110 * MIB).contains(&needed_bytes), "{needed_bytes}");
    let dir = tempfile::tempdir().unwrap();
    build(&tree, &options(Size::Exact(needed_bytes)), &dir.path().join("image"));
    let below = author(&tree, &options(Size::Exact(needed_bytes - MIB)));
    assert!(matches!(below, Err(AuthorError::TooSmall { .. })), "{below:?}");
    assert!(matches!(author(&tree, &options(Size::Exact(0))), Err(AuthorError::TooSmall { .. })));
    assert!(matches!(author(&tree, &options(Size::Exact(1 << 45))), Err(AuthorError::TooLarge { .. })));
}

#[test]
fn the_smallest_size_keeps_its_margin() {
    let dir = tempfile::tempdir().unwrap();
    for (count, margin) in [(10, 0), (3000, 0), (3000, 300 * MIB)] {
        let mut tree = empty_tree();
        for index in 0..count {
            put_file(&mut tree, &format!("/file-{index}"), format!("content {index}").as_bytes());
        }
        let volume = build(&tree, &options(Size::Smallest { margin_bytes: margin }), &dir.path().join("image"));
        let free = volume.stats().free_blocks * 4096;
        assert!(free >= margin && free <= margin + 24 * MIB, "{free} free, margin {margin}");
        assert_eq!(volume.len() % MIB, 0);
    }
}

#[test]
fn awkward_sizes_are_clean() {
    let dir = tempfile::tempdir().unwrap();
    let group = 128 * MIB;
    // One block more than a group, flex groups, the last group too small for its metadata, the boundary at a backup.
    for size in
        [16 * MIB, group + 4096, group + MIB, 3 * group + 4096 * 40, 16 * group + MIB, 17 * group, 50 * group - 4096]
    {
        let volume = build(&fixed_tree(), &options(Size::Exact(size)), &dir.path().join("image"));
        assert_eq!(volume.len(), size);
    }
}

/// The location of each file's content on the volume.
fn places(tree: &Tree, volume: &Volume) -> BTreeMap<String, Vec<u64>> {
    let mut by_source: BTreeMap<(SourceId, u64), u64> = BTreeMap::new();
    for extent in volume.map().extents() {
        for at in (0..extent.len).step_by(4096) {
            by_source.insert((extent.source, extent.offset + at), extent.at + at);
        }
    }
    let mut all = BTreeMap::new();
    for (path, _, inode) in tree.walk() {
        if let Kind::File(map) = &inode.kind {
            let blocks =
                map.extents().iter().flat_map(|e| (0..e.len).step_by(4096).map(move |at| (e.source, e.offset + at)));
            all.insert(String::from_utf8(path).unwrap(), blocks.map(|block| by_source[&block]).collect());
        }
    }
    all
}

/// A base of 300 files whose order in the source differs from that of their paths.
fn base() -> Tree {
    let mut tree = empty_tree();
    let source = bytes(&mut tree, &vec![3; 300 * 8192]);
    for index in 0..300u64 {
        let at = (index * 7 % 300) * 8192;
        put(&mut tree, &format!("/base{index:03}"), Kind::File(Map::whole(source, at, 8192)));
    }
    tree
}

#[test]
fn a_later_layer_does_not_move_what_was_there() {
    let size = options(Size::Exact(1024 * MIB));
    let before = base();
    let mut after = base();
    for dir in ["/aaa", "/aaa/new", "/zzz"] {
        put(&mut after, dir, Kind::directory());
    }
    for index in 0..200 {
        put_file(&mut after, &format!("/aaa/new/a-file-with-quite-a-long-name-{index}"), &[9; 3000]);
    }
    let volumes = [author(&before, &size).unwrap(), author(&after, &size).unwrap()];
    let (old, new) = (places(&before, &volumes[0]), places(&after, &volumes[1]));
    assert_eq!(old.len(), 300);
    for (path, place) in &old {
        assert_eq!(&new[path], place, "{path} moved");
    }
    let data = volumes[0].stats().data_start.unwrap();
    assert_eq!((data % (16 * MIB), volumes[1].stats().data_start), (0, Some(data)));
    // In the base's physical order the whole base is one run.
    let whole = volumes[0].map().extents().iter().find(|extent| extent.at == data).unwrap();
    assert_eq!(whole.len, 300 * 8192);
}

/// A tree as layers make it: a base, three artifacts of several sizes, and files of a layer. The second artifact is `grown`
/// or not.
fn layered(grown: bool) -> Tree {
    let mut tree = base();
    let artifact = |name: &str| Origin { layer: "l".to_owned(), artifact: Some(name.to_owned()), digest: None };
    let fill = |count: u64, byte: u8, len: usize| (0..count).map(move |index| (index, vec![byte; len]));
    let place = |tree: &mut Tree, origin: OriginId, path: String, kind: Kind| {
        tree.place(path.as_bytes(), Inode { meta: meta(0o755), kind, origin }).unwrap()
    };
    let extra = u64::from(grown);
    for (name, count, byte, len) in [
        ("large", 2, 1, 9 << 20),
        ("changed", 20 + 5 * extra, CHANGED, (1 << 20) + (40 << 10) * usize::from(grown)),
        ("small", 30, 4, 5000),
    ] {
        let origin = tree.add_origin(artifact(name));
        for dir in 0..=if name == "changed" { extra } else { 0 } {
            place(&mut tree, origin, format!("/{name}{dir}"), Kind::directory());
            place(&mut tree, origin, format!("/{name}{dir}/link"), Kind::Symlink(vec![b'x'; 100]));
        }
        for (index, content) in fill(count, byte, len) {
            let content = [&[byte, u8::try_from(index).unwrap()][..], &content].concat();
            let source = bytes(&mut tree, &content);
            let map = Map::whole(source, 0, content.len() as u64);
            place(&mut tree, origin, format!("/{name}0/file{index}"), Kind::File(map));
        }
    }
    let origin = tree.add_origin(Origin { layer: "l".to_owned(), ..Origin::default() });
    // A directory of the base that a layer gives another owner stays with what is in it.
    tree.set_origin(ROOT, origin);
    let source = bytes(&mut tree, if grown { b"changed too" } else { b"unchanged" });
    place(&mut tree, origin, "/record".to_owned(), Kind::File(Map::whole(source, 0, 9)));
    tree
}

/// What the artifact that changes consists of.
const CHANGED: u8 = 0xa5;

#[test]
fn an_artifact_that_grows_leaves_the_others_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (layered(false), layered(true));
    // Each copy of the superblock is a block that differs.
    for (size, least) in [(1024 * MIB, (95, 80)), (96 * MIB, (0, 0))] {
        let images = [dir.path().join("old"), dir.path().join("new")];
        let volumes = [(&old, &images[0]), (&new, &images[1])]
            .map(|(tree, image)| build(tree, &options(Size::Exact(size)), image));
        for (tree, image) in [(&old, &images[0]), (&new, &images[1])] {
            assert_same(&table(&open(image)), &table(tree));
        }
        // Gaps are free, and holes.
        let stats = volumes[1].stats();
        let written = volumes[1].map().data_len();
        assert!(written < (2 * 9 + 25 * 11 / 10 + 8) * MIB, "{written} bytes, {stats:?}");
        let used = (stats.blocks - stats.free_blocks - u64::from(stats.journal_blocks)) * 4096;
        assert!(used < written + 20 * MIB, "{used} bytes in use, {written} written");
        let [clusters, blocks] = [64 << 10, 512 << 10].map(|len| shared(&volumes, len));
        assert!(clusters >= least.0 && blocks >= least.1, "of {size}: {clusters} % of clusters, {blocks} % of blocks");
    }
    // Without gaps each of them would have moved.
    let size = options(Size::Exact(1024 * MIB));
    let (old_places, new_places) =
        (places(&old, &author(&old, &size).unwrap()), places(&new, &author(&new, &size).unwrap()));
    for (path, place) in old_places.iter().filter(|(path, _)| !path.starts_with("/changed")) {
        assert_eq!(&new_places[path], place, "{path} moved");
    }
}

/// How many of a hundred pieces of two volumes are the same, but for those with blocks of the artifact that changed.
fn shared(volumes: &[Volume; 2], len: usize) -> usize {
    let read = |volume: &Volume, at: u64| {
        let mut piece = vec![0; len];
        volume.map().read_exact_at(volume.sources(), &mut piece, at).unwrap();
        piece
    };
    let (mut all, mut same) = (0, 0);
    for at in (0..volumes[0].len()).step_by(len) {
        let (old, new) = (read(&volumes[0], at), read(&volumes[1], at));
        let changed = |piece: &[u8]| piece.chunks(4096).any(|block| block[..4000].ends_with(&[CHANGED; 1000]));
        if new.iter().all(|byte| *byte == 0) || changed(&old) || changed(&new) {
            continue;
        }
        all += 1;
        same += usize::from(old == new);
    }
    same * 100 / all
}

#[test]
fn a_hundred_thousand_files_in_one_directory() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let mut tree = empty_tree();
    let many = put(&mut tree, "/many", Kind::directory());
    let origin = tree.inode(many).origin;
    for index in 0..100_000 {
        let file = Inode { meta: meta(0o600), kind: Kind::File(Map::hole(index)), origin };
        tree.insert(many, format!("file-number-{index}").as_bytes(), file).unwrap();
    }
    build(&tree, &smallest(), &image);
    let back = open(&image);
    let names = |tree: &Tree| tree.walk().map(|(path, ..)| path).collect::<Vec<_>>();
    assert!(names(&back) == names(&tree));
}

#[test]
fn large_and_sparse_files() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let sparse_source = dir.path().join("5g");
    std::fs::File::create(&sparse_source).unwrap().set_len(5 << 30).unwrap();
    let mut tree = empty_tree();
    let file = FileSource::new(std::fs::File::open(&sparse_source).unwrap()).unwrap();
    let large = tree.sources_mut().add(std::sync::Arc::new(file));
    put(&mut tree, "/allocated", Kind::File(Map::whole(large, 0, (5 << 30) - 3)));
    let small = bytes(&mut tree, b"end");
    let mut map = Map::hole(5 << 30);
    map.push(Extent { at: (5 << 30) - 3, len: 3, source: small, offset: 0 });
    put(&mut tree, "/sparse", Kind::File(map));
    // More extents than one block of an extent tree holds.
    let mut map = Map::hole(4000 * 8192);
    for index in 0..4000 {
        map.push(Extent { at: index * 8192 + 4095, len: 2, source: small, offset: 0 });
        map.push(Extent { at: index * 8192 + 4097, len: 1, source: small, offset: 0 });
    }
    put(&mut tree, "/comb", Kind::File(map));
    let mut map = Map::hole(3000 * 8192);
    (0..3000).for_each(|index| map.push(Extent { at: index * 8192, len: 3, source: small, offset: 0 }));
    put(&mut tree, "/teeth", Kind::File(map));
    let volume = author(&tree, &smallest()).unwrap();
    assert!(volume.stats().metadata_bytes < 4 * MIB, "{:?}", volume.stats());
    write_without_zeros(&volume, &image);
    fsck(&image);
    let back = open(&image);
    for path in ["/comb", "/teeth"] {
        assert!(
            back.read(path.as_bytes(), 64 * MIB).unwrap() == tree.read(path.as_bytes(), 64 * MIB).unwrap(),
            "{path}"
        );
    }
    let map = |tree: &Tree, path: &str| match &tree.inode(tree.lookup(path.as_bytes()).unwrap()).kind {
        Kind::File(map) => map.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((map(&back, "/sparse").len(), map(&back, "/sparse").data_len()), (5 << 30, 4096));
    assert_eq!(map(&back, "/allocated").data_len(), (5 << 30) - 3);
    let mut end = [0; 4];
    map(&back, "/sparse").read_exact_at(back.sources(), &mut end, (5 << 30) - 4).unwrap();
    assert_eq!(&end, b"\0end");
}

/// Like [`write`], but holes of the sources stay holes.
fn write_without_zeros(volume: &Volume, path: &std::path::Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(path).unwrap();
    file.set_len(volume.len()).unwrap();
    let mut at = 0;
    while let Some(data) = volume.map().next_data(volume.sources(), at).unwrap() {
        let mut buf = vec![0; usize::try_from(data.end - data.start).unwrap()];
        volume.map().read_exact_at(volume.sources(), &mut buf, data.start).unwrap();
        file.write_all_at(&buf, data.start).unwrap();
        at = data.end;
    }
}

#[test]
fn a_volume_can_grow_to_twice_its_size() {
    if !have(&["e2fsck", "resize2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    let tree = base();
    build(&tree, &options(Size::Exact(600 * MIB)), &image);
    std::fs::OpenOptions::new().write(true).open(&image).unwrap().set_len(1200 * MIB).unwrap();
    run("e2fsck", &["-f", "-p", text(&image)]);
    run("resize2fs", &[text(&image)]);
    fsck(&image);
    assert_same(&table(&open(&image)), &table(&tree));
    assert_eq!(probe(&FileSource::new(std::fs::File::open(&image).unwrap()).unwrap()).unwrap().blocks, 1200 * 256);
}

fn refusal(change: impl FnOnce(&mut Tree)) -> (String, Refusal) {
    let mut tree = empty_tree();
    put(&mut tree, "/dir", Kind::directory());
    change(&mut tree);
    match author(&tree, &smallest()) {
        Err(AuthorError::Refused { path, refusal }) => (path, refusal),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_ext4_cannot_hold_is_refused_with_its_path() {
    let file = |tree: &mut Tree| put_file(tree, "/dir/f", b"x");
    let place = |tree: &mut Tree, path: &[u8], kind| {
        let origin = tree.inode(ROOT).origin;
        tree.place(path, Inode { meta: meta(0o644), kind, origin }).unwrap()
    };
    let attribute = |name: &'static str, value: Vec<u8>| {
        refusal(|tree| {
            let id = file(tree);
            tree.meta_mut(id).xattrs.insert(name.as_bytes().to_vec(), value);
        })
    };
    let path = "/dir/f".to_owned();
    let bad_name = refusal(|tree| _ = place(tree, b"/dir/\xff", Kind::Fifo));
    assert_eq!(bad_name, ("/dir/\u{fffd}".to_owned(), Refusal::Name));
    let target = |target: &'static [u8]| refusal(|tree| _ = place(tree, b"/dir/f", Kind::Symlink(target.to_vec())));
    assert_eq!(target(b"\xff"), (path.clone(), Refusal::Target));
    assert_eq!(target(b""), (path.clone(), Refusal::TargetLength { len: 0 }));
    assert_eq!(target(&[b'x'; 4096]), (path.clone(), Refusal::TargetLength { len: 4096 }));
    let device = refusal(|tree| _ = place(tree, b"/dir/f", Kind::CharDevice { major: 4096, minor: 0 }));
    assert_eq!(device, (path.clone(), Refusal::Device { major: 4096, minor: 0 }));
    let big = refusal(|tree| _ = place(tree, b"/dir/f", Kind::File(Map::hole(1 << 44))));
    assert_eq!(big, (path.clone(), Refusal::FileSize { len: 1 << 44 }));
    for (secs, nanos) in [(-(1 << 31) - 1, 0), ((3 << 32) - (1 << 31), 0), (0, 1_000_000_000)] {
        let time = refusal(|tree| {
            let id = file(tree);
            tree.meta_mut(id).mtime = Timestamp { secs, nanos };
        });
        assert_eq!(time, (path.clone(), Refusal::Time { secs, nanos }));
    }
    let mode = refusal(|tree| {
        let id = file(tree);
        tree.meta_mut(id).mode = 0o10_644;
    });
    assert_eq!(mode, (path.clone(), Refusal::Mode { mode: 0o10_644 }));
    for name in ["btrfs.x", "user.", "noprefix"] {
        assert_eq!(attribute(name, vec![]), (path.clone(), Refusal::XattrName { name: name.to_owned() }));
    }
    assert_eq!(attribute("user.x", vec![0; 4080]), (path.clone(), Refusal::XattrSize));
    let acl = attribute("system.posix_acl_access", ACL[..10].to_vec());
    assert!(matches!(acl, (_, Refusal::Acl { .. })), "{acl:?}");
    let lost = refusal(|tree| {
        place(tree, b"/lost+found", Kind::directory());
        place(tree, b"/lost+found/#12", Kind::Fifo);
    });
    assert_eq!(lost, ("/lost+found".to_owned(), Refusal::LostFound));
    let links = refusal(|tree| {
        let (id, dir) = (file(tree), tree.lookup(b"/dir").unwrap());
        (0..65_000).for_each(|index| tree.link(dir, format!("link{index:05}").as_bytes(), id).unwrap());
    });
    assert_eq!(links, ("/dir/link64999".to_owned(), Refusal::Links { found: 65_001 }));
    let label = vmbake_disk::ext4::VolumeOptions { label: vec![b'x'; 17], ..smallest() };
    assert!(matches!(author(&empty_tree(), &label), Err(AuthorError::Label { found: 17, .. })));
}

#[test]
fn attributes_fill_one_block_to_the_last_byte() {
    let mut tree = empty_tree();
    put(&mut tree, "/lost+found", Kind::directory());
    let id = put_file(&mut tree, "/f", b"x");
    tree.meta_mut(id).xattrs.insert(b"user.x".to_vec(), vec![b'v'; 4096 - 32 - 4 - 16 - 4]);
    tree.meta_mut(id).xattrs.insert(b"security.y".to_vec(), vec![]);
    assert!(matches!(author(&tree, &smallest()), Err(AuthorError::Refused { refusal: Refusal::XattrSize, .. })));
    tree.meta_mut(id).xattrs.remove(&b"security.y"[..]);
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    build(&tree, &smallest(), &image);
    tree.remove(b"/lost+found").unwrap();
    assert_same(&table(&open(&image)), &table(&tree));
}
