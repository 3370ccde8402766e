//! What the import knows of a machine's files: the tree of the scripts, and which part of it is all that a machine has.
//!
//! A path is resolved through the links of the tree, name by name. A name that the tree does not have is absent only where that is known: in
//! a directory that the import itself created where nothing was, or at a path of [`base`](super::base). Every other name, every listing of
//! a directory that the base may fill, and every content of the base is unknown: the request is recorded, and the interpreter gives the run
//! up after the command that made it, whatever the command does with the result.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{InodeId, Kind, Timestamp, Tree, components};
use vmbake_shell::{Aspect, Errno, Files, Follow, Node, TreeFiles};

use super::base::{self, Basis};
use super::machine::has_token;
use super::runtime::{is_marked, name_of_unknown};

/// As MAXSYMLINKS of Linux.
const MAX_LINKS: usize = 40;
/// Most names that links add to one path.
const MAX_NAMES: usize = 4096;

/// The files of a machine, as far as they are known.
pub(super) struct KnownFiles<'t> {
    files: TreeFiles<'t>,
    /// Paths that rules declare absent.
    absent: &'t BTreeSet<String>,
    /// Nodes of the base; all others are of the import.
    base: BTreeMap<InodeId, Basis>,
    /// Directories in which a machine has nothing but what the tree shows.
    complete: BTreeSet<InodeId>,
    /// Nodes written by commands at paths that the base may have.
    kept: BTreeSet<InodeId>,
    /// Those whose mode no command has set.
    modes: BTreeSet<InodeId>,
    /// Names of such nodes that were taken away.
    former: BTreeSet<Vec<u8>>,
    /// Names that the base may have, and that commands took away to create them anew.
    vacated: BTreeSet<Vec<u8>>,
    /// Directories below which there may be more than the tree shows.
    open: BTreeSet<Vec<u8>>,
    unknown: RefCell<Option<String>>,
}

/// Where a path leads.
enum Place {
    /// To a node, by its path without links.
    Found(InodeId, Vec<u8>),
    /// To a name that a machine does not have; its directory is in the tree.
    Absent,
    /// To a name that a machine may have; its directory is in the tree.
    Unknown(Vec<u8>),
    /// Through a name that a machine may have.
    Beyond(Vec<u8>),
    /// Nowhere.
    Error(Errno),
}

impl<'t> KnownFiles<'t> {
    /// The files of a tree that has the base alone.
    pub(super) fn new(tree: &'t mut Tree, absent: &'t BTreeSet<String>) -> Self {
        let base = tree.walk().filter_map(|(path, id, _)| Some((id, base::basis(&path)?))).collect();
        let origin = tree.first_origin();
        Self {
            files: TreeFiles::new(tree, Timestamp::default(), origin),
            absent,
            base,
            complete: BTreeSet::new(),
            kept: BTreeSet::new(),
            modes: BTreeSet::new(),
            former: BTreeSet::new(),
            vacated: BTreeSet::new(),
            open: BTreeSet::new(),
            unknown: RefCell::default(),
        }
    }

    /// The tree, with no question of what is known.
    pub(super) fn tree(&self) -> &dyn Files {
        &self.files
    }

    /// Whether the base may have a node there, which then keeps its mode.
    pub(super) fn keeps_mode(&self, path: &str) -> bool {
        match self.resolve(path.as_bytes(), Follow::No) {
            Place::Found(id, _) => self.modes.contains(&id),
            _ => false,
        }
    }

    /// A name that was taken away, and that the base may have.
    pub(super) fn removed(&self) -> Option<&Vec<u8>> {
        self.vacated.iter().find(|path| self.files.lookup(path, Follow::No).is_err())
    }

