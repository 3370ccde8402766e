//! Known files of a machine: the tree of the scripts, and which of its parts are complete.
//!
//! A path is resolved through the links of the tree, name by name. A name that the tree does not have is absent only in a directory that
//! the import created, or at a path of [`base`](super::base). Any other name, listing or content of the base is unknown: the request is
//! recorded, and the interpreter stops after the command that made it, regardless of what the command does with the result. With a base
//! image, its tree is known as well, until packages are installed; see [`base_tree`].

mod files;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{Arrival, InodeId, Kind, Origin, OriginId, Timestamp, Tree, TreeError};
use vmbake_shell::{Errno, Files, Follow, TreeFiles};

use super::base::{self, Basis, Found};
use super::base_tree;
use super::machine::has_token;
use super::runtime::{is_marked, machine_name};

/// The time of what scripts create: no file of an image and no `touch -d` has it.
const NOW: Timestamp = Timestamp { secs: 0, nanos: 1 };

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
    /// Whether the tree is that of a base image.
    is_image: bool,
    /// Whether packages have come since.
    has_packages: bool,
    /// Names that commands had made at paths where packages may have files, when packages came.
    earlier: BTreeSet<Vec<u8>>,
    /// What new and changed nodes come from.
    origin: OriginId,
    /// Names of the base image that commands took away.
    removed: BTreeSet<Vec<u8>>,
    /// The tree when each script was left to the machine.
    left: Vec<Vec<Found>>,
    unknown: RefCell<Option<String>>,
}

/// Where a path leads.
enum ResolvedPath {
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
    /// The files of a tree that has nothing but what every machine has.
    pub(super) fn new(tree: &'t mut Tree, absent: &'t BTreeSet<String>) -> Self {
        let base = tree.walk().filter_map(|(path, id, _)| Some((id, base::basis(&path)?))).collect();
        let origin = tree.first_origin();
        Self::with(tree, absent, (base, origin))
    }

    /// The files of a machine with this base image.
    pub(super) fn over(tree: &'t mut Tree, absent: &'t BTreeSet<String>) -> Result<Self, Errno> {
        let base = base_tree::prepare(tree)?;
        let complete = base_tree::complete(tree);
        let origin = tree.add_origin(Origin { layer: "profile".to_owned(), ..Origin::default() });
        Ok(Self { complete, is_image: true, ..Self::with(tree, absent, (base, origin)) })
    }

    fn with(
        tree: &'t mut Tree,
        absent: &'t BTreeSet<String>,
        (base, origin): (BTreeMap<InodeId, Basis>, OriginId),
    ) -> Self {
        Self {
            files: TreeFiles::new(tree, NOW, origin),
            absent,
            base,
            complete: BTreeSet::new(),
            kept: BTreeSet::new(),
            modes: BTreeSet::new(),
            former: BTreeSet::new(),
            vacated: BTreeSet::new(),
            open: BTreeSet::new(),
            is_image: false,
            has_packages: false,
            earlier: BTreeSet::new(),
            origin,
            removed: BTreeSet::new(),
            left: Vec::new(),
            unknown: RefCell::default(),
        }
    }

    /// Gives the machine the file of its name, whose text is not known.
    pub(super) fn name_machine(&mut self) -> Result<(), Errno> {
        self.files.write(base::NAME.as_bytes(), machine_name().into_bytes(), 0o600)?;
        if let ResolvedPath::Found(id, _) = self.resolve(base::NAME.as_bytes(), Follow::No) {
            self.base.insert(id, Basis::Content);
        }
        Ok(())
    }

    /// Everything that commands may have made or changed, with the numbers of the nodes: of a base image, what they did.
    pub(super) fn all(&self) -> Result<Vec<(u64, Found)>, Errno> {
        if self.is_image { base::walk_origin(&self.files, self.origin) } else { base::walk_with_ids(&self.files) }
    }

    /// Names of the base image that are gone, without those below others.
    pub(super) fn taken_away(&self) -> Vec<&[u8]> {
        let is_gone = |path: &&Vec<u8>| self.files.lookup(path, Follow::No).is_err();
        let gone: BTreeSet<&Vec<u8>> = self.removed.iter().filter(is_gone).collect();
        let is_top = |path: &&&Vec<u8>| !gone.iter().any(|other| is_below(path, other));
        gone.iter().filter(is_top).map(|path| path.as_slice()).collect()
    }

    /// Whether the base may have a node there, which then keeps its mode.
    pub(super) fn keeps_mode(&self, path: &str) -> bool {
        match self.resolve(path.as_bytes(), Follow::No) {
            ResolvedPath::Found(id, _) => self.modes.contains(&id),
            _ => false,
        }
    }

    /// Whether commands wrote there to what the base may have.
    pub(super) fn was_written(&self, path: &str) -> bool {
        match self.resolve(path.as_bytes(), Follow::No) {
            ResolvedPath::Found(id, _) => self.kept.contains(&id) && !self.is_dir(id),
            _ => false,
        }
    }

    /// Whether a path of the end is one that commands had made before packages came.
    pub(super) fn was_made_early(&self, path: &str) -> bool {
        self.earlier.contains(path.as_bytes())
    }

