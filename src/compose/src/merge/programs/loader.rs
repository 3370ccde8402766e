//! Finds libraries as the dynamic linker does (ld.so(8)): `DT_RPATH` of the object and of those that loaded it, or `DT_RUNPATH` of the
//! object alone; then the cache; then the system's directories. Candidates for another machine are skipped, and loaded libraries are not
//! searched again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::rc::Rc;

use vmbake_disk::tree::{InodeId, Kind, Tree};

use super::super::ldcache::{libraries, system_directories};
use super::{MergeError, Program, is_new, owner, show};
use vmbake_image::elf::{Dynamic, EM_AARCH64, ET_DYN, Elf, Machine};

/// Finds libraries in a tree.
pub(super) struct Loader<'a> {
    search: Search<'a>,
    /// What any program has loaded.
    loaded: BTreeSet<InodeId>,
    /// The names of all libraries of layers.
    brought: BTreeSet<Vec<u8>>,
}

/// A search for libraries.
pub(super) struct Search<'a> {
    tree: &'a Tree,
    machine: Machine,
    /// The system's directories, the machine's own first.
    system: Vec<String>,
    /// What the cache says, the first path of each name.
    cached: Cow<'a, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Shared objects for the machine, as far as they were looked at.
    objects: BTreeMap<InodeId, Option<Rc<Elf>>>,
}

/// A loaded program or library.
pub(super) struct Object {
    pub(super) path: Vec<u8>,
    pub(super) id: InodeId,
    pub(super) dynamic: Dynamic,
    /// Position of the one that needed it.
    pub(super) parent: Option<usize>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(tree: &'a Tree, arch: &str, machine: Machine, programs: &[Program]) -> Result<Self, MergeError> {
        let brought = programs.iter().filter(|program| program.elf.e_type == ET_DYN).map(|program| {
            let soname = program.elf.dynamic.as_ref().and_then(|dynamic| dynamic.soname.as_deref());
            soname.unwrap_or(file_name(&program.path)).to_vec()
        });
        let brought = brought.collect();
        let mut cached = BTreeMap::new();
        for library in libraries(tree, arch)? {
            if let btree_map::Entry::Vacant(place) = cached.entry(library.name) {
                place.insert(library.path);
            }
        }
        let (system, objects, cached) = (system_directories(arch), BTreeMap::new(), Cow::Owned(cached));
        let search = Search { tree, machine, system, cached, objects };
        Ok(Self { search, loaded: BTreeSet::new(), brought })
    }

    /// Whether some program loaded it.
    pub(super) fn has_loaded(&self, id: InodeId) -> bool {
        self.loaded.contains(&id)
    }

    /// Loads a program with all its libraries, breadth first. The base's libraries have what they need.
    pub(super) fn load(&mut self, program: &Program) -> Result<(), MergeError> {
        let Some(dynamic) = program.elf.dynamic.clone() else { return Ok(()) };
        let mut names = BTreeSet::from_iter(dynamic.soname.clone());
        // The loader is there before anything that it loads.
        names.extend(program.elf.interpreter.as_deref().map(|path| file_name(path).to_vec()));
        let mut objects = vec![Object { path: program.path.clone(), id: program.id, dynamic, parent: None }];
        let mut next = 0;
        while let Some(needed) = objects.get(next).map(|object| object.dynamic.needed.clone()) {
            for name in needed {
                if !names.insert(name.clone()) {
                    continue;
                }
                let Some((path, id, elf)) = self.search.find(&objects, next, &name) else {
                    // A program that loads this library by name may have loaded that one already.
                    if program.elf.interpreter.is_none() && self.brought.contains(&name) {
                        continue;
                    }
                    return Err(self.missing(&objects, next, &name));
                };
                let dynamic = elf.dynamic.clone().unwrap_or_default();
                names.extend(dynamic.soname.clone());
                self.loaded.insert(id);
                let known = objects.iter().any(|object| object.id == id);
                if !known && is_new(self.search.tree, self.search.tree.inode(id)) {
                    objects.push(Object { path, id, dynamic, parent: Some(next) });
                }
            }
            next += 1;
        }
        Ok(())
    }