    fn resolve(&self, path: &[u8], follow: Follow) -> Place {
        let tree = self.files.tree();
        let mut todo: Vec<&[u8]> = components(path).rev().collect();
        let mut stack: Vec<(&[u8], InodeId)> = Vec::new();
        let (mut links, mut names) = (0_usize, 0_usize);
        let Some(root) = tree.lookup(b"/") else { return Place::Error(Errno::Enoent) };
        let to_dir = path.ends_with(b"/") || path.ends_with(b"/.");
        while let Some(name) = todo.pop() {
            if name == b".." {
                stack.pop();
                continue;
            }
            let dir = stack.last().map_or(root, |(_, id)| *id);
            if !matches!(tree.inode(dir).kind, Kind::Directory(_)) {
                return Place::Error(Errno::Enotdir);
            }
            let full = [&text(&stack)[..], b"/", name].concat();
            let Some(id) = tree.entry(dir, name) else {
                return match (self.is_absent(dir, &full), todo.is_empty()) {
                    (true, true) => Place::Absent,
                    (true, false) => Place::Error(Errno::Enoent),
                    (false, true) => Place::Unknown(full),
                    (false, false) => Place::Beyond(full),
                };
            };
            match &tree.inode(id).kind {
                Kind::Symlink(target) if follow == Follow::Yes || to_dir || !todo.is_empty() => {
                    links = links.saturating_add(1);
                    names = names.saturating_add(components(target).count());
                    if links > MAX_LINKS || names > MAX_NAMES {
                        return Place::Error(Errno::Eloop);
                    }
                    if target.starts_with(b"/") {
                        stack.clear();
                    }
                    todo.extend(components(target).rev());
                }
                _ => stack.push((name, id)),
            }
        }
        let full = if stack.is_empty() { b"/".to_vec() } else { text(&stack) };
        Place::Found(stack.last().map_or(root, |(_, id)| *id), full)
    }

    /// Whether a machine does not have a name that the tree does not have.
    fn is_absent(&self, dir: InodeId, path: &[u8]) -> bool {
        let is_open = || self.open.iter().any(|open| is_below(path, open));
        self.vacated.contains(path) || self.by_rule(path) || (self.was_absent(dir, path) && !is_open())
    }

    /// Whether the base does not have a name.
    fn was_absent(&self, dir: InodeId, path: &[u8]) -> bool {
        self.complete.contains(&dir) || base::is_vacant(path) || self.by_rule(path)
    }

    fn by_rule(&self, path: &[u8]) -> bool {
        str::from_utf8(path).is_ok_and(|path| self.absent.contains(path))
    }

    /// Whether the base does not have the name of a node of the tree.
    fn replaces_nothing(&self, path: &[u8]) -> bool {
        let dir = &path[..path.iter().rposition(|byte| *byte == b'/').unwrap_or(0)];
        match self.files.tree().find(if dir.is_empty() { b"/" } else { dir }) {
            Ok(Some(dir)) => self.was_absent(dir, path),
            _ => false,
        }
    }

    /// Whether the entries of a directory, and of all below it, are those of the tree.
    fn is_whole(&self, id: InodeId, path: &[u8]) -> bool {
        let opens = |open: &Vec<u8>| open == path || is_below(path, open) || is_below(open, path);
        self.complete.contains(&id) && !self.open.iter().any(opens)
    }

    fn is_dir(&self, id: InodeId) -> bool {
        matches!(self.files.tree().inode(id).kind, Kind::Directory(_))
    }

    /// Records a request that nothing answers.
    fn ask<T>(&self, what: &str, path: &[u8]) -> Result<T, Errno> {
        let mut unknown = self.unknown.borrow_mut();
        unknown.get_or_insert_with(|| format!("{what} {}", crate::escape::line(String::from_utf8_lossy(path))));
        Err(Errno::Eio)
    }