    /// The tree as it was each time that a script was left to the machine.
    pub(super) fn left(&self) -> &[Vec<Found>] {
        &self.left
    }

    /// A name that was taken away, and that the base may have.
    pub(super) fn removed(&self) -> Option<&Vec<u8>> {
        self.vacated.iter().find(|path| self.files.lookup(path, Follow::No).is_err())
    }

    fn resolve(&self, path: &[u8], follow: Follow) -> ResolvedPath {
        match self.files.tree().arrive(path, follow == Follow::Yes) {
            Ok(Arrival::Node { path, id }) if path.is_empty() => ResolvedPath::Found(id, b"/".to_vec()),
            Ok(Arrival::Node { path, id }) => ResolvedPath::Found(id, path),
            Ok(Arrival::Missing { path, dir, is_last }) => match (self.is_absent(dir, &path), is_last) {
                (true, true) => ResolvedPath::Absent,
                (true, false) => ResolvedPath::Error(Errno::Enoent),
                (false, true) => ResolvedPath::Unknown(path),
                (false, false) => ResolvedPath::Beyond(path),
            },
            Err(TreeError::LinkNames { .. }) => ResolvedPath::Beyond(path.to_vec()),
            Err(error) => ResolvedPath::Error(error.into()),
        }
    }

    /// Whether a machine does not have a name that the tree does not have.
    fn is_absent(&self, dir: InodeId, path: &[u8]) -> bool {
        let is_open = || self.open.iter().any(|open| is_below(path, open));
        self.vacated.contains(path) || self.by_rule(path) || (self.was_absent(dir, path) && !is_open())
    }

    /// Whether the base does not have a name.
    fn was_absent(&self, dir: InodeId, path: &[u8]) -> bool {
        let is_shown = self.complete.contains(&dir) && !(self.is_image && base_tree::may_appear(path));
        is_shown || base::is_vacant(path) || self.by_rule(path)
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
        self.complete.contains(&id) && !self.open.iter().any(opens) && !self.may_gain(path, &|_| true)
    }

    /// Whether a machine may have names in a directory of the base image that the image lacks.
    fn may_gain(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> bool {
        self.is_image && base_tree::may_gain(self.files.tree(), path, fits)
    }

    /// Whether the entries of a directory that fit are those of the tree.
    fn shows(&self, id: InodeId, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> bool {
        let is_open = || self.open.iter().any(|open| open == path || is_below(path, open));
        self.complete.contains(&id) && !is_open() && !self.may_gain(path, fits)
    }

    /// Notes a name of the base image that goes.
    fn note_removal(&mut self, id: InodeId, path: &[u8]) {
        if self.is_image && self.base.contains_key(&id) {
            self.removed.insert(path.to_vec());
        }
    }

    fn is_dir(&self, id: InodeId) -> bool {
        matches!(self.files.tree().inode(id).kind, Kind::Directory(_))
    }

    /// Records a request that nothing answers.
    fn ask<T>(&self, what: &str, path: &[u8]) -> Result<T, Errno> {
        let mut unknown = self.unknown.borrow_mut();
        unknown.get_or_insert_with(|| format!("{what} {}", vmbake_common::escape::line(String::from_utf8_lossy(path))));
        Err(Errno::Eio)
    }

    /// The node at a path, if its metadata are known.
    fn found(&self, path: &[u8], follow: Follow) -> Result<(InodeId, Vec<u8>), Errno> {
        match self.resolve(path, follow) {
            ResolvedPath::Found(id, full) if self.base.get(&id) == Some(&Basis::Assumed) => self.ask("the file", &full),
            ResolvedPath::Found(id, full) => Ok((id, full)),
            ResolvedPath::Absent => Err(Errno::Enoent),
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) => self.ask("the file", &full),
            ResolvedPath::Error(error) => Err(error),
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
            ResolvedPath::Found(..) | ResolvedPath::Absent => Ok(()),
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) => self.ask("the file", &full),
            ResolvedPath::Error(error) => Err(error),
        }
    }

    /// Whether the tree has a name, wherever it leads. A link whose target the tree lacks only works if the machine has the target.
    fn is_named(&self, path: &[u8]) -> bool {
        matches!(self.resolve(strip(path), Follow::No), ResolvedPath::Found(..))
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
        if let ResolvedPath::Found(id, _) = self.resolve(path, Follow::Yes) {
            self.kept.insert(id);
            self.modes.insert(id);
        }
    }

    /// A file that is written as a whole, whether or not it is there.
    fn writable(&self, path: &[u8]) -> Result<(), Errno> {
        match self.resolve(path, Follow::Yes) {
            ResolvedPath::Found(id, full) => match self.base.get(&id) {
                Some(Basis::Assumed | Basis::Content) => self.ask("the file", &full),
                _ => Ok(()),
            },
            ResolvedPath::Absent => Ok(()),
            ResolvedPath::Unknown(full) if !base::is_protected(&full) => Ok(()),
            ResolvedPath::Unknown(full) | ResolvedPath::Beyond(full) => self.ask("the file", &full),
            ResolvedPath::Error(error) => Err(error),
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
        if let ResolvedPath::Found(id, _) = self.resolve(path, Follow::Yes) {
            self.complete.insert(id);
        }
    }
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
