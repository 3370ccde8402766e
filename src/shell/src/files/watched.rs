//! A tree with an account of the files whose content changed.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use super::{Errno, Files};

/// A tree, and when the content of its files was written: open files notice what others write.
pub(crate) struct Watched<'h> {
    files: &'h mut dyn Files,
    now: u64,
    /// By inode.
    written: BTreeMap<u64, u64>,
    /// When a command of the caller last had the tree.
    lent: u64,
}

impl<'h> Watched<'h> {
    pub(crate) fn new(files: &'h mut dyn Files) -> Self {
        Self { files, now: 0, written: BTreeMap::new(), lent: 0 }
    }

    pub(crate) fn write(&mut self, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
        self.note(path);
        self.files.write(path, content, mode)
    }

    pub(crate) fn copy(&mut self, from: &[u8], to: &[u8], mode: u16, limit: usize) -> Result<(), Errno> {
        self.note(to);
        self.files.copy(from, to, mode, limit)
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
