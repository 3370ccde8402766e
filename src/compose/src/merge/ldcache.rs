//! The cache of the dynamic linker, `/etc/ld.so.cache`, and the links from sonames to libraries, as written by ldconfig(8) of glibc 2.41
//! for the finished tree.
//!
//! The tree after all layers in, the tree with matching cache and links out. A cache that matches already is not changed, and a tree
//! without a cache gets one only if a script has run ldconfig. `/var/cache/ldconfig/aux-cache` is not written: it contains inode numbers and change times, and ldconfig
//! generates it again.
//!
//! Stricter than ldconfig: a file whose soname is not a file name is not a library.

mod conf;
mod search;
mod format;

use std::collections::BTreeMap;

use vmbake_common::message::Message;
use vmbake_disk::tree::{Inode, Kind, Origin, Tree, TreeError};

use super::place::Target;
use super::{LibraryFault, MergeError};
pub(super) use conf::system_directories;
use conf::{Directory, directories};
use format::{Entry, encode, generator, generator_of};
use search::{Library, search};
use vmbake_image::elf::Machine;

const CACHE: &str = "/etc/ld.so.cache";

const PROGRAM: &str = "/sbin/ldconfig";

/// Longest cache that is read, in bytes: a desktop's has 200,000.
const MAX_CACHE: u64 = 16 << 20;

/// A library that the loader finds by its name alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    /// The name that others need it by.
    pub(super) name: Vec<u8>,
    /// Where it is.
    pub(super) path: Vec<u8>,
}

/// Makes the links and the cache of the tree fit its libraries. `is_run` tells whether a script has run ldconfig, which creates a cache.
pub(super) fn update(target: &mut Target, arch: &str, is_run: bool) -> Result<(), MergeError> {
    let damaged = |fault: LibraryFault| MergeError::content(CACHE, fault);
    let old = target.tree.read(CACHE.as_bytes(), MAX_CACHE).ok();
    let generator = match &old {
        Some(old) => generator(old)
            .ok_or_else(|| damaged(LibraryFault::Message(Message::new("is not a cache of glibc 2.33 or later"))))?,
        None if is_run => match target.tree.read(PROGRAM.as_bytes(), MAX_CACHE) {
            Ok(program) => generator_of(&program).ok_or_else(unknown_program)?,
            Err(_) => return Ok(()),
        },
        None => return Ok(()),
    };
    write(target, arch, old, &generator)
}

/// A path that ldconfig changes.
pub(super) enum Change {
    Removed,
    /// A link, or a file with this content.
    Made(Kind, Vec<u8>),
}

/// What `ldconfig -r` changes below a directory, with paths relative to it.
pub(super) fn of_directory(
    target: &Target,
    directory: &[u8],
    arch: &str,
) -> Result<Vec<(Vec<u8>, Change)>, MergeError> {
    let program = target.tree.read(PROGRAM.as_bytes(), MAX_CACHE).unwrap_or_default();
    let generator = generator_of(&program).ok_or_else(unknown_program)?;
    let before = target.wrap(subtree(&target.tree, directory))?;
    let old = before.read(CACHE.as_bytes(), MAX_CACHE).ok();
    let names: BTreeMap<Vec<u8>, Kind> = before.walk().map(|(path, _, inode)| (path, inode.kind.clone())).collect();
    let mut below = Target::new(before, target.epoch());
    write(&mut below, arch, old, &generator)?;
    let mut changes = Vec::new();
    let after: BTreeMap<Vec<u8>, Kind> = below.tree.walk().map(|(path, _, inode)| (path, inode.kind.clone())).collect();
    changes.extend(names.keys().filter(|path| !after.contains_key(*path)).map(|path| (path.clone(), Change::Removed)));
    for (path, kind) in after {
        if names.get(&path).is_some_and(|old| same(old, &kind)) {
            continue;
        }
        let content = match kind {
            Kind::File(_) => target.wrap(below.tree.read(&path, MAX_CACHE))?,
            _ => Vec::new(),
        };
        changes.push((path, Change::Made(kind, content)));
    }
    Ok(changes)
}

