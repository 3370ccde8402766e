//! [`Files`] over a [`Tree`] of `vmbake-disk`.

use std::cell::RefCell;
use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, InodeId, Kind, Metadata, OriginId, Timestamp, Tree, TreeError, components};

use crate::files::{Errno, Files, Follow, Node, NodeKind};

/// The attribute with the capabilities of a file.
const CAPABILITY: &[u8] = b"security.capability";

/// Dangling links that lead to each other, followed where a file is written.
const MAX_LINKS: usize = 40;

/// A tree, and what new nodes of it get.
pub struct TreeFiles<'t> {
    tree: &'t mut Tree,
    epoch: Timestamp,
    origin: OriginId,
    /// A path that leads through more links than the tree follows.
    unknown: RefCell<Option<String>>,
}

impl<'t> TreeFiles<'t> {
    /// New and changed nodes come from `origin`, and have the time `epoch`.
    pub fn new(tree: &'t mut Tree, epoch: Timestamp, origin: OriginId) -> Self {
        Self { tree, epoch, origin, unknown: RefCell::default() }
    }

    /// The tree as it is now.
    pub fn tree(&self) -> &Tree {
        self.tree
    }

    /// The tree, for changes that are not those of a script.
    pub fn tree_mut(&mut self) -> &mut Tree {
        self.tree
    }

    fn find(&self, path: &[u8], follow: Follow) -> Result<InodeId, Errno> {
        match self.tree.real_path(path, follow == Follow::Yes) {
            Ok(found) => found.map(|(_, id)| id).ok_or(Errno::Enoent),
            Err(error) => {
                if matches!(error, TreeError::LinkNames { .. }) {
                    self.unknown.borrow_mut().get_or_insert_with(|| error.to_string());
                }
                Err(errno(error))
            }
        }
    }

    /// The name itself, not what a link leads to. A slash at its end demands a directory.
    fn find_name(&self, path: &[u8]) -> Result<InodeId, Errno> {
        let id = self.find(strip(path), Follow::No)?;
        let directory = matches!(self.tree.inode(id).kind, Kind::Directory(_));
        if path.ends_with(b"/") && !directory { Err(Errno::Enotdir) } else { Ok(id) }
    }

    /// The place of a new name: nothing may be there, and its directory must be.
    fn vacant(&self, path: &[u8]) -> Result<(), Errno> {
        match self.find(strip(path), Follow::No) {
            Ok(_) => Err(Errno::Eexist),
            Err(Errno::Enoent) => self.parent(path),
            Err(error) => Err(error),
        }
    }

    /// The directory of a name must be there.
    fn parent(&self, path: &[u8]) -> Result<(), Errno> {
        match self.tree.locate(path).map_err(errno)? {
            Some((dir, _)) if matches!(self.tree.inode(dir).kind, Kind::Directory(_)) => Ok(()),
            Some(_) => Err(Errno::Enotdir),
            None => Err(Errno::Enoent),
        }
    }

    /// The place of a new name that is not a directory's: one with a slash at its end cannot be made.
    fn vacant_file(&self, path: &[u8]) -> Result<(), Errno> {
        self.vacant(path)?;
        if path.ends_with(b"/") { Err(Errno::Enoent) } else { Ok(()) }
    }

    /// A directory with the set-group-ID bit passes on its group, and to directories the bit itself.
    fn place(&mut self, path: &[u8], mode: u16, kind: Kind) -> Result<(), Errno> {
        let mut meta = Metadata::root(mode, self.epoch);
        if let Ok(Some((dir, _))) = self.tree.locate(strip(path))
            && let above = &self.tree.inode(dir).meta
            && above.mode & 0o2000 != 0
        {
            meta.gid = above.gid;
            meta.mode |= if matches!(kind, Kind::Directory(_)) { 0o2000 } else { 0 };
        }
        let inode = Inode { meta, kind, origin: self.origin };
        self.tree.place(strip(path), inode).map(|_| self.touch_parent(path)).map_err(errno)
    }

    /// A directory whose entries change has a new time.
    fn touch_parent(&mut self, path: &[u8]) {
        if let Ok(Some((dir, _))) = self.tree.locate(strip(path)) {
            self.tree.meta_mut(dir).mtime = self.epoch;
        }
    }

    fn changed(&mut self, id: InodeId) {
        self.tree.set_origin(id, self.origin);
    }

