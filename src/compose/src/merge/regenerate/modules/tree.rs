//! The tree of the image, as depmod reads it.

use std::io;

use vmbake_disk::tree::{Kind, Tree};
use vmbake_kmod::{Entry, EntryKind, Files};

/// The largest file that is read, in bytes.
pub(super) const LARGEST: u64 = 512 << 20;

pub(in crate::merge) struct Directories<'a>(pub(in crate::merge) &'a Tree);

impl Files for Directories<'_> {
    fn list(&self, path: &str) -> io::Result<Option<Vec<Entry>>> {
        let found = self.0.real_path(path.as_bytes(), true).map_err(io::Error::other)?;
        let Some((real, id)) = found else { return Ok(None) };
        let Kind::Directory(entries) = &self.0.inode(id).kind else {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        };
        let kind = |name: &[u8]| self.kind(&[&real[..], b"/", name].concat());
        Ok(Some(entries.keys().map(|name| Entry { name: name.clone(), kind: kind(name) }).collect()))
    }

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.0.real_path(path.as_bytes(), true).map_err(io::Error::other)? {
            Some((real, _)) => self.0.read(&real, LARGEST).map(Some).map_err(io::Error::other),
            None => Ok(None),
        }
    }
}

impl Directories<'_> {
    fn kind(&self, path: &[u8]) -> EntryKind {
        match self.0.resolve(path).map(|id| &self.0.inode(id).kind) {
            Ok(Kind::Directory(_)) => EntryKind::Directory,
            Ok(Kind::File(_)) => EntryKind::File,
            // An image has no devices.
            _ => match self.0.lookup(path).map(|id| &self.0.inode(id).kind) {
                Some(Kind::Symlink(to)) if to == b"/dev/null" => EntryKind::Null,
                _ => EntryKind::Other,
            },
        }
    }
}