fn same(left: &Kind, right: &Kind) -> bool {
    match (left, right) {
        (Kind::File(left), Kind::File(right)) => left == right,
        (Kind::Symlink(left), Kind::Symlink(right)) => left == right,
        _ => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

/// A tree whose root is a directory of another one.
fn subtree(tree: &Tree, directory: &[u8]) -> Result<Tree, TreeError> {
    let id = tree.resolve(directory)?;
    let mut below = Tree::new(tree.inode(id).meta.clone(), Origin::default());
    *below.sources_mut() = tree.sources().clone();
    for (path, _, inode) in tree.walk_from(id).filter(|(path, ..)| !path.is_empty()) {
        let kind = if matches!(inode.kind, Kind::Directory(_)) { Kind::directory() } else { inode.kind.clone() };
        let origin = below.first_origin();
        below.place(&path, Inode { meta: inode.meta.clone(), kind, origin })?;
    }
    Ok(below)
}

/// Writes the links, and the cache if it differs from `old`.
fn write(target: &mut Target, arch: &str, old: Option<Vec<u8>>, generator: &[u8]) -> Result<(), MergeError> {
    let damaged = |fault: LibraryFault| MergeError::content(CACHE, fault);
    let machine = Machine::of_arch(arch).ok_or_else(|| MergeError::Arch { arch: arch.to_owned() })?;
    let (mut entries, mut subdirectories) = (Vec::new(), Vec::new());
    for directory in directories(&target.tree, arch)? {
        subdirectories.extend(directory.hwcaps.clone());
        let found = search(&target.tree, &directory, machine);
        for name in &found.stale {
            let removed = target.tree.remove(&[&directory.path, &b"/"[..], name].concat());
            target.wrap(removed)?;
        }
        for library in &found.libraries {
            check_grants(target, &directory, library)?;
            if directory.hwcaps.is_none() && !library.is_link {
                link(target, &directory, library)?;
            }
            entries.push(entry(&directory, library));
        }
    }
    let new = encode(entries, &subdirectories, generator)
        .ok_or_else(|| damaged(LibraryFault::Message(Message::new("exceeds the limit of 4 GiB"))))?;
    if old.as_ref() == Some(&new) {
        return Ok(());
    }
    let found = target.tree.resolve(CACHE.as_bytes()).ok();
    let mode = found.map_or(0o644, |id| target.tree.inode(id).meta.mode);
    let meta = target.meta(mode);
    target.file(CACHE, meta, new)
}

fn unknown_program() -> MergeError {
    let text = "is not ldconfig of glibc 2.33 or later, so the cache that it creates is not known";
    MergeError::content(PROGRAM, LibraryFault::Message(Message::new(text)))
}

/// What the loader finds by its cache in this tree, the first of equal names first.
pub(super) fn libraries(tree: &Tree, arch: &str) -> Result<Vec<Cached>, MergeError> {
    let machine = Machine::of_arch(arch).ok_or_else(|| MergeError::Arch { arch: arch.to_owned() })?;
    let mut all = Vec::new();
    for directory in directories(tree, arch)? {
        let found = search(tree, &directory, machine).libraries;
        let entries = found.iter().map(|library| entry(&directory, library));
        all.extend(entries.map(|entry| Cached { name: entry.name, path: entry.path }));
    }
    Ok(all)
}

fn entry(directory: &Directory, library: &Library) -> Entry {
    // By their links, so that an update may change the file's name; there are no links below glibc-hwcaps.
    let file = if directory.hwcaps.is_none() { &library.soname } else { &library.name };
    Entry {
        name: library.soname.clone(),
        path: [&directory.path, &b"/"[..], file].concat(),
        flags: library.flags,
        hwcaps: directory.hwcaps.clone(),
        isa_level: library.isa_level,
    }
}

/// Fails if a library of a bundle would be found by a name that is not granted: its soname may be that of any other library.
fn check_grants(target: &Target, directory: &Directory, library: &Library) -> Result<(), MergeError> {
    let (name, at) = (path(directory, &library.name)?, path(directory, &library.soname)?);
    let found = [target.tree.find(name.as_bytes()).ok().flatten(), target.tree.resolve(name.as_bytes()).ok()];
    for id in found.into_iter().flatten() {
        target.check_landing(&target.tree.origin(target.tree.inode(id).origin).layer, at.as_bytes())?;
    }
    Ok(())
}

/// Makes the link from the soname to the library, unless it is there or something other than a link is.
fn link(target: &mut Target, directory: &Directory, library: &Library) -> Result<(), MergeError> {
    let at = path(directory, &library.soname)?;
    let resolved = |path: &str| target.tree.resolve(path.as_bytes()).ok();
    let (there, wanted) = (resolved(&at), resolved(&path(directory, &library.name)?));
    let standing = target.tree.find(at.as_bytes()).ok().flatten();
    let foreign = standing.is_some_and(|id| !matches!(target.tree.inode(id).kind, Kind::Symlink(_)));
    if there == wanted || foreign {
        return Ok(());
    }
    target.symlink(&at, &text(&library.name)?)
}

fn path(directory: &Directory, name: &[u8]) -> Result<String, MergeError> {
    text(&[&directory.path, &b"/"[..], name].concat())
}

fn text(bytes: &[u8]) -> Result<String, MergeError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        MergeError::content(
            String::from_utf8_lossy(bytes),
            LibraryFault::Message(Message::new("library name is not UTF-8")),
        )
    })
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Timestamp};

    use super::*;

    /// A tree without a cache gets one as on a machine: when ldconfig has run, and if it is there.
    #[test]
    fn the_first_cache_names_the_program() {
        let program = "\x7fELF\0ldconfig (Debian GLIBC 2.41-12) stable release version 2.41\0";
        for (program, is_run, expected) in [
            (Some(program), true, Ok(true)),
            (Some(program), false, Ok(false)),
            (None, true, Ok(false)),
            (Some("\x7fELF"), true, Err(())),
        ] {
            let root = Metadata::root(0o755, Timestamp::default());
            let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
            program.into_iter().for_each(|text| target.set_text(PROGRAM, text).unwrap());
            let made = update(&mut target, "amd64", is_run);
            let cache = target.tree.read(CACHE.as_bytes(), MAX_CACHE).ok();
            assert_eq!(made.map(|()| cache.is_some()).map_err(|_| ()), expected, "{program:?}");
            let named = cache.and_then(|cache| generator(&cache));
            assert!(named.is_none_or(|text| text == b"ldconfig (Debian GLIBC 2.41-12) stable release version 2.41"));
        }
    }
}
