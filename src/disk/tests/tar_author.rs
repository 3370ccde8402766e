//! Tar archives as GNU tar, bsdtar and Python read them, that they are the same each time, and what is refused.

use std::path::Path;

use crate::common::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use vmbake_disk::source::{Extent, Map, ReadAt};
use vmbake_disk::tar::{self, TarRefusal};
use vmbake_disk::tree::{Kind, Metadata, Origin, Timestamp, Tree};

/// The bytes of [`fixed_tree`].
const GOLDEN: &str = "5928eff3478a5b8c835d6d6f01fc906655d12142ff9319738e8b124b30b33d6b";

/// A capability as `getxattr(2)` gives it: `cap_net_raw+ep`.
const CAPABILITY: &[u8] = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

fn archive(tree: &Tree) -> Vec<u8> {
    let disk = tar::author(tree).unwrap();
    let mut content = vec![0; usize::try_from(disk.len()).unwrap()];
    disk.read_exact_at(&mut content, 0).unwrap();
    content
}

/// Everything that an archive can have.
fn fixed_tree() -> Tree {
    let mut tree = empty_tree();
    for path in ["/a", "/a/b", "/dev", "/lost+found"] {
        put(&mut tree, path, Kind::directory());
    }
    put_file(&mut tree, "/a/empty", b"");
    put_file(&mut tree, "/a/block", &[7; 512]);
    let first = put_file(&mut tree, "/a/first", b"two names\n");
    let dir = tree.lookup(b"/a/b").unwrap();
    tree.link(dir, b"second", first).unwrap();
    let long = format!("/a/b/{}", "l".repeat(250));
    put_file(&mut tree, &long, b"long\n");
    put_file(&mut tree, "/a/exactly-one-hundred", b"x");
    put_file(&mut tree, "/a/\u{e4}\u{20ac}", b"not ASCII\n");
    put(&mut tree, "/a/link", Kind::Symlink(b"../dev/null".to_vec()));
    put(&mut tree, "/a/long-link", Kind::Symlink("t/".repeat(200).into_bytes()));
    put(&mut tree, "/dev/null", Kind::CharDevice { major: 1, minor: 3 });
    put(&mut tree, "/dev/big", Kind::BlockDevice { major: 4095, minor: 1_048_575 });
    put(&mut tree, "/dev/fifo", Kind::Fifo);
    let source = bytes(&mut tree, &[0x5a; 9000]);
    let mut map = Map::hole(1 << 20);
    map.push(Extent { at: 100, len: 50, source, offset: 7 });
    map.push(Extent { at: 600_001, len: 6000, source, offset: 0 });
    put(&mut tree, "/a/sparse", Kind::File(map));
    let meta = tree.meta_mut(first);
    (meta.mode, meta.uid, meta.gid) = (0o6755, 4_000_000_000, 7);
    meta.xattrs.insert(b"security.capability".to_vec(), CAPABILITY.to_vec());
    meta.xattrs.insert(b"user.text".to_vec(), b"a line\n\0and = more".to_vec());
    let acl = put_file(&mut tree, "/a/acl", b"acl\n");
    tree.meta_mut(acl).mode = 0o670;
    tree.meta_mut(acl).xattrs.insert(b"system.posix_acl_access".to_vec(), ACL.to_vec());
    let old = put_file(&mut tree, "/a/old", b"old\n");
    tree.meta_mut(old).mtime = Timestamp { secs: -2, nanos: 250_000_000 };
    tree
}

/// The tree as an extracted archive shows it: Linux gives all links the same mode, and no links or devices attributes
/// of users.
fn expected(mut tree: Tree) -> Tree {
    tree.remove(b"/lost+found").unwrap();
    let all: Vec<_> = tree.walk().map(|(path, id, inode)| (path, id, inode.kind.name())).collect();
    for (path, id, kind) in all {
        let meta = tree.meta_mut(id);
        // No owner has this number: it means no change in chown(2).
        meta.uid = meta.uid.min(u32::MAX - 1);
        meta.gid = meta.gid.min(u32::MAX - 1);
        match kind {
            "socket" => drop(tree.remove(&path).unwrap()),
            "symbolic link" => {
                meta.mode = 0o777;
                meta.xattrs.clear();
            }
            "regular file" => {}
            _ => meta.xattrs.retain(|name, _| kind == "directory" && name.starts_with(b"user.")),
        }
    }
    tree
}

fn write_archive(tree: &Tree, dir: &Path) -> std::path::PathBuf {
    let file = dir.join("archive.tar");
    std::fs::write(&file, archive(tree)).unwrap();
    file
}

/// With all attributes, and without warnings of times in the future and before 1970.
const GNU: [&str; 5] = ["--xattrs", "--xattrs-include=*", "--numeric-owner", "-p", "--warning=no-timestamp"];

