//! Changes a tree: adds, links and removes names.

use super::path::{components, parent_of, show};
use super::{Inode, InodeId, Kind, Metadata, NAME_MAX, OriginId, ROOT, Tree, TreeError};
use crate::source::Map;

impl Tree {
    /// Inserts a new node as `name` in directory `dir`, replacing an existing one. A directory cannot replace another
    /// type or be replaced by one: [`TreeError::Occupied`]. A directory inserted over a directory keeps the entries and
    /// takes the new metadata and origin.
    pub fn insert(&mut self, dir: InodeId, name: &[u8], inode: Inode) -> Result<InodeId, TreeError> {
        check_name(name)?;
        let existing = self.entry(dir, name);
        if let Some(id) = existing {
            let (old, new) = (&self.inode(id).kind, &inode.kind);
            match (old, new) {
                (Kind::Directory(_), Kind::Directory(_)) => {
                    let node = self.inode_mut(id);
                    (node.meta, node.origin) = (inode.meta, inode.origin);
                    return Ok(id);
                }
                (Kind::Directory(_), _) | (_, Kind::Directory(_)) => {
                    return Err(TreeError::Occupied { path: show(name), found: old.name(), wanted: new.name() });
                }
                _ => {}
            }
        }
        let id = InodeId(u32::try_from(self.inodes.len()).unwrap_or(u32::MAX));
        self.entries_mut(dir, name)?.insert(name.to_vec(), id);
        self.inodes.push(inode);
        Ok(id)
    }

    /// Inserts a node at `path`: its directories must exist; symbolic links among them are followed inside the tree.
    pub fn place(&mut self, path: &[u8], inode: Inode) -> Result<InodeId, TreeError> {
        let found = self.locate(path)?;
        match found {
            Some((dir, name)) => self.insert(dir, name, inode).map_err(|error| at(path, error)),
            None if components(path).next().is_none() && matches!(inode.kind, Kind::Directory(_)) => {
                let root = self.inode_mut(ROOT);
                (root.meta, root.origin) = (inode.meta, inode.origin);
                Ok(ROOT)
            }
            None => Err(TreeError::NotFound { path: show(parent_of(path)) }),
        }
    }

    /// Creates the directory `path` and missing parents, all with `meta`; existing ones are unchanged.
    pub fn make_dirs(&mut self, path: &[u8], meta: &Metadata, origin: OriginId) -> Result<InodeId, TreeError> {
        let mut so_far = Vec::new();
        let mut dir = ROOT;
        for name in components(path) {
            so_far.push(b'/');
            so_far.extend_from_slice(name);
            dir = match self.find(&so_far)? {
                Some(_) => self.resolve(&so_far)?,
                None => self.place(&so_far, Inode { meta: meta.clone(), kind: Kind::directory(), origin })?,
            };
            let kind = &self.inode(dir).kind;
            if !matches!(kind, Kind::Directory(_)) {
                return Err(TreeError::NotDirectory { path: show(&so_far), found: kind.name() });
            }
        }
        Ok(dir)
    }

    /// Adds a name for the node `target`, which is not a directory: `name` in directory `dir`.
    pub fn link(&mut self, dir: InodeId, name: &[u8], target: InodeId) -> Result<(), TreeError> {
        check_name(name)?;
        if matches!(self.inode(target).kind, Kind::Directory(_)) {
            return Err(TreeError::Occupied { path: show(name), found: "directory", wanted: "hard link" });
        }
        if let Some(Kind::Directory(_)) = self.entry(dir, name).map(|id| &self.inode(id).kind) {
            return Err(TreeError::Occupied { path: show(name), found: "directory", wanted: "hard link" });
        }
        self.entries_mut(dir, name)?.insert(name.to_vec(), target);
        Ok(())
    }

    /// Removes `path` with everything below; its last name is not followed. Returns whether it existed.
    pub fn remove(&mut self, path: &[u8]) -> Result<bool, TreeError> {
        match self.locate(path)? {
            Some((dir, name)) if matches!(self.inode(dir).kind, Kind::Directory(_)) => {
                Ok(self.entries_mut(dir, name)?.remove(name).is_some())
            }
            _ => Ok(false),
        }
    }

    /// Replaces the content of a regular file, under all of its names; its metadata are unchanged.
    pub fn set_content(&mut self, id: InodeId, content: Map) -> Result<(), TreeError> {
        match &mut self.inode_mut(id).kind {
            Kind::File(map) => *map = content,
            other => return Err(TreeError::NotFile { path: String::new(), found: other.name() }),
        }
        Ok(())
    }

    /// Renames `from` to `to`; last names are not followed. An existing `to` is replaced; a directory replaces only an
    /// empty directory, and is replaced by nothing else.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), TreeError> {
        let missing = |path: &[u8]| TreeError::NotFound { path: show(path) };
        let (from_dir, from_name) = self.locate(from)?.ok_or_else(|| missing(from))?;
        let (to_dir, to_name) = self.locate(to)?.ok_or_else(|| missing(to))?;
        check_name(to_name)?;
        let id = self.entry(from_dir, from_name).ok_or_else(|| missing(from))?;
        let moved = &self.inode(id).kind;
        let occupied = |found: &Kind| TreeError::Occupied { path: show(to), found: found.name(), wanted: moved.name() };
        let (real, target) = (self.real_path(from, false)?, self.real_path(parent_of(to), true)?);
        if let (Kind::Directory(_), Some((real, _)), Some((target, _))) = (moved, real, target)
            && (target == real || target.starts_with(&[&real[..], b"/"].concat()))
        {
            return Err(occupied(moved));
        }
        match self.entry(to_dir, to_name) {
            Some(same) if same == id => return Ok(()),
            Some(old) => match (moved, &self.inode(old).kind) {
                (Kind::Directory(_), Kind::Directory(entries)) if entries.is_empty() => {}
                (Kind::Directory(_), found) | (_, found @ Kind::Directory(_)) => return Err(occupied(found)),
                _ => {}
            },
            None => {}
        }
        self.entries_mut(to_dir, to_name)?.insert(to_name.to_vec(), id);
        self.entries_mut(from_dir, from_name)?.remove(from_name);
        Ok(())
    }

    fn entries_mut(
        &mut self,
        dir: InodeId,
        name: &[u8],
    ) -> Result<&mut std::collections::BTreeMap<Vec<u8>, InodeId>, TreeError> {
        match &mut self.inode_mut(dir).kind {
            Kind::Directory(entries) => Ok(entries),
            other => Err(TreeError::NotDirectory { path: show(name), found: other.name() }),
        }
    }
}

fn check_name(name: &[u8]) -> Result<(), TreeError> {
    let valid = (1..=NAME_MAX).contains(&name.len())
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| matches!(byte, b'/' | 0));
    if valid { Ok(()) } else { Err(TreeError::InvalidName { path: show(name), name: show(name) }) }
}

/// Adds the full path to an error with the last name only.
fn at(full: &[u8], error: TreeError) -> TreeError {
    match error {
        TreeError::Occupied { found, wanted, .. } => TreeError::Occupied { path: show(full), found, wanted },
        TreeError::NotDirectory { found, .. } => TreeError::NotDirectory { path: show(full), found },
        TreeError::InvalidName { name, .. } => TreeError::InvalidName { path: show(full), name },
        other => other,
    }
}
