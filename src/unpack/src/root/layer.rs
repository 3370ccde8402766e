//! Applies one archive to a tree.

use std::collections::BTreeSet;

use vmbake_disk::source::{Map, SourceId};
use vmbake_disk::tree::{Inode, InodeId, Kind, Metadata, Tree, TreeError};

use super::{RootError, RootForm};
use crate::archive::{Member, MemberKind};

/// Start of the name of a file that hides another one.
const WHITEOUT: &[u8] = b".wh.";
/// Start of the names of files with another meaning.
const SPECIAL: &[u8] = b".wh..wh.";
/// Name of a file that hides all that lower layers have in its directory.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// A tree to which members of an archive are added.
pub(super) struct Applied<'a> {
    tree: &'a mut Tree,
    /// The archive, for messages.
    name: &'a str,
    source: SourceId,
    /// Paths without links that this archive has written.
    own: BTreeSet<Vec<u8>>,
}

impl<'a> Applied<'a> {
    pub(super) fn new(tree: &'a mut Tree, name: &'a str, source: SourceId) -> Self {
        Self { tree, name, source, own: BTreeSet::new() }
    }

    /// Applies all members in their order.
    pub(super) fn all(mut self, members: &[Member], form: RootForm) -> Result<(), RootError> {
        for member in members {
            let (parent, name) = split(&member.path);
            match name.strip_prefix(WHITEOUT).filter(|_| form == RootForm::Container) {
                _ if name.is_empty() => self.root(member)?,
                Some(_) if name == OPAQUE => self.hide_all(member, parent)?,
                Some(hidden) if !name.starts_with(SPECIAL) && ![&b""[..], b".", b".."].contains(&hidden) => {
                    self.hide(member, parent, hidden)?;
                }
                Some(_) => return Err(self.refused(member, "is not a whiteout of the OCI image specification")),
                None => self.place(member, parent, name)?,
            }
        }
        Ok(())
    }

    /// Sets the metadata of the root directory.
    fn root(&mut self, member: &Member) -> Result<(), RootError> {
        if member.kind != MemberKind::Directory {
            return Err(self.refused(member, "is the root, but not a directory"));
        }
        let origin = self.tree.first_origin();
        let inode = Inode { meta: member.meta.clone(), kind: Kind::directory(), origin };
        let placed = self.tree.place(b"", inode);
        self.wrap(member, placed).map(|_| ())
    }

    /// Adds a node. As with the programs that unpack images, anything but a directory in place of a directory replaces
    /// what is there.
    fn place(&mut self, member: &Member, parent: &[u8], name: &[u8]) -> Result<(), RootError> {
        let origin = self.tree.first_origin();
        let (real, dir) = self.parent(member, parent)?;
        let path = [&real[..], b"/", name].concat();
        let kind = match &member.kind {
            MemberKind::HardLink(to) => return self.link(member, to, (dir, name), path),
            MemberKind::Directory => Kind::directory(),
            MemberKind::File { offset, len } => Kind::File(Map::whole(self.source, *offset, *len)),
            MemberKind::Symlink(to) => Kind::Symlink(to.clone()),
            MemberKind::CharDevice(major, minor) => Kind::CharDevice { major: *major, minor: *minor },
            MemberKind::BlockDevice(major, minor) => Kind::BlockDevice { major: *major, minor: *minor },
            MemberKind::Fifo => Kind::Fifo,
        };
        let is_directory = |kind: &Kind| matches!(kind, Kind::Directory(_));
        let there = self.tree.entry(dir, name).map(|id| is_directory(&self.tree.inode(id).kind));
        if there.is_some_and(|there| there != is_directory(&kind)) {
            self.remove(member, &path)?;
        }
        let inserted = self.tree.insert(dir, name, Inode { meta: member.meta.clone(), kind, origin });
        self.wrap(member, inserted)?;
        self.own.insert(path);
        Ok(())
    }

