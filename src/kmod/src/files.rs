//! Access to the tree that contains the modules.

use std::io;

use crate::error::KmodError;

/// A file tree. Paths are absolute; links are followed. Worker threads read modules.
pub trait Files: Sync {
    /// Entries of a directory, in any order; `None` if there is nothing at `path`.
    fn list(&self, path: &str) -> io::Result<Option<Vec<Entry>>>;

    /// The content of a file; `None` if there is nothing at `path`.
    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>>;
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: Vec<u8>,
    pub kind: EntryKind,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    File,
    /// `/dev/null`, to which a link hides the configuration files of the same name in other directories.
    Null,
    /// Another device, a dangling link.
    Other,
}

pub(crate) fn read(files: &impl Files, path: &str) -> Result<Option<Vec<u8>>, KmodError> {
    files.read(path).map_err(|source| KmodError::Read { path: path.to_owned(), source })
}

pub(crate) fn list(files: &impl Files, path: &str) -> Result<Option<Vec<Entry>>, KmodError> {
    files.list(path).map_err(|source| KmodError::Read { path: path.to_owned(), source })
}