    /// The node at a path, if its metadata are known.
    fn found(&self, path: &[u8], follow: Follow) -> Result<(InodeId, Vec<u8>), Errno> {
        match self.resolve(path, follow) {
            Place::Found(id, full) if self.base.get(&id) == Some(&Basis::Assumed) => self.ask("the file", &full),
            Place::Found(id, full) => Ok((id, full)),
            Place::Absent => Err(Errno::Enoent),
            Place::Unknown(full) | Place::Beyond(full) => self.ask("the file", &full),
            Place::Error(error) => Err(error),
        }
    }

    /// A node of the import, or one of the base that is known as a whole.
    fn own(&self, path: &[u8], follow: Follow) -> Result<(InodeId, Vec<u8>), Errno> {
        let (id, full) = self.found(path, follow)?;
        match self.base.get(&id) {
            None | Some(Basis::Whole) => Ok((id, full)),
            Some(_) => self.ask("the file", &full),
        }
    }

    /// A name that can be given to something new, where nothing may be.
    fn vacant(&self, path: &[u8]) -> Result<(), Errno> {
        match self.resolve(strip(path), Follow::No) {
            // The tree has the error.
            Place::Found(..) | Place::Absent => Ok(()),
            Place::Unknown(full) | Place::Beyond(full) => self.ask("the file", &full),
            Place::Error(error) => Err(error),
        }
    }

    /// Whether the length of a node is known.
    fn has_size(&self, id: InodeId, path: &[u8]) -> bool {
        let is_known = |text: &[u8]| !is_marked(text) && !has_token(text);
        match (&self.files.tree().inode(id).kind, self.base.get(&id)) {
            (Kind::File(_), None | Some(Basis::Whole)) => {
                self.files.read(path, base::LARGEST).is_ok_and(|text| is_known(&text))
            }
            (Kind::File(_), Some(_)) => false,
            (Kind::Symlink(target), _) => is_known(target),
            _ => true,
        }
    }

    /// Notes a node that a command wrote to where the base may have one.
    fn keep(&mut self, path: &[u8]) {
        if let Place::Found(id, _) = self.resolve(path, Follow::Yes) {
            self.kept.insert(id);
            self.modes.insert(id);
        }
    }

    /// A file that is written as a whole, whether or not it is there.
    fn writable(&self, path: &[u8]) -> Result<(), Errno> {
        match self.resolve(path, Follow::Yes) {
            Place::Found(id, full) => match self.base.get(&id) {
                Some(Basis::Assumed | Basis::Content) => self.ask("the file", &full),
                _ => Ok(()),
            },
            Place::Absent => Ok(()),
            Place::Unknown(full) if !base::is_protected(&full) => Ok(()),
            Place::Unknown(full) | Place::Beyond(full) => self.ask("the file", &full),
            Place::Error(error) => Err(error),
        }
    }

    /// A name that goes, with all below it.
    fn removable(&self, path: &[u8]) -> Result<(InodeId, Vec<u8>), Errno> {
        let (id, full) = self.own(strip(path), Follow::No)?;
        if self.is_dir(id) && !self.is_whole(id, &full) {
            return self.ask("the entries of", &full);
        }
        if !self.replaces_nothing(&full) {
            return self.ask("the file of the system at", &full);
        }
        Ok((id, full))
    }

    fn created_dir(&mut self, path: &[u8]) {
        if let Place::Found(id, _) = self.resolve(path, Follow::Yes) {
            self.complete.insert(id);
        }
    }
}