    /// Adds another name of a node, which this archive or one below it has.
    fn link(
        &mut self,
        member: &Member,
        to: &[u8],
        (dir, name): (InodeId, &[u8]),
        path: Vec<u8>,
    ) -> Result<(), RootError> {
        let found = self.tree.find(&[b"/", to].concat());
        let Some(target) = self.wrap(member, found)? else {
            let to = vmbake_common::escape::name(to);
            return Err(self.refused(member, &format!("is a hard link to {to:?}, which does not exist before it")));
        };
        if let Some(Kind::Directory(_)) = self.tree.entry(dir, name).map(|id| &self.tree.inode(id).kind) {
            self.remove(member, &path)?;
        }
        let linked = self.tree.link(dir, name, target);
        self.wrap(member, linked)?;
        self.own.insert(path);
        Ok(())
    }

    /// The directory at `path`, which is created if it is missing, and its path without links.
    fn parent(&mut self, member: &Member, path: &[u8]) -> Result<(Vec<u8>, InodeId), RootError> {
        let (meta, origin) = (Metadata::root(0o755, member.meta.mtime), self.tree.first_origin());
        let made = self.tree.make_dirs(path, &meta, origin);
        let dir = self.wrap(member, made)?;
        let real = self.tree.real_path(path, true);
        Ok((self.wrap(member, real)?.map(|(real, _)| real).unwrap_or_default(), dir))
    }

    /// Removes what lower layers have as `name` in a directory.
    fn hide(&mut self, member: &Member, parent: &[u8], name: &[u8]) -> Result<(), RootError> {
        let real = self.tree.real_path(parent, true);
        match self.wrap(member, real)? {
            Some((real, _)) => self.prune(member, &[&real[..], b"/", name].concat()),
            None => Ok(()),
        }
    }

    /// Removes all that lower layers have in a directory.
    fn hide_all(&mut self, member: &Member, path: &[u8]) -> Result<(), RootError> {
        let real = self.tree.real_path(path, true);
        match self.wrap(member, real)? {
            Some((real, dir)) => self.prune_entries(member, &real, dir),
            None => Ok(()),
        }
    }

    /// Removes a node, except for what this archive has written. `path` has no links.
    fn prune(&mut self, member: &Member, path: &[u8]) -> Result<(), RootError> {
        let Some(id) = self.tree.lookup(path) else { return Ok(()) };
        if matches!(self.tree.inode(id).kind, Kind::Directory(_)) {
            self.prune_entries(member, path, id)?;
        }
        let is_used = matches!(&self.tree.inode(id).kind, Kind::Directory(entries) if !entries.is_empty());
        if is_used || self.own.contains(path) { Ok(()) } else { self.remove(member, path) }
    }

    fn prune_entries(&mut self, member: &Member, path: &[u8], dir: InodeId) -> Result<(), RootError> {
        let Kind::Directory(entries) = &self.tree.inode(dir).kind else { return Ok(()) };
        let names: Vec<Vec<u8>> = entries.keys().cloned().collect();
        names.iter().try_for_each(|name| self.prune(member, &[path, b"/", name].concat()))
    }

    fn remove(&mut self, member: &Member, path: &[u8]) -> Result<(), RootError> {
        let removed = self.tree.remove(path);
        self.wrap(member, removed).map(|_| ())
    }

    fn wrap<T>(&self, member: &Member, result: Result<T, TreeError>) -> Result<T, RootError> {
        result.map_err(|source| {
            let (name, path) = (self.name.to_owned(), vmbake_common::escape::name(&member.path));
            RootError::Tree { name, path, source: source.into() }
        })
    }

    fn refused(&self, member: &Member, fault: &str) -> RootError {
        let (name, path) = (self.name.to_owned(), vmbake_common::escape::name(&member.path));
        RootError::Member { name, path, fault: fault.to_owned() }
    }
}

/// The directory of a member and its name, which is empty for the root.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
