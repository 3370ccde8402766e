//! The libraries that a program of the tree loads, as ldd(1) lists them.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{Kind, Tree};

use super::super::ldcache::{libraries as cached, system_directories};
use super::MergeError;
use super::loader::{Object, Search, file_name};
use vmbake_image::elf::{Elf, Machine};

/// Directory of libraries that only newer processors can use.
const HWCAPS: &[u8] = b"/glibc-hwcaps/";

/// A library by the name that is needed, and where it is.
type Needed = (Vec<u8>, Option<Vec<u8>>);

/// What the loader finds by its cache on every processor.
pub(in crate::merge) fn libraries(tree: &Tree, arch: &str) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, MergeError> {
    let mut found = BTreeMap::new();
    for library in cached(tree, arch)? {
        if !library.path.windows(HWCAPS.len()).any(|part| part == HWCAPS) {
            found.entry(library.name).or_insert(library.path);
        }
    }
    Ok(found)
}

/// The libraries that a program or library needs, with the loader, in the order in which they are loaded; `None` if it is not dynamic.
pub(in crate::merge) fn needed(
    tree: &Tree,
    arch: &str,
    path: &[u8],
    cached: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> Result<Option<Vec<Needed>>, MergeError> {
    let machine = Machine::of_arch(arch).ok_or_else(|| MergeError::Arch { arch: arch.to_owned() })?;
    let Ok(id) = tree.resolve(path) else { return Ok(None) };
    let Kind::File(map) = &tree.inode(id).kind else { return Ok(None) };
    let elf = Elf::read(map, tree.sources()).ok().flatten().filter(|elf| elf.machine == machine && elf.is_loadable());
    let Some((elf, dynamic)) = elf.and_then(|elf| elf.dynamic.clone().map(|dynamic| (elf, dynamic))) else {
        return Ok(None);
    };
    let interpreter = elf.interpreter.clone().or_else(|| default_loader(arch).map(|path| path.as_bytes().to_vec()));
    let loader = interpreter.as_deref().map(file_name).unwrap_or_default().to_vec();
    let mut search = Search::new(tree, machine, system_directories(arch), cached);
    let mut names = BTreeSet::from([loader]);
    let mut objects = vec![Object { path: path.to_vec(), id, dynamic, parent: None }];
    let (mut found, mut next) = (Vec::new(), 0);
    while let Some(needed) = objects.get(next).map(|object| object.dynamic.needed.clone()) {
        for name in needed {
            if !names.insert(name.clone()) {
                continue;
            }
            let Some((path, id, elf)) = search.find(&objects, next, &name) else {
                found.push((name, None));
                continue;
            };
            found.push((name, Some(path.clone())));
            if !objects.iter().any(|object| object.id == id) {
                let dynamic = elf.dynamic.clone().unwrap_or_default();
                objects.push(Object { path, id, dynamic, parent: Some(next) });
            }
        }
        next += 1;
    }
    if !objects.is_empty() && objects.len() + found.len() > 1 {
        found.extend(interpreter.map(|path| (path.clone(), Some(path))));
    }
    Ok(Some(found))
}

/// The loader for libraries, which do not name one (`PT_INTERP`) as programs do.
fn default_loader(arch: &str) -> Option<&'static str> {
    match arch {
        "amd64" => Some("/lib64/ld-linux-x86-64.so.2"),
        "arm64" => Some("/lib/ld-linux-aarch64.so.1"),
        _ => None,
    }
}
