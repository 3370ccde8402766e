//! Helpers of the ext4 tests: trees to author, images to check, and the tools that verify them.
#![allow(dead_code, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of tests are small")]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use proptest::prelude::*;
use vmbake_disk::ext4::{Size, Volume, VolumeOptions, author, read};
use vmbake_disk::source::{Extent, FileSource, Map, SourceId};
use vmbake_disk::tree::{Inode, InodeId, Kind, Metadata, Origin, ROOT, Timestamp, Tree};

pub const MIB: u64 = 1 << 20;
pub const EPOCH: i64 = 1_700_000_000;

/// Whether the tools are there. Where they are missing the test is skipped, but not in CI.
pub fn have(tools: &[&str]) -> bool {
    let missing: Vec<_> = tools.iter().filter(|tool| !found(tool)).collect();
    if missing.is_empty() {
        return true;
    }
    crate::skip::skip(&format!("missing {missing:?}"));
    false
}

fn found(tool: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|dir| Path::new(dir).join(tool).exists())
}

/// Whether file systems can be mounted here.
pub fn can_mount() -> bool {
    if is_root() && found("mount") && Path::new("/dev/loop-control").exists() {
        return true;
    }
    crate::skip::skip("mounting needs root and loop devices");
    false
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Runs a tool that must succeed.
pub fn run(program: &str, args: &[&str]) -> Output {
    let output = run_any(program, args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {}\n{text}", output.status);
    output
}

pub fn run_any(program: &str, args: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    Command::new(program).args(args).env("PATH", path).env("MKE2FS_DEVICE_SECTSIZE", "512").output().unwrap()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// e2fsck finds nothing to complain about.
pub fn fsck(image: &Path) {
    if !have(&["e2fsck"]) {
        return;
    }
    let output = run("e2fsck", &["-fn", text(image)]);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!out.contains("Fix?") && !out.contains("WARNING"), "{out}");
}

pub fn options(size: Size) -> VolumeOptions {
    VolumeOptions {
        size,
        uuid: *b"vmbake-test-uuid",
        label: b"cloudimg".to_vec(),
        hash_seed: [7; 16],
        epoch: 1_700_000_000,
    }
}

pub fn smallest() -> VolumeOptions {
    options(Size::Smallest { margin_bytes: MIB })
}

/// Writes a volume as a sparse file.
pub fn write(volume: &Volume, path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(volume.len()).unwrap();
    let mut buf = vec![0; 1 << 20];
    for extent in volume.map().extents() {
        let mut at = extent.at;
        while at < extent.end() {
            let len = buf.len().min(usize::try_from(extent.end() - at).unwrap());
            volume.map().read_exact_at(volume.sources(), &mut buf[..len], at).unwrap();
            file.write_all_at(&buf[..len], at).unwrap();
            at += len as u64;
        }
    }
}

pub fn open(path: &Path) -> Tree {
    let source = FileSource::new(File::open(path).unwrap()).unwrap();
    read(Arc::new(source), Origin::default()).unwrap().1
}

/// Authors, writes and has the image checked.
pub fn build(tree: &Tree, options: &VolumeOptions, path: &Path) -> Volume {
    let volume = author(tree, options).unwrap();
    write(&volume, path);
    fsck(path);
    volume
}

pub fn meta(mode: u16) -> Metadata {
    Metadata::root(mode, Timestamp { secs: EPOCH, nanos: 123_456_789 })
}

pub fn empty_tree() -> Tree {
    Tree::new(meta(0o755), Origin::default())
}

/// Places a node with mode 0644.
pub fn put(tree: &mut Tree, path: &str, kind: Kind) -> InodeId {
    let origin = tree.inode(ROOT).origin;
    tree.place(path.as_bytes(), Inode { meta: meta(0o644), kind, origin }).unwrap()
}

/// Adds a source with these bytes.
pub fn bytes(tree: &mut Tree, content: &[u8]) -> SourceId {
    tree.sources_mut().add(Arc::new(content.to_vec()))
}

/// Places a file with this content, in a separate source.
pub fn put_file(tree: &mut Tree, path: &str, content: &[u8]) -> InodeId {
    let source = bytes(tree, content);
    put(tree, path, Kind::File(Map::whole(source, 0, content.len() as u64)))
}

/// All that a tree says of one path.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub what: String,
    pub meta: Metadata,
    pub content: Vec<u8>,
    /// The first path of the same inode.
    pub first: String,
}

/// A tree as a table. Large contents are cut, so that sparse files can be compared by their first 16 MiB.
pub fn table(tree: &Tree) -> BTreeMap<String, Seen> {
    let mut firsts = BTreeMap::new();
    let mut all = BTreeMap::new();
    for (path, id, inode) in tree.walk() {
        let path = String::from_utf8(path).unwrap();
        let first = firsts.entry(id).or_insert_with(|| path.clone()).clone();
        let (what, content) = match &inode.kind {
            Kind::File(map) => {
                let mut content = vec![0; usize::try_from(map.len().min(16 * MIB)).unwrap()];
                map.read_exact_at(tree.sources(), &mut content, 0).unwrap();
                (format!("file {}", map.len()), content)
            }
            Kind::Symlink(target) => ("symlink".to_owned(), target.clone()),
            Kind::CharDevice { major, minor } => (format!("char {major}:{minor}"), vec![]),
            Kind::BlockDevice { major, minor } => (format!("block {major}:{minor}"), vec![]),
            other => (other.name().to_owned(), vec![]),
        };
        all.insert(path, Seen { what, meta: inode.meta.clone(), content, first });
    }
    all
}

pub fn assert_same(found: &BTreeMap<String, Seen>, expected: &BTreeMap<String, Seen>) {
    let paths = |table: &BTreeMap<String, Seen>| table.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(found), paths(expected));
    for (path, seen) in expected {
        assert!(found[path] == *seen, "{path}: found {:?}, expected {:?}", brief(&found[path]), brief(seen));
    }
}

