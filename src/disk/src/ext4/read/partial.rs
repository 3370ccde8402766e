//! Reads a part of a volume's tree: only nodes on the given paths.
//!
//! Everything read is validated as in [`super::read`]. Link counts and unread parts can be validated only by reading
//! everything.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::sync::Arc;

use mkext4::spec::inode::FileType;

use super::{Join, Made, check_type};
use crate::ext4::blocks::{self, Content, Scope};
use crate::ext4::corruption::{DirectoryFault, InodeFault};
use crate::ext4::directory::Entry;
use crate::ext4::error::REBUILD;
use crate::ext4::inodes::{self, Node, ROOT_INODE};
use crate::ext4::mapping::Budget;
use crate::ext4::superblock::{FileSystem, Super};
use crate::ext4::{LOST_FOUND, Location, ReadError, journal};
use crate::source::ReadAt;
use crate::tree::{Inode, InodeId, Kind, MAX_LINK_NAMES, MAX_SYMLINKS, Origin, ROOT, Tree, components};

/// What to read at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The node alone.
    Node,
    /// The node and the entries of a directory.
    Entries,
    /// The node, its entries, and the targets of symbolic links among them.
    Targets,
}

/// A path to read; symbolic links are followed inside the volume, including the last name's.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// From the root of the volume.
    pub path: &'a [u8],
    /// What to read at its end.
    pub depth: Depth,
}

/// Reads the nodes on the paths of `wants`; the tree contains nothing else. A missing path is not an error.
pub fn read_some(source: Arc<dyn ReadAt>, origin: Origin, wants: &[Want<'_>]) -> Result<(FileSystem, Tree), ReadError> {
    let source = journal::replayed(source)?;
    let volume = Super::open(&*source)?.with_tables()?;
    let info = volume.info.clone();
    let mut partial = Partial::open(&volume, source.clone(), origin)?;
    for want in wants {
        partial.want(want)?;
    }
    partial.budget.check_claims()?;
    Ok((info, partial.tree))
}

/// The tree so far.
struct Partial<'a> {
    volume: &'a Super<'a>,
    tree: Tree,
    made: Made,
    /// By number of the inode.
    ids: BTreeMap<u32, InodeId>,
    dirs: BTreeMap<InodeId, Dir>,
    /// Shared by all nodes.
    budget: Budget,
    /// The number of names that may still be followed: links lead to further links.
    steps_left: u32,
}

/// Maximum number of names on all paths, including links and their targets. Debian's take some hundred.
const MAX_STEPS: u32 = 1 << 20;

/// A directory of the tree.
struct Dir {
    number: u32,
    parent: u32,
    /// Its entries, once read.
    names: Option<Names>,
}

/// Inode and type of each name.
type Names = BTreeMap<Vec<u8>, (u32, Option<u8>)>;

impl<'a> Partial<'a> {
    fn open(volume: &'a Super<'a>, source: Arc<dyn ReadAt>, origin: Origin) -> Result<Self, ReadError> {
        let no_root = || ReadError::corrupt(Location::Inode(ROOT_INODE), DirectoryFault::NoRoot);
        let root = inodes::read_one(volume, ROOT_INODE)?.filter(|root| root.kind == FileType::Dir);
        let nodes = [root.ok_or_else(no_root)?];
        let mut budget = Budget::of(volume);
        let contents = blocks::read(volume, &nodes, Scope::Nodes, &mut budget)?;
        let mut tree = Tree::new(Join::new(volume, &nodes, &contents).metadata(0)?, origin);
        let made =
            Made { source: tree.sources_mut().add(source), block: volume.block, origin: tree.inode(ROOT).origin };
        let root = Dir { number: ROOT_INODE, parent: ROOT_INODE, names: None };
        let (ids, dirs) = (BTreeMap::from([(ROOT_INODE, ROOT)]), BTreeMap::from([(ROOT, root)]));
        Ok(Self { volume, tree, made, ids, dirs, budget, steps_left: MAX_STEPS })
    }

    fn want(&mut self, want: &Want<'_>) -> Result<(), ReadError> {
        let Some(id) = self.follow(ROOT, want.path)? else { return Ok(()) };
        if want.depth == Depth::Node || !self.dirs.contains_key(&id) {
            return Ok(());
        }
        let names: Vec<Vec<u8>> = self.names(id)?.keys().cloned().collect();
        for name in names {
            let entry = self.entry(id, &name)?.map(|entry| &self.tree.inode(entry).kind);
            let Some(Kind::Symlink(target)) = entry.filter(|_| want.depth == Depth::Targets) else { continue };
            let target = target.clone();
            self.follow(id, &target)?;
        }
        Ok(())
    }

    /// Follows a path from a directory, as in look-ups in a tree, and reads the nodes on it.
    fn follow(&mut self, from: InodeId, path: &[u8]) -> Result<Option<InodeId>, ReadError> {
        let names = |path: &[u8]| components(path).map(<[u8]>::to_vec).rev().collect::<Vec<_>>();
        let mut todo = names(path);
        let mut stack = if path.starts_with(b"/") { vec![ROOT] } else { self.way(from) };
        let (mut links, mut link_names) = (0, 0);
        while let Some(name) = todo.pop() {
            self.step()?;
            if name == b".." {
                stack.truncate(stack.len().saturating_sub(1).max(1));
                continue;
            }
            let dir = stack.last().copied().unwrap_or(ROOT);
            let Some(id) = self.entry(dir, &name)? else { return Ok(None) };
            match &self.tree.inode(id).kind {
                Kind::Symlink(target) => {
                    links += 1;
                    link_names += components(target).count();
                    if links > MAX_SYMLINKS || link_names > MAX_LINK_NAMES {
                        return Ok(None);
                    }
                    if target.starts_with(b"/") {
                        stack.truncate(1);
                    }
                    todo.extend(names(target));
                }
                _ => stack.push(id),
            }
        }
        Ok(stack.last().copied())
    }