/// GNU tar extracts what is in the tree, and finds no difference afterwards.
fn judge(tree: &Tree) {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (write_archive(tree, dir.path()), dir.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    let said = run("tar", &[&GNU[..], &["-xf", text(&file), "-C", text(&out)]].concat());
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    assert_same(&kernel_table(&out), &table(tree));
    let said = run("tar", &[&GNU[..], &["--compare", "-f", text(&file), "-C", text(&out)]].concat());
    assert_eq!((said.stdout, said.stderr), (vec![], vec![]));
}

#[test]
fn the_bytes_are_always_the_same() {
    let content = archive(&fixed_tree());
    assert_eq!(content, archive(&fixed_tree()));
    assert_eq!(content.len() % 512, 0);
    let found: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, GOLDEN);
}

#[test]
fn gnu_tar_extracts_the_tree() {
    if is_root() && have(&["tar"]) {
        judge(&expected(fixed_tree()));
    }
}

#[test]
fn the_archive_has_no_lost_and_found() {
    let mut tree = fixed_tree();
    let content = archive(&tree);
    tree.remove(b"/lost+found").unwrap();
    assert!(archive(&tree) == content);
}

#[test]
fn bsdtar_extracts_the_tree() {
    if !is_root() || !have(&["bsdtar"]) {
        return;
    }
    let tree = expected(fixed_tree());
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (write_archive(&tree, dir.path()), dir.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    run("bsdtar", &["--numeric-owner", "-xpf", text(&file), "-C", text(&out)]);
    let (mut found, expected) = (kernel_table(&out), table(&tree));
    // bsdtar does not set the time of a directory that exists.
    found.get_mut("").unwrap().meta.mtime = expected[""].meta.mtime;
    // It adds the fraction of a time before 1970 instead of subtracting it.
    found.get_mut("/a/old").unwrap().meta.mtime = expected["/a/old"].meta.mtime;
    assert_same(&found, &expected);
}

/// Prints name, type, mode, owner, time, length, link and device of each member.
const PYTHON: &str = "
import sys, tarfile
for m in tarfile.open(sys.argv[1]):
    owners = (m.uid, m.gid, m.uname, m.gname)
    print(m.name, m.type.decode(), oct(m.mode), owners, float(m.mtime), m.size, m.linkname, m.devmajor, m.devminor)
    assert not m.sparse
";

#[test]
fn python_lists_the_members() {
    if !have(&["python3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = write_archive(&fixed_tree(), dir.path());
    let listed = String::from_utf8(run("python3", &["-c", PYTHON, text(&file)]).stdout).unwrap();
    insta::assert_snapshot!(listed);
}

#[test]
fn what_the_format_cannot_contain_is_refused() {
    let refused = |change: &dyn Fn(&mut Tree)| {
        let mut tree = empty_tree();
        put_file(&mut tree, "/file", b"x");
        change(&mut tree);
        let error = tar::author(&tree).unwrap_err();
        (error.to_string(), error.refusal)
    };
    let (text, refusal) = refused(&|tree| {
        put(tree, "/s", Kind::Socket);
    });
    assert_eq!((text.as_str(), refusal), ("/s: unsupported in a tar archive: is a socket", TarRefusal::Socket));
    let (text, refusal) = refused(&|tree| {
        put(tree, "/l", Kind::Symlink(b"\xff".to_vec()));
    });
    assert_eq!(refusal, TarRefusal::Name, "{text}");
    let (text, refusal) = refused(&|tree| {
        put(tree, "/d", Kind::CharDevice { major: 1 << 21, minor: 0 });
    });
    assert_eq!(refusal, TarRefusal::Device { major: 1 << 21, minor: 0 }, "{text}");
    for name in [&b"user.a=b"[..], b"user.a%3Db", b"user.\xff"] {
        let (text, refusal) = refused(&|tree| {
            let file = tree.lookup(b"/file").unwrap();
            tree.meta_mut(file).xattrs.insert(name.to_vec(), b"x".to_vec());
        });
        assert!(matches!(refusal, TarRefusal::XattrName { .. }), "{text}");
    }
    let (text, refusal) = refused(&|tree| {
        let source = bytes(tree, b"short");
        put(tree, "/f", Kind::File(Map::whole(source, 0, 6)));
    });
    assert_eq!(refusal, TarRefusal::ShortSource { needed: 6, len: 5 }, "{text}");
}

#[test]
fn a_file_of_8_gib_and_more_has_its_length_in_a_record() {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let len = (1 << 33) + 1;
    put(&mut tree, "/big", Kind::File(Map::hole(len)));
    put_file(&mut tree, "/next", b"found\n");
    let disk = tar::author(&tree).unwrap();
    if !have(&["tar"]) {
        return;
    }
    // A sparse file, so that nothing large is written.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("archive.tar");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(disk.len()).unwrap();
    for extent in disk.map().extents() {
        let mut content = vec![0; usize::try_from(extent.len).unwrap()];
        disk.read_exact_at(&mut content, extent.at).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &content, extent.at).unwrap();
    }
    let listed = String::from_utf8(run("tar", &["-tvf", text(&path)]).stdout).unwrap();
    let sizes: Vec<&str> = listed.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(sizes, ["0", "8589934593", "6"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn gnu_tar_extracts_random_trees(tree in any_tree()) {
        if is_root() && have(&["tar"]) {
            judge(&expected(tree));
        }
    }
}