fn brief(seen: &Seen) -> String {
    format!("{} {:?} {} bytes, first {}", seen.what, seen.meta, seen.content.len(), seen.first)
}

/// The ACL `u::rw-,u:1000:r--,g::r--,g:7:rwx,m::rwx,o::---` as `getxattr(2)` gives it.
pub const ACL: &[u8] = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x02\0\x04\0\xe8\x03\0\0\x04\0\x04\0\xff\xff\xff\xff\
    \x08\0\x07\0\x07\0\0\0\x10\0\x07\0\xff\xff\xff\xff\x20\0\0\0\xff\xff\xff\xff";

fn any_xattrs() -> impl Strategy<Value = BTreeMap<Vec<u8>, Vec<u8>>> {
    let user = ("user\\.[a-z]{1,20}", prop::collection::vec(any::<u8>(), 0..300));
    let some = prop::collection::btree_map(user.0.prop_map(String::into_bytes), user.1, 0..4);
    (some, any::<bool>()).prop_map(|(mut all, capability)| {
        if capability {
            let value = b"\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
            all.insert(b"security.capability".to_vec(), value);
        }
        all
    })
}

fn any_meta() -> impl Strategy<Value = Metadata> {
    let times = -(1i64 << 31)..(3i64 << 32) - (1 << 31);
    (0u16..0o10000, any::<u32>(), any::<u32>(), times, 0u32..1_000_000_000, any_xattrs()).prop_map(
        |(mode, uid, gid, secs, nanos, xattrs)| Metadata { mode, uid, gid, mtime: Timestamp { secs, nanos }, xattrs },
    )
}

/// What a random node becomes.
#[derive(Clone, Debug)]
pub enum Node {
    Dir,
    /// Length, then runs as gap before, length and offset in the common source.
    File(u64, Vec<(u64, u64, u64)>),
    Symlink(String),
    Char(u32, u32),
    Block(u32, u32),
    Fifo,
    Socket,
    /// One more name of an earlier node.
    Link(prop::sample::Index),
}

fn any_node() -> impl Strategy<Value = Node> {
    let run = (0u64..9000, 1u64..9000, 0u64..50_000);
    let device = (0u32..4096, 0u32..1 << 20);
    prop_oneof![
        4 => Just(Node::Dir),
        6 => (0u64..9000, prop::collection::vec(run, 0..7)).prop_map(|(tail, runs)| Node::File(tail, runs)),
        2 => "[a-z./]{1,80}".prop_map(Node::Symlink),
        1 => device.clone().prop_map(|(major, minor)| Node::Char(major, minor)),
        1 => device.prop_map(|(major, minor)| Node::Block(major, minor)),
        1 => Just(Node::Fifo),
        1 => Just(Node::Socket),
        2 => any::<prop::sample::Index>().prop_map(Node::Link),
    ]
}