impl Files for KnownFiles<'_> {
    fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        self.found(path, follow).and_then(|_| self.files.lookup(path, follow))
    }

    fn read(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        let (id, full) = self.found(path, Follow::Yes)?;
        match self.base.get(&id) {
            Some(Basis::Exists) if !self.is_dir(id) => self.ask("the content of", &full),
            _ => self.files.read(path, limit),
        }
    }

    fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        if let Some(name) = name_of_unknown(&content) {
            let _ = self.ask::<()>("the text", format!("{{{{ {name} }}}}").as_bytes());
        }
        self.writable(path)?;
        let is_new = matches!(self.resolve(path, Follow::Yes), Place::Unknown(_));
        self.files.write(path, content, mode)?;
        if is_new {
            self.keep(path);
        }
        Ok(())
    }

    fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, limit: usize) -> Result<(), Errno> {
        let content = self.read(from, limit)?;
        self.write(to, content, mode)
    }

    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        let (id, full) = self.found(path, Follow::Yes)?;
        let is_open = self.open.iter().any(|open| *open == full || is_below(&full, open));
        if self.is_dir(id) && (is_open || !self.complete.contains(&id)) {
            return self.ask("the entries of", &full);
        }
        self.files.list(path)
    }

    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.inspect(path, Follow::No, Aspect::Kind);
        self.found(path, Follow::No).and_then(|_| self.files.read_link(path))
    }

    fn create_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        self.vacant(path)?;
        self.files.create_dir(path, mode)?;
        self.created_dir(path);
        Ok(())
    }

    fn symlink(&mut self, target: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.vacant(path).and_then(|()| self.files.symlink(target, path))
    }

    fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.own(from, Follow::No)?;
        self.vacant(path).and_then(|()| self.files.hard_link(from, path))
    }

    fn remove(&mut self, path: &[u8]) -> Result<(), Errno> {
        self.removable(path).and_then(|_| self.files.remove(path))
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), Errno> {
        let (id, _) = self.removable(from)?;
        let is_dir = self.is_dir(id);
        match self.resolve(strip(to), Follow::No) {
            Place::Found(old, full) => {
                self.own(&full, Follow::No)?;
                if self.is_dir(old) && !self.is_whole(old, &full) {
                    return self.ask("the entries of", &full);
                }
            }
            Place::Absent => {}
            Place::Unknown(full) if !is_dir && !base::is_protected(&full) => {}
            Place::Unknown(full) | Place::Beyond(full) => return self.ask("the file", &full),
            Place::Error(error) => return Err(error),
        }
        self.files.rename(from, to)
    }

    fn set_mode(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        if let Ok((id, _)) = self.found(path, Follow::Yes) {
            self.modes.remove(&id);
            if self.files.lookup(path, Follow::Yes)?.mode == mode {
                return Ok(());
            }
        }
        self.own(path, Follow::Yes).and_then(|_| self.files.set_mode(path, mode))
    }

    fn set_owner(&mut self, path: &[u8], uid: u32, gid: u32, follow: Follow) -> Result<(), Errno> {
        if self.found(path, follow).is_ok() {
            let node = self.files.lookup(path, follow)?;
            if (node.uid, node.gid) == (uid, gid) {
                return Ok(());
            }
        }
        self.own(path, follow).and_then(|_| self.files.set_owner(path, uid, gid, follow))
    }

    fn set_mtime(&mut self, path: &[u8], mtime: Option<(i64, u32)>) -> Result<(), Errno> {
        self.own(path, Follow::No).and_then(|_| self.files.set_mtime(path, mtime))
    }

    fn none_fits(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> bool {
        let is_root = matches!(self.resolve(path, Follow::Yes), Place::Found(_, full) if full == b"/");
        is_root
            && !base::fits_root(fits)
            && self.files.list(path).is_ok_and(|names| !names.iter().any(|name| fits(name)))
    }

    fn unknown(&self) -> Option<String> {
        self.unknown.borrow().clone()
    }

    fn inspect(&self, path: &[u8], follow: Follow, property: Aspect) {
        let Place::Found(id, full) = self.resolve(path, follow) else { return };
        let is_known = match property {
            Aspect::Kind => !self.kept.contains(&id),
            Aspect::Mode => !self.modes.contains(&id),
            Aspect::Size => self.has_size(id, &full),
            Aspect::Time => false,
        };
        if !is_known {
            let _ = self.ask::<()>(&format!("the {} of", property.name()), &full);
        }
    }

    fn read_program(&self, path: &[u8], limit: usize) -> Result<Vec<u8>, Errno> {
        match self.resolve(path, Follow::Yes) {
            Place::Found(_, full) if full == base::SUDO.as_bytes() => self.files.read(&full, limit),
            _ => self.read(path, limit),
        }
    }

    fn dangles(&self, path: &[u8]) -> bool {
        let Place::Found(id, _) = self.resolve(path, Follow::No) else { return false };
        let is_link = matches!(self.files.tree().inode(id).kind, Kind::Symlink(_));
        match self.resolve(path, Follow::Yes) {
            Place::Absent | Place::Error(Errno::Enoent) => is_link,
            Place::Unknown(full) | Place::Beyond(full) => {
                let _ = self.ask::<()>("the file", &full);
                is_link
            }
            _ => false,
        }
    }

    fn destination(&self, path: &[u8]) -> Result<Node, Errno> {
        match self.resolve(path, Follow::Yes) {
            Place::Found(..) => self.files.lookup(path, Follow::Yes),
            Place::Error(error) => Err(error),
            _ => Err(Errno::Enoent),
        }
    }

    fn known_link(&self, path: &[u8]) -> Option<Vec<u8>> {
        match self.resolve(path, Follow::No) {
            Place::Found(..) => self.files.read_link(path).ok(),
            _ => None,
        }
    }

    fn make_way(&mut self, path: &[u8]) -> Result<(), Errno> {
        match self.resolve(path, Follow::No) {
            Place::Found(id, _) if self.is_dir(id) => Err(Errno::Eisdir),
            Place::Found(id, full) => {
                self.own(&full, Follow::No)?;
                self.files.remove(path)?;
                match self.modes.contains(&id) {
                    true => self.former.insert(full.clone()),
                    false => self.former.remove(&full),
                };
                if !self.replaces_nothing(&full) {
                    self.vacated.insert(full);
                }
                Ok(())
            }
            Place::Absent => Ok(()),
            Place::Unknown(full) if !base::is_protected(&full) => {
                self.vacated.insert(full);
                Ok(())
            }
            Place::Unknown(full) | Place::Beyond(full) => self.ask("the file", &full),
            Place::Error(error) => Err(error),
        }
    }

    fn inherit(&mut self, path: &[u8], from: &Node) -> Result<(), Errno> {
        self.set_owner(path, from.uid, from.gid, Follow::Yes)?;
        self.set_mode(path, from.mode)?;
        match self.resolve(path, Follow::Yes) {
            Place::Found(id, full) if self.former.contains(&full) => drop(self.modes.insert(id)),
            _ => {}
        }
        Ok(())
    }

    fn ensure_dir(&mut self, path: &[u8], mode: u16) -> Result<(), Errno> {
        match self.resolve(path, Follow::Yes) {
            Place::Found(id, _) if self.is_dir(id) => Ok(()),
            Place::Found(..) => Err(Errno::Eexist),
            Place::Absent => self.create_dir(path, mode),
            Place::Unknown(full) if base::is_special(&full) => self.ask("the directory", &full),
            Place::Unknown(_) => {
                self.files.create_dir(path, mode)?;
                self.keep(path);
                Ok(())
            }
            Place::Beyond(full) => self.ask("the file", &full),
            Place::Error(error) => Err(error),
        }
    }

    fn may_have_more(&mut self, path: &[u8]) {
        if let Place::Found(_, full) = self.resolve(path, Follow::Yes) {
            self.open.insert(full);
        }
    }
}

/// The path of a stack of names.
fn text(stack: &[(&[u8], InodeId)]) -> Vec<u8> {
    stack.iter().flat_map(|(name, _)| [b"/", *name].concat()).collect()
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    path.strip_prefix(dir).is_some_and(|rest| rest.len() > 1 && rest.starts_with(b"/"))
}

/// A path without slashes at its end.
fn strip(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |at| at.saturating_add(1));
    path.get(..end).unwrap_or(path)
}