    fn missing(&self, objects: &[Object], at: usize, name: &[u8]) -> MergeError {
        let shown = |index: usize| objects.get(index).map(|object| show(&object.path)).unwrap_or_default();
        let tree = self.search.tree;
        let artifact = objects.get(at).map(|object| owner(tree, tree.inode(object.id)));
        let (path, program) = (shown(at), shown(0));
        MergeError::Library { path, artifact: artifact.unwrap_or_default(), library: show(name), program }
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        machine: Machine,
        system: Vec<String>,
        cached: &'a BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Self {
        Self { tree, machine, system, cached: Cow::Borrowed(cached), objects: BTreeMap::new() }
    }

    /// The library that object `at` gets by `name`.
    pub(super) fn find(&mut self, objects: &[Object], at: usize, name: &[u8]) -> Option<(Vec<u8>, InodeId, Rc<Elf>)> {
        let object = objects.get(at)?;
        let paths = if name.contains(&b'/') {
            Vec::from_iter(self.expand(object, name))
        } else {
            let mut paths: Vec<Vec<u8>> = Vec::new();
            for (owner, list) in search_lists(objects, at) {
                let dirs = list.split(|byte| *byte == b':').flat_map(|dir| self.expand(owner, dir));
                paths.extend(dirs.map(|dir| [&dir, &b"/"[..], name].concat()));
            }
            paths.extend(self.cached.get(name).cloned());
            paths.extend(self.system.iter().map(|dir| [dir.as_bytes(), b"/", name].concat()));
            paths
        };
        paths.into_iter().find_map(|path: Vec<u8>| self.object(&path).map(|(id, elf)| (path, id, elf)))
    }

    /// The shared object at `path`, if it is one for the machine.
    fn object(&mut self, path: &[u8]) -> Option<(InodeId, Rc<Elf>)> {
        let id = self.tree.resolve(path).ok()?;
        let Kind::File(map) = &self.tree.inode(id).kind else { return None };
        let read = || Elf::read(map, self.tree.sources()).ok().flatten();
        let fits = |elf: &Elf| elf.e_type == ET_DYN && elf.machine == self.machine;
        let elf = self.objects.entry(id).or_insert_with(|| read().filter(fits).map(Rc::new));
        elf.clone().map(|elf| (id, elf))
    }

    /// A path with its tokens replaced; none when it would depend on the working directory.
    fn expand(&self, object: &Object, path: &[u8]) -> Option<Vec<u8>> {
        let dir = object.path.iter().rposition(|byte| *byte == b'/').map_or(&[][..], |end| &object.path[..end]);
        // The system's first directory is /lib/<triplet>.
        let lib = self.system.first().map_or("lib", |dir| dir.trim_start_matches('/'));
        let platform = if self.machine.e_machine == EM_AARCH64 { "aarch64" } else { "x86_64" };
        let tokens = [("ORIGIN", dir), ("LIB", lib.as_bytes()), ("PLATFORM", platform.as_bytes())];
        let mut path = path.to_vec();
        for (token, value) in tokens {
            path = replace(&path, format!("${{{token}}}").as_bytes(), value);
            path = replace(&path, format!("${token}").as_bytes(), value);
        }
        path.starts_with(b"/").then_some(path)
    }
}

/// The lists of directories that are searched for what object `at` needs, each with the object that has it. A file with
/// `DT_RUNPATH` has no `DT_RPATH`.
fn search_lists(objects: &[Object], at: usize) -> Vec<(&Object, &[u8])> {
    let above = |object: &&Object| object.parent.and_then(|parent| objects.get(parent));
    let Some(object) = objects.get(at) else { return Vec::new() };
    match &object.dynamic.runpath {
        Some(runpath) => vec![(object, runpath)],
        None => std::iter::successors(Some(object), above)
            .filter(|object| object.dynamic.runpath.is_none())
            .filter_map(|object| Some((object, object.dynamic.rpath.as_deref()?)))
            .collect(),
    }
}

pub(super) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// The text with every `from` replaced.
fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    result.extend_from_slice(rest);
    result
}
