//! A tree that records changed files.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use super::{Errno, Files, Follow, Node};
use crate::builtins::normalize;

/// How many links lead to a path at most.
const LINKS: usize = 40;

/// A tree, and when the content of its files was written: open files notice what others write.
pub(crate) struct Watched<'h> {
    files: &'h mut dyn Files,
    now: u64,
    /// By inode.
    written: BTreeMap<u64, u64>,
    /// When a command of the caller last had the tree.
    lent: u64,
    /// Inodes that had more than one name.
    linked: BTreeSet<u64>,
    /// The first path below `/proc` or `/sys` that a command asked for.
    machine: RefCell<Option<Vec<u8>>>,
    /// Paths below `/proc` or `/sys` that count as missing (`Settings::absent`).
    absent: Vec<Vec<u8>>,
}

impl<'h> Watched<'h> {
    pub(crate) fn new(files: &'h mut dyn Files, absent: Vec<Vec<u8>>) -> Self {
        let machine = RefCell::new(None);
        Self { files, now: 0, written: BTreeMap::new(), lent: 0, linked: BTreeSet::new(), machine, absent }
    }

    /// [`Files::lookup`], which notes what only the kernel of a machine knows.
    pub(crate) fn lookup(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        self.note_machine(path);
        let found = self.files.lookup(path, follow);
        if follow == Follow::Yes && found == Err(Errno::Enoent) {
            self.note_links(path);
        }
        found
    }

    /// [`Files::list`], which notes what only the kernel of a machine knows.
    pub(crate) fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        self.note_listing(path);
        self.files.list(path)
    }

    /// The names that a pattern matches, see [`Files::fitting`]. No device of the kernel's `/sys` is on every machine.
    pub(crate) fn list_for_pattern(&self, path: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> Result<Vec<Vec<u8>>, Errno> {
        if !normalize(path).starts_with(b"/sys/") {
            self.note_listing(path);
        }
        self.files.fitting(path, fits)
    }

    fn note_listing(&self, path: &[u8]) {
        self.note_machine(path);
        if matches!(&normalize(path)[..], b"/proc" | b"/sys") {
            self.machine.borrow_mut().get_or_insert_with(|| path.to_vec());
        }
    }

    /// The first path that only the kernel of a machine knows, if a command asked for one.
    pub(crate) fn asked_machine(&self) -> Option<Vec<u8>> {
        self.machine.borrow().clone()
    }

    fn note_machine(&self, path: &[u8]) {
        let normal = normalize(path);
        let is_of_machine = [&b"/proc/"[..], b"/sys/"].iter().any(|root| normal.starts_with(root));
        if is_of_machine && !self.absent.contains(&normal) {
            self.machine.borrow_mut().get_or_insert_with(|| path.to_vec());
        }
    }

    /// Notes where the links of a path that leads nowhere point to.
    fn note_links(&self, path: &[u8]) {
        let mut path = path.to_vec();
        for _ in 0..LINKS {
            let Some(target) = self.files.known_link(&path) else { return };
            let directory = path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
            path = if target.starts_with(b"/") { target } else { [&path[..=directory], &target].concat() };
            self.note_machine(&path);
        }
    }

    pub(crate) fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        self.note(path);
        self.files.write(path, content, mode)
    }

    pub(crate) fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, limit: usize) -> Result<(), Errno> {
        self.note(to);
        self.files.copy(from, to, mode, limit)
    }

    pub(crate) fn hard_link(&mut self, from: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.files.hard_link(from, path)?;
        if let Ok(node) = self.files.lookup(path, Follow::No) {
            self.note_linked(node.id);
        }
        Ok(())
    }

    /// Notes that an inode has more than one name.
    pub(crate) fn note_linked(&mut self, id: u64) {
        self.linked.insert(id);
    }

    /// Whether an inode had more than one name.
    pub(crate) fn was_linked(&self, id: u64) -> bool {
        self.linked.contains(&id)
    }

    /// Notes that a command of the caller had the tree, which may have written to any file.
    pub(crate) fn note_all(&mut self) {
        self.now += 1;
        self.lent = self.now;
    }

    /// When the content of an inode last changed.
    pub(crate) fn last_write(&self, id: u64) -> u64 {
        self.written.get(&id).copied().unwrap_or_default().max(self.lent)
    }

    fn note(&mut self, path: &[u8]) {
        if let Ok(node) = self.files.destination(path) {
            self.now += 1;
            self.written.insert(node.id, self.now);
        }
    }
}

impl<'h> Deref for Watched<'h> {
    type Target = dyn Files + 'h;

    fn deref(&self) -> &Self::Target {
        &*self.files
    }
}

impl DerefMut for Watched<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.files
    }
}
