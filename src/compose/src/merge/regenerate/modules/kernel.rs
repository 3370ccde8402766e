//! The directories of kernels, and what layers change for them.

use std::collections::BTreeSet;

use vmbake_disk::tree::{InodeId, Kind, Tree};

use crate::merge::cleaned::Brought;

/// Where depmod looks for kernels.
const MODULES: &[u8] = b"/lib/modules";
/// Directories of its settings.
const SETTINGS: [&[u8]; 5] =
    [b"/etc/depmod.d", b"/run/depmod.d", b"/usr/local/lib/depmod.d", b"/usr/lib/depmod.d", b"/lib/depmod.d"];
/// Suffixes of modules, also of those that Debian's kmod does not read.
const SUFFIXES: [&[u8]; 4] = [b".ko", b".ko.gz", b".ko.xz", b".ko.zst"];
/// The deepest directories that are followed.
const MAX_DEPTH: usize = 32;

/// A path of a layer that depmod reads.
pub(super) struct Change {
    pub(super) path: String,
    pub(super) layer: String,
}

/// A directory of modules.
pub(super) struct Kernel {
    pub(super) name: Vec<u8>,
    /// Without symbolic links.
    pub(super) directory: Vec<u8>,
    id: InodeId,
}

/// The kernels of a tree.
pub(super) fn all(tree: &Tree) -> Vec<Kernel> {
    let Ok(Some((root, id))) = tree.real_path(MODULES, true) else { return Vec::new() };
    let Kind::Directory(entries) = &tree.inode(id).kind else { return Vec::new() };
    let kernel = |name: &Vec<u8>| {
        let (directory, id) = tree.real_path(&[&root[..], b"/", name].concat(), true).ok()??;
        matches!(tree.inode(id).kind, Kind::Directory(_)).then(|| Kernel { name: name.clone(), directory, id })
    };
    entries.keys().filter_map(kernel).collect()
}

pub(super) fn is_module(path: &[u8]) -> bool {
    SUFFIXES.iter().any(|suffix| path.ends_with(suffix))
}

impl Kernel {
    /// The real paths of its modules.
    pub(super) fn modules(&self, tree: &Tree) -> BTreeSet<Vec<u8>> {
        let (mut found, mut directories) = (BTreeSet::new(), BTreeSet::new());
        walk(tree, &self.directory, self.id, 0, &mut directories, &mut |path| {
            if is_module(&path) {
                found.insert(path);
            }
        });
        found
    }

    /// What layers bring that depmod reads for it, in the order of paths.
    pub(super) fn changes(&self, tree: &Tree, brought: &Brought) -> Vec<Change> {
        let mut directories = BTreeSet::new();
        walk(tree, &self.directory, self.id, 0, &mut directories, &mut |_| ());
        let settings: BTreeSet<Vec<u8>> = SETTINGS.iter().filter_map(|path| real(tree, path)).collect();
        for outside in external(tree, &settings) {
            if let Ok(Some((path, id))) = tree.real_path(&outside, true) {
                walk(tree, &path, id, 0, &mut directories, &mut |_| ());
            }
        }
        let is_read = |path: &[u8]| {
            let (above, name) = path.split_at(path.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
            let name = name.strip_prefix(b"/").unwrap_or(name);
            let is_link = || tree.lookup(path).is_some_and(|id| matches!(tree.inode(id).kind, Kind::Symlink(_)));
            settings.contains(above)
                || (directories.contains(above) && (is_module(name) || name.starts_with(b"modules.") || is_link()))
        };
        let change = |(path, layer): (&[u8], &str)| Change {
            path: String::from_utf8_lossy(path).into_owned(),
            layer: layer.to_owned(),
        };
        brought.paths().filter(|(path, _)| is_read(path)).map(change).collect()
    }
}

fn real(tree: &Tree, path: &[u8]) -> Option<Vec<u8>> {
    tree.real_path(path, true).ok().flatten().map(|(path, _)| path)
}

/// The directories outside that settings may name: `external VERSION DIRECTORY...` of depmod.d(5).
fn external(tree: &Tree, settings: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for directory in settings {
        let Some(Kind::Directory(entries)) = tree.lookup(directory).map(|id| &tree.inode(id).kind) else { continue };
        for name in entries.keys() {
            let content = tree.read(&[&directory[..], b"/", name].concat(), 1 << 20).unwrap_or_default();
            let words = content.split(u8::is_ascii_whitespace).filter(|word| word.starts_with(b"/"));
            found.extend(words.map(<[u8]>::to_vec));
        }
    }
    found
}

/// Visits the files below a directory with their real paths, and collects its real directories. Links are followed, each directory once.
fn walk(
    tree: &Tree,
    directory: &[u8],
    id: InodeId,
    depth: usize,
    seen: &mut BTreeSet<Vec<u8>>,
    visit: &mut impl FnMut(Vec<u8>),
) {
    let Kind::Directory(entries) = &tree.inode(id).kind else { return };
    if depth > MAX_DEPTH || !seen.insert(directory.to_vec()) {
        return;
    }
    for name in entries.keys().filter(|name| depth > 0 || !matches!(&name[..], b"build" | b"source")) {
        let path = [directory, b"/", name].concat();
        let Ok(Some((path, id))) = tree.real_path(&path, true) else { continue };
        match tree.inode(id).kind {
            Kind::Directory(_) => walk(tree, &path, id, depth + 1, seen, visit),
            _ => visit(path),
        }
    }
}
