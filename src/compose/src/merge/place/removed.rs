//! Empties, renames and deletes files of the tree.

use vmbake_common::glob::matches;
use vmbake_disk::tree::Kind;
use vmbake_layer::{FILES_BELOW, system_directory};

use super::Target;
use crate::merge::{ContentFault, MergeError};

impl Target {
    /// Fails if a directory or a link to one is at `path`. Other links become empty files.
    pub(in crate::merge) fn require_no_directory(&self, path: &str) -> Result<(), MergeError> {
        match self.tree.resolve(path.as_bytes()).map(|id| &self.tree.inode(id).kind) {
            Ok(Kind::Directory(_)) => Err(MergeError::content(
                path,
                ContentFault::NotEmptied { found: "directory or a link to one", key: "empty" },
            )),
            _ => Ok(()),
        }
    }

    /// Fails if anything but a regular file is at `path`, such as a link.
    pub(in crate::merge) fn require_file(&self, path: &str) -> Result<(), MergeError> {
        let key = "truncate";
        let found = self.wrap(self.tree.find(path.as_bytes()))?;
        match found.map(|id| &self.tree.inode(id).kind) {
            None | Some(Kind::File(_)) => Ok(()),
            Some(found) => Err(MergeError::content(path, ContentFault::NotEmptied { found: found.name(), key })),
        }
    }

    /// Empties an existing file, and keeps its owner and mode.
    pub(in crate::merge) fn truncate(&mut self, path: &str) -> Result<(), MergeError> {
        self.check_way(path.as_bytes())?;
        let found = self.wrap(self.tree.find(path.as_bytes()))?;
        match found.map(|id| &self.tree.inode(id).kind) {
            Some(Kind::File(_)) => self.empty(path),
            _ => Ok(()),
        }
    }

    /// Empties a file, or creates it.
    pub(in crate::merge) fn empty(&mut self, path: &str) -> Result<(), MergeError> {
        self.set_text(path, "")
    }

    /// Deletes a directory with its contents, or another file.
    pub(in crate::merge) fn remove_below(&mut self, path: &str) -> Result<(), MergeError> {
        self.check_way(path.as_bytes())?;
        let removed = self.tree.remove(path.as_bytes());
        self.wrap(removed).map(|_| ())
    }

    pub(in crate::merge) fn rename(&mut self, from: &str, to: &str) -> Result<(), MergeError> {
        self.parents(to.as_bytes())?;
        let renamed = self.tree.rename(from.as_bytes(), to.as_bytes());
        self.wrap(renamed)
    }

    /// Deletes what a path, or a pattern with `*` in its last component, names; `**` deletes regular files only.
    pub(in crate::merge) fn remove(&mut self, pattern: &str) -> Result<(), MergeError> {
        self.check_way(pattern.as_bytes())?;
        let (dir, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
        if !last.contains('*') {
            let found = self.wrap(self.tree.real_path(pattern.as_bytes(), false))?;
            let Some((path, _)) = found else { return Ok(()) };
            self.check_system(pattern, &path)?;
            return self.remove_unkept(&path);
        }
        // The directory may be a link, as others on the way to it.
        let found = self.wrap(self.tree.real_path(dir.as_bytes(), true))?;
        let Some((dir, id)) = found else { return Ok(()) };
        self.check_system(pattern, &[dir.as_slice(), b"/", last.as_bytes()].concat())?;
        let names: Vec<Vec<u8>> = if last == FILES_BELOW {
            let files = self.tree.walk_from(id).filter(|(.., inode)| matches!(inode.kind, Kind::File(_)));
            files.map(|(inner, ..)| inner).filter(|inner| !inner.is_empty()).collect()
        } else {
            let Kind::Directory(entries) = &self.tree.inode(id).kind else { return Ok(()) };
            let names = entries.keys().filter(|name| matches(last.as_bytes(), name));
            names.map(|name| [b"/", name.as_slice()].concat()).collect()
        };
        names.iter().try_for_each(|name| self.remove_unkept(&[dir.as_slice(), name].concat()))
    }

    /// Fails if an entry of `remove` leads through links to a directory of the system: `real` is the entry without links.
    fn check_system(&self, entry: &str, real: &[u8]) -> Result<(), MergeError> {
        let Some(directory) = system_directory(&String::from_utf8_lossy(real)) else { return Ok(()) };
        let (layer, entry) = (self.origin().layer.clone(), entry.to_owned());
        Err(MergeError::SystemDirectory { layer, entry, directory })
    }

    /// Deletes what is at `path`, which leads through no link, and below it, but for what is kept and the directories above that.
    fn remove_unkept(&mut self, path: &[u8]) -> Result<(), MergeError> {
        let is_above = |kept: &Vec<u8>| kept.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
        if !self.kept.iter().any(is_above) {
            let removed = self.tree.remove(path);
            return self.wrap(removed).map(|_| ());
        }
        let names: Vec<Vec<u8>> = match self.tree.lookup(path).map(|id| &self.tree.inode(id).kind) {
            Some(Kind::Directory(entries)) => entries.keys().cloned().collect(),
            _ => Vec::new(),
        };
        names.iter().try_for_each(|name| self.remove_unkept(&[path, b"/", name].concat()))
    }
}