    fn step(&mut self) -> Result<(), ReadError> {
        let left = self.steps_left.checked_sub(1);
        self.steps_left = left.ok_or_else(|| {
            let feature = format!("symbolic links that lead through more than {MAX_STEPS} names");
            ReadError::unsupported(Location::Inode(ROOT_INODE), feature, REBUILD)
        })?;
        Ok(())
    }

    /// The directories from the root to `dir`.
    fn way(&self, dir: InodeId) -> Vec<InodeId> {
        let mut way = vec![dir];
        while let Some(parent) = way.last().filter(|last| **last != ROOT).and_then(|last| self.dirs.get(last)) {
            way.push(self.ids.get(&parent.parent).copied().unwrap_or(ROOT));
        }
        way.reverse();
        way
    }

    /// The node of a name, which is read if necessary; `None` if the directory has no such entry.
    fn entry(&mut self, dir: InodeId, name: &[u8]) -> Result<Option<InodeId>, ReadError> {
        if !self.dirs.contains_key(&dir) {
            return Ok(None);
        }
        if let Some(id) = self.tree.entry(dir, name) {
            return Ok(Some(id));
        }
        let Some((number, file_type)) = self.names(dir)?.get(name).copied() else { return Ok(None) };
        self.place(dir, name, number, file_type)
    }

    /// The entries of a directory.
    fn names(&mut self, id: InodeId) -> Result<&Names, ReadError> {
        let Some(dir) = self.dirs.get(&id) else { return Err(self.stray(id)) };
        if dir.names.is_none() {
            let (number, parent) = (dir.number, dir.parent);
            let names = read_names(self.volume, number, parent, &mut self.budget)?;
            if let Some(dir) = self.dirs.get_mut(&id) {
                dir.names = Some(names);
            }
        }
        self.dirs.get(&id).and_then(|dir| dir.names.as_ref()).ok_or_else(|| self.stray(id))
    }

    fn stray(&self, id: InodeId) -> ReadError {
        let (number, _) = self.ids.iter().find(|(_, other)| **other == id).unwrap_or((&ROOT_INODE, &ROOT));
        ReadError::corrupt(Location::Inode(*number), DirectoryFault::NotDirectory)
    }

    /// Inserts an inode into the tree.
    fn place(
        &mut self,
        dir: InodeId,
        name: &[u8],
        number: u32,
        file_type: Option<u8>,
    ) -> Result<Option<InodeId>, ReadError> {
        let corrupt = |what: DirectoryFault| ReadError::corrupt(Location::Inode(number), what);
        let nodes = [node(self.volume, number)?];
        check_type(file_type, nodes[0].kind).map_err(corrupt)?;
        let parent = self.dirs.get(&dir).map_or(ROOT_INODE, |dir| dir.number);
        let is_dir = nodes[0].kind == FileType::Dir;
        if is_dir
            && dir == ROOT
            && name == LOST_FOUND
            && read_names(self.volume, number, parent, &mut Budget::of(self.volume))?.is_empty()
        {
            return Ok(None);
        }
        // Other errors of a tree have been checked before.
        let invalid = |_| corrupt(DirectoryFault::Name { name: String::from_utf8_lossy(name).into_owned() });
        let id = match self.ids.get(&number).copied() {
            Some(_) if is_dir => return Err(corrupt(DirectoryFault::TwoNames)),
            Some(id) => {
                self.tree.link(dir, name, id).map_err(invalid)?;
                id
            }
            None => {
                let contents = blocks::read(self.volume, &nodes, Scope::Nodes, &mut self.budget)?;
                let join = Join::new(self.volume, &nodes, &contents);
                let inode = Inode { meta: join.metadata(0)?, kind: join.kind(0, &self.made), origin: self.made.origin };
                self.tree.insert(dir, name, inode).map_err(invalid)?
            }
        };
        self.ids.insert(number, id);
        if is_dir {
            self.dirs.insert(id, Dir { number, parent, names: None });
        }
        Ok(Some(id))
    }
}

/// The entries of a directory.
fn read_names(volume: &Super<'_>, number: u32, parent: u32, budget: &mut Budget) -> Result<Names, ReadError> {
    let corrupt = |what: DirectoryFault| ReadError::corrupt(Location::Inode(number), what);
    let node = node(volume, number)?;
    let contents = blocks::read(volume, std::slice::from_ref(&node), Scope::Names, budget)?;
    let Some(Content::Directory(directory)) = contents.of.into_iter().next() else {
        return Err(corrupt(DirectoryFault::NotDirectory));
    };
    if directory.parent != parent {
        return Err(corrupt(DirectoryFault::Parent { found: directory.parent, expected: parent }));
    }
    let mut names = Names::new();
    for Entry { name, inode, file_type } in directory.entries {
        match names.entry(name) {
            Slot::Vacant(slot) => slot.insert((inode, file_type)),
            Slot::Occupied(slot) => {
                return Err(corrupt(DirectoryFault::NameTwice {
                    name: String::from_utf8_lossy(slot.key()).into_owned(),
                }));
            }
        };
    }
    Ok(names)
}

/// An inode with an entry in a directory.
fn node(volume: &Super<'_>, number: u32) -> Result<Node, ReadError> {
    let unused = || ReadError::corrupt(Location::Inode(number), InodeFault::Unused);
    inodes::read_one(volume, number)?.ok_or_else(unused)
}