/// A random tree of up to 40 names over one source.
pub fn any_tree() -> impl Strategy<Value = Tree> {
    let name = prop_oneof!["[a-zA-Z0-9._ -]{1,12}", "[äöü€]{1,9}", "[a-z]{200,255}"];
    let node = (any::<prop::sample::Index>(), name, any_meta(), any_node());
    (any_meta(), prop::collection::vec(node, 0..40)).prop_map(|(root, nodes)| {
        let mut tree = Tree::new(root, Origin::default());
        let content: Vec<u8> = (0..60_000u32).map(|at| (at * 7 % 251) as u8 + 1).collect();
        let source = bytes(&mut tree, &content);
        let origin = tree.inode(ROOT).origin;
        let (mut dirs, mut others) = (vec![ROOT], Vec::new());
        for (dir, name, meta, node) in nodes {
            let dir = *dir.get(&dirs);
            if name == "." || name == ".." || name == "lost+found" || tree.entry(dir, name.as_bytes()).is_some() {
                continue;
            }
            let kind = match node {
                Node::Dir => Kind::directory(),
                Node::File(tail, runs) => Kind::File(pieces(source, tail, &runs)),
                Node::Symlink(target) => Kind::Symlink(target.into_bytes()),
                Node::Char(major, minor) => Kind::CharDevice { major, minor },
                Node::Block(major, minor) => Kind::BlockDevice { major, minor },
                Node::Fifo => Kind::Fifo,
                Node::Socket => Kind::Socket,
                Node::Link(target) => {
                    if !others.is_empty() {
                        tree.link(dir, name.as_bytes(), *target.get(&others)).unwrap();
                    }
                    continue;
                }
            };
            let is_dir = matches!(kind, Kind::Directory(_));
            let id = tree.insert(dir, name.as_bytes(), Inode { meta, kind, origin }).unwrap();
            if is_dir { dirs.push(id) } else { others.push(id) }
        }
        tree
    })
}

fn pieces(source: SourceId, tail: u64, runs: &[(u64, u64, u64)]) -> Map {
    let len = runs.iter().map(|(gap, len, _)| gap + len).sum::<u64>() + tail;
    let mut map = Map::hole(len);
    let mut at = 0;
    for (gap, len, offset) in runs {
        at += gap;
        map.push(Extent { at, len: *len, source, offset: *offset });
        at += len;
    }
    map
}

/// A mounted image; unmounted when dropped.
pub struct Mount(pub tempfile::TempDir);

impl Mount {
    pub fn new(image: &Path, how: &str) -> Self {
        Self::of("ext4", image, how)
    }

    /// Of a file system of that type.
    pub fn of(kind: &str, image: &Path, how: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        run("mount", &["-t", kind, "-o", how, text(image), text(dir.path())]);
        Self(dir)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run_any("umount", &["--lazy", text(self.0.path())]);
    }
}

/// A mounted directory as a table, by what the kernel says of it.
pub fn kernel_table(root: &Path) -> BTreeMap<String, Seen> {
    let mut all = BTreeMap::new();
    let mut firsts = BTreeMap::new();
    let mut todo = vec![String::new()];
    while let Some(path) = todo.pop() {
        use std::os::unix::fs::MetadataExt;
        let at = root.join(path.trim_start_matches('/'));
        let stat = std::fs::symlink_metadata(&at).unwrap();
        let (dev, len) = (stat.rdev(), stat.len());
        let device = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let mut content = Vec::new();
        let what = match stat.mode() >> 12 {
            0o04 => {
                let mut names: Vec<_> =
                    std::fs::read_dir(&at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                names.sort();
                for name in names {
                    let child = format!("{path}/{}", name.to_str().unwrap());
                    if child != "/lost+found" {
                        todo.push(child);
                    }
                }
                "directory".to_owned()
            }
            0o10 => {
                content = vec![0; usize::try_from(len.min(16 * MIB)).unwrap()];
                File::open(&at).unwrap().read_exact_at(&mut content, 0).unwrap();
                format!("file {len}")
            }
            0o12 => {
                let target = std::fs::read_link(&at).unwrap();
                content = std::os::unix::ffi::OsStrExt::as_bytes(target.as_os_str()).to_vec();
                "symlink".to_owned()
            }
            0o02 => format!("char {}:{}", device.0, device.1),
            0o06 => format!("block {}:{}", device.0, device.1),
            0o01 => "named pipe".to_owned(),
            _ => "socket".to_owned(),
        };
        let meta = Metadata {
            mode: (stat.mode() & 0o7777) as u16,
            uid: stat.uid(),
            gid: stat.gid(),
            mtime: Timestamp { secs: stat.mtime(), nanos: stat.mtime_nsec() as u32 },
            xattrs: xattrs(&at),
        };
        let names = firsts.entry(stat.ino()).or_insert_with(Vec::new);
        names.push(path.clone());
        all.insert(path, (Seen { what, meta, content, first: String::new() }, stat.ino()));
    }
    for names in firsts.values_mut() {
        // The order of a walk: by components, not by the bytes of whole paths.
        names.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    }
    all.into_iter().map(|(path, (seen, ino))| (path, Seen { first: firsts[&ino][0].clone(), ..seen })).collect()
}

fn xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 65536];
    let len = match rustix::fs::llistxattr(path, &mut names[..]) {
        // A file system without any says so.
        Err(rustix::io::Errno::NOTSUP) => 0,
        listed => listed.unwrap(),
    };
    let names = names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0; 65536];
        let len = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        value[..len].to_vec()
    };
    names.map(|name| (name.to_vec(), value(name))).collect()
}
