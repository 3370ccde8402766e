//! Look-ups compared with Linux: generated trees are made on disk as well, and openat2(2) goes the same paths inside of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Arrival, Inode, InodeId, Kind, Metadata, Origin, Timestamp, Tree, TreeError};

const TREES: u64 = 60;
const PATHS: u32 = 150;
/// Names of the trees; the last one is as long as a name can be.
const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "...", LONGEST];
/// 255 bytes.
const LONGEST: &str = match str::from_utf8(&[b'n'; 255]) {
    Ok(text) => text,
    Err(_) => "",
};

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    /// Some names with slashes and dots between them.
    fn path(&mut self, most: usize) -> String {
        let mut path = ["", "/", "//"][self.below(3)].to_owned();
        for at in 0..=self.below(most) {
            if at > 0 {
                path += ["/", "/", "//", "/./"][self.below(4)];
            }
            path += match self.below(12) {
                0 => "..",
                1 => ".",
                2 => "missing",
                3 if self.below(4) == 0 => return path + LONGEST + "n" + ["", "/a"][self.below(2)],
                at => NAMES[at % NAMES.len()],
            };
        }
        path + ["", "", "", "/", "/.", "//", "/.."][self.below(7)]
    }
}

/// A tree, and the same on disk; the node of each inode number.
fn made(numbers: &mut Numbers, root: &Path) -> (Tree, BTreeMap<u64, InodeId>) {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let origin = tree.first_origin();
    let meta = Metadata::root(0o755, Timestamp::default());
    let mut ids = BTreeMap::from([(root.metadata().unwrap().ino(), tree.lookup(b"/").unwrap())]);
    let mut directories = vec![String::new()];
    for _ in 0..40 {
        let path = format!("{}/{}", directories[numbers.below(directories.len())], NAMES[numbers.below(NAMES.len())]);
        let real = root.join(&path[1..]);
        if path.len() > 600 || real.symlink_metadata().is_ok() {
            continue;
        }
        let kind = match numbers.below(5) {
            0 => {
                File::create(&real).unwrap();
                Kind::File(Map::default())
            }
            1 | 2 => {
                fs::create_dir(&real).unwrap();
                directories.push(path.clone());
                Kind::directory()
            }
            _ => {
                let target = Some(numbers.path(3)).filter(|target| !target.is_empty()).unwrap_or("a".to_owned());
                symlink(&target, &real).unwrap();
                Kind::Symlink(target.into_bytes())
            }
        };
        let id = tree.place(path.as_bytes(), Inode { meta: meta.clone(), kind, origin }).unwrap();
        ids.insert(real.symlink_metadata().unwrap().ino(), id);
    }
    (tree, ids)
}

/// What Linux says of a path inside a directory.
fn open(root: &File, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR } else { Mode::empty() };
    loop {
        match openat2(root, path, flags | OFlags::CLOEXEC, mode, ResolveFlags::IN_ROOT) {
            Err(Errno::AGAIN) => {}
            other => return other,
        }
    }
}

fn errno(error: &TreeError) -> Errno {
    match error {
        TreeError::NotDirectory { .. } => Errno::NOTDIR,
        TreeError::SymlinkLoop { .. } => Errno::LOOP,
        TreeError::InvalidName { .. } => Errno::NAMETOOLONG,
        other => panic!("{other}"),
    }
}

#[test]
fn paths_lead_where_linux_goes() {
    let mut kinds = BTreeMap::<String, u32>::new();
    for seed in 1..=TREES {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let dir = tempfile::tempdir().unwrap();
        let (tree, ids) = made(&mut numbers, dir.path());
        let root = File::open(dir.path()).unwrap();
        for _ in 0..PATHS {
            let path = numbers.path(6);
            if path.is_empty() {
                continue;
            }
            for last in [true, false] {
                let flags = if last { OFlags::PATH } else { OFlags::PATH | OFlags::NOFOLLOW };
                let expected = open(&root, &path, flags).map(|found| ids[&fstat(&found).unwrap().st_ino]);
                let arrival = tree.arrive(path.as_bytes(), last);
                let found = match &arrival {
                    Ok(Arrival::Node { id, .. }) => Ok(*id),
                    Ok(Arrival::Missing { .. }) => Err(Errno::NOENT),
                    Err(error) => Err(errno(error)),
                };
                let place = format!("seed {seed}: {path} (last: {last})");
                assert_eq!(found, expected, "{place}");
                let kind = found.map_or_else(|error| error.to_string(), |_| "found".to_owned());
                *kinds.entry(kind).or_default() += 1;
                match arrival.unwrap_or(Arrival::Node { path: Vec::new(), id: ids[&root.metadata().unwrap().ino()] }) {
                    Arrival::Node { path, id } if found.is_ok() => assert_eq!(tree.lookup(&path), Some(id), "{place}"),
                    Arrival::Missing { path: real, is_last, .. } if last => {
                        creates(&root, (dir.path(), &real), &path, is_last);
                    }
                    _ => {}
                }
            }
        }
    }
    let least = kinds.values().min().copied().unwrap_or_default();
    assert!(kinds.len() == 5 && least > 20, "{kinds:?}");
}

/// Whether a file can be made at a missing name, and that it is then at the path that was found.
fn creates(root: &File, (folder, real): (&Path, &[u8]), path: &str, is_last: bool) {
    let real = folder.join(str::from_utf8(real).unwrap().trim_start_matches('/'));
    match open(root, path, OFlags::CREATE | OFlags::WRONLY) {
        Ok(_) => {
            assert!(is_last, "{path}");
            fs::remove_file(real).unwrap();
        }
        // The name, or that of a link to it, has a slash at its end.
        Err(Errno::ISDIR) => {}
        Err(error) => assert_eq!((error, is_last), (Errno::NOENT, false), "{path}"),
    }
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let root = File::open(dir.path()).unwrap();
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let (origin, meta) = (tree.first_origin(), Metadata::root(0o755, Timestamp::default()));
    File::create(dir.path().join("0")).unwrap();
    tree.place(b"/0", Inode { meta: meta.clone(), kind: Kind::File(Map::default()), origin }).unwrap();
    for at in 1..=42 {
        let target = (at - 1).to_string();
        symlink(&target, dir.path().join(at.to_string())).unwrap();
        let kind = Kind::Symlink(target.into_bytes());
        tree.place(format!("/{at}").as_bytes(), Inode { meta: meta.clone(), kind, origin }).unwrap();
    }
    for at in 38..=42 {
        let path = at.to_string();
        let linux = open(&root, &path, OFlags::PATH).map(drop);
        let found = tree.arrive(path.as_bytes(), true).map(drop).map_err(|error| errno(&error));
        assert_eq!(found, linux, "{path}");
        assert_eq!(found.is_ok(), at <= 40, "{path}");
    }
}