    fn set_map(&mut self, path: &[u8], map: Map, mode: u16) -> Result<(), Errno> {
        if path.ends_with(b"/") {
            return Err(Errno::Eisdir);
        }
        let mut path = path.to_vec();
        for _ in 0..MAX_LINKS {
            match self.find(&path, Follow::Yes) {
                Ok(id) => {
                    if matches!(self.tree.inode(id).kind, Kind::Directory(_)) {
                        return Err(Errno::Eisdir);
                    }
                    self.tree.set_content(id, map).map_err(|_| Errno::Enxio)?;
                    let meta = self.tree.meta_mut(id);
                    meta.mtime = self.epoch;
                    meta.xattrs.remove(CAPABILITY);
                    self.changed(id);
                    return Ok(());
                }
                Err(Errno::Enoent) => match self.read_link(&path) {
                    Ok(target) if target.ends_with(b"/") => return Err(Errno::Eisdir),
                    Ok(target) => path = relative_to_link(&path, &target),
                    Err(_) => {
                        self.parent(&path)?;
                        return self.place(&path, mode, Kind::File(map));
                    }
                },
                Err(error) => return Err(error),
            }
        }
        Err(Errno::Eloop)
    }
}

impl Files for TreeFiles<'_> {
    fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        let id = self.find(path, follow)?;
        let Inode { meta, kind, .. } = self.tree.inode(id);
        let (kind, size) = match kind {
            Kind::Directory(_) => (NodeKind::Directory, 0),
            Kind::File(map) => (NodeKind::File, map.len()),
            Kind::Symlink(target) => (NodeKind::Symlink, target.len() as u64),
            Kind::CharDevice { .. } => (NodeKind::CharDevice, 0),
            Kind::BlockDevice { .. } => (NodeKind::BlockDevice, 0),
            Kind::Fifo => (NodeKind::Fifo, 0),
            Kind::Socket => (NodeKind::Socket, 0),
        };
        let id = self.tree.number(id);
        let mtime = (meta.mtime.secs, meta.mtime.nanos);
        Ok(Node { id, kind, mode: meta.mode, uid: meta.uid, gid: meta.gid, size, mtime })
    }

    fn read(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        let node = self.lookup(path, Follow::Yes)?;
        match node.kind {
            NodeKind::File => self.tree.read(path, limit as u64).map_err(errno),
            NodeKind::Directory => Err(Errno::Eisdir),
            _ => Err(Errno::Enxio),
        }
    }

    fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        let len = content.len() as u64;
        let source = self.tree.sources_mut().add(Arc::new(content));
        self.set_map(path, Map::whole(source, 0, len), mode)
    }

    fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, _limit: usize) -> Result<(), Errno> {
        let id = self.find(from, Follow::Yes)?;
        let Kind::File(map) = &self.tree.inode(id).kind else { return Err(Errno::Eisdir) };
        let map = map.clone();
        self.set_map(to, map, mode)
    }

    fn unknown(&self) -> Option<String> {
        self.unknown.borrow().clone()
    }

    fn dangles(&self, path: &[u8]) -> bool {
        let is_link = |id| matches!(self.tree.inode(id).kind, Kind::Symlink(_));
        matches!(self.find(path, Follow::Yes), Err(Errno::Enoent)) && self.find(path, Follow::No).is_ok_and(is_link)
    }

    fn new_time(&self) -> Option<(i64, u32)> {
        Some((self.epoch.secs, self.epoch.nanos))
    }

    fn link_count(&self, path: &[u8]) -> Result<u64, Errno> {
        let wanted = self.find(path, Follow::No)?;
        Ok(self.tree.walk().map(|(_, id, _)| u64::from(id == wanted)).sum())
    }

    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let id = self.find(path, Follow::Yes)?;
        match &self.tree.inode(id).kind {
            Kind::Directory(entries) => Ok(entries.keys().cloned().collect()),
            _ => Err(Errno::Enotdir),
        }
    }

    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let id = self.find(path, Follow::No)?;
        match &self.tree.inode(id).kind {
            Kind::Symlink(target) => Ok(target.clone()),
            _ => Err(Errno::Einval),
        }
    }

    fn create_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.vacant(path)?;
        self.place(path, mode & 0o1777, Kind::directory())
    }

    fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), Errno> {
        if target.is_empty() {
            return Err(Errno::Enoent);
        }
        self.vacant_file(path)?;
        self.place(path, 0o777, Kind::Symlink(target.to_vec()))
    }

    fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno> {
        let id = self.find(from, Follow::No)?;
        self.vacant_file(path)?;
        if matches!(self.tree.inode(id).kind, Kind::Directory(_)) {
            return Err(Errno::Eperm);
        }
        let (dir, name) = self.tree.locate(path).map_err(errno)?.ok_or(Errno::Enoent)?;
        self.tree.link(dir, name, id).map_err(errno)?;
        self.touch_parent(path);
        Ok(())
    }

    fn remove(&mut self, path: &[u8]) -> Result<(), Errno> {
        let id = self.find_name(path)?;
        if matches!(components(path).next_back(), None | Some(b"..")) || path.ends_with(b"/.") {
            return Err(Errno::Einval);
        }
        if matches!(&self.tree.inode(id).kind, Kind::Directory(entries) if !entries.is_empty()) {
            return Err(Errno::Enotempty);
        }
        self.touch_parent(path);
        self.tree.remove(strip(path)).map(|_| ()).map_err(errno)
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let id = self.find_name(from)?;
        let moved = self.lookup(strip(from), Follow::No)?;
        if !moved.is_dir() && to.ends_with(b"/") {
            return Err(Errno::Enotdir);
        }
        match self.lookup(strip(to), Follow::No) {
            Ok(old) if moved.is_dir() && !old.is_dir() => return Err(Errno::Enotdir),
            Ok(old) if !moved.is_dir() && old.is_dir() => return Err(Errno::Eisdir),
            Ok(old) if old.is_dir() && old.id != moved.id && !self.list(to)?.is_empty() => {
                return Err(Errno::Enotempty);
            }
            Ok(_) => {}
            Err(Errno::Enoent) => self.parent(to)?,
            Err(error) => return Err(error),
        }
        self.touch_parent(from);
        self.touch_parent(to);
        self.changed(id);
        // What is left to refuse is a directory that would move below itself.
        self.tree.rename(strip(from), strip(to)).map_err(|_| Errno::Einval)
    }

    fn set_mode(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        let id = self.find(path, Follow::Yes)?;
        if self.tree.inode(id).meta.mode != mode {
            self.tree.meta_mut(id).mode = mode;
            self.changed(id);
        }
        Ok(())
    }

    fn set_owner(&mut self, path: &[u8], uid: u32, gid: u32, follow: Follow) -> Result<(), Errno> {
        let id = self.find(path, follow)?;
        let Inode { meta, kind, .. } = self.tree.inode(id);
        let is_capable = matches!(kind, Kind::File(_)) && meta.xattrs.contains_key(CAPABILITY);
        if is_capable || (meta.uid, meta.gid) != (uid, gid) {
            let meta = self.tree.meta_mut(id);
            (meta.uid, meta.gid) = (uid, gid);
            if is_capable {
                meta.xattrs.remove(CAPABILITY);
            }
            self.changed(id);
        }
        Ok(())
    }

    fn has_attributes(&self, path: &[u8]) -> bool {
        self.find(path, Follow::Yes).is_ok_and(|id| !self.tree.inode(id).meta.xattrs.is_empty())
    }

    fn copy_attributes(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let (from, to) = (self.find(from, Follow::Yes)?, self.find(to, Follow::Yes)?);
        let attributes = self.tree.inode(from).meta.xattrs.clone();
        if !attributes.is_empty() {
            self.tree.meta_mut(to).xattrs.extend(attributes);
            self.changed(to);
        }
        Ok(())
    }

    fn set_mtime(&mut self, path: &[u8], mtime: Option<(i64, u32)>) -> Result<(), Errno> {
        let id = self.find(path, Follow::No)?;
        self.tree.meta_mut(id).mtime = mtime.map_or(self.epoch, |(secs, nanos)| Timestamp { secs, nanos });
        Ok(())
    }
}

/// A path without slashes at its end.
fn strip(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |at| at + 1);
    &path[..end]
}

/// Where a link at `path` leads.
fn relative_to_link(path: &[u8], target: &[u8]) -> Vec<u8> {
    if target.starts_with(b"/") {
        return target.to_vec();
    }
    let dir = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    [&path[..dir], target].concat()
}

fn errno(error: TreeError) -> Errno {
    error.into()
}

impl From<TreeError> for Errno {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::NotFound { .. } => Self::Enoent,
            TreeError::NotDirectory { .. } => Self::Enotdir,
            TreeError::SymlinkLoop { .. } | TreeError::LinkNames { .. } => Self::Eloop,
            TreeError::Occupied { .. } => Self::Eexist,
            TreeError::NotFile { .. } => Self::Enxio,
            TreeError::TooLarge { .. } => Self::Efbig,
            TreeError::Read { .. } => Self::Eio,
            TreeError::InvalidName { name, .. } if name.len() > 255 => Self::Enametoolong,
            TreeError::InvalidName { .. } => Self::Einval,
        }
    }
}
