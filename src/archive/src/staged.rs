//! Atomic publication of a directory: it is filled under a hidden name next to its target, and renamed once with
//! rename(2).
//!
//! An existing directory is exchanged with a new one that has hard links to its files. Errors remove the new directory.
//! If the process is killed, the next run removes it. A lock on the directory excludes concurrent runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

use super::ArchiveError;
use vmbake_common::message::FileError;
use vmbake_common::ownership;

/// Mode of the directory until it is published.
const PRIVATE: u32 = 0o700;
const PUBLIC: u32 = 0o755;

/// A directory that is being filled.
pub(super) struct StagedFolder {
    path: PathBuf,
    target: PathBuf,
    replaced: Option<Replaced>,
    /// The staged directory, open and locked.
    folder: File,
    /// Whether another run may use the hidden name.
    is_gone: bool,
}

struct Replaced {
    /// Its files with their inodes.
    files: BTreeMap<OsString, u64>,
    /// Also locked: after the exchange, it has the hidden name until it is removed.
    _folder: File,
}

impl StagedFolder {
    /// Stages the directory `target`, with its existing files.
    pub(super) fn over(target: &Path) -> Result<Self, ArchiveError> {
        if target.symlink_metadata().is_err() {
            return Self::new(target);
        }
        // Links refer to the directory that is replaced.
        let target = target.canonicalize().map_err(|source| ArchiveError::Read { path: target.to_owned(), source })?;
        let mut staged = Self::new(&target)?;
        staged.replaced = Some(staged.link_files()?);
        Ok(staged)
    }

    /// Stages the directory `target`, which must not exist when it is published.
    pub(super) fn new(target: &Path) -> Result<Self, ArchiveError> {
        let unwritten = |source| ArchiveError::File(FileError::new(target, "write", source));
        let Some(name) = target.file_name() else {
            return Err(fixed(target, "has no name"));
        };
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        ownership::create_folder(parent).map_err(unwritten)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".staged");
        let path = parent.join(hidden);
        let folder = lock(&path, target)?;
        let staged = Self { path, target: target.to_owned(), replaced: None, folder, is_gone: false };
        staged.clear().map_err(|source| ArchiveError::File(FileError::new(staged.path.clone(), "write", source)))?;
        Ok(staged)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes leftovers of a killed run.
    fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// Links the files of the existing directory.
    fn link_files(&self) -> Result<Replaced, ArchiveError> {
        let target = &self.target;
        let unread = |source| ArchiveError::Read { path: target.clone(), source };
        let folder = open(target).map_err(unread)?;
        folder.try_lock().map_err(|_| ArchiveError::Busy { path: target.clone() })?;
        let meta = target.metadata().map_err(unread)?;
        if !meta.is_dir() {
            return Err(fixed(target, "is not a directory"));
        }
        if self.folder.metadata().map_err(unread)?.dev() != meta.dev() {
            return Err(fixed(target, "is a mount point"));
        }
        if std::env::current_dir().is_ok_and(|current| current.starts_with(target)) {
            return Err(fixed(target, "contains the current directory"));
        }
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(target).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let meta = entry.metadata().map_err(unread)?;
            if meta.is_dir() {
                return Err(fixed(target, &format!("contains the directory {:?}", entry.file_name())));
            }
            fs::hard_link(entry.path(), self.path.join(entry.file_name()))
                .map_err(|source| ArchiveError::File(FileError::new(entry.path(), "write", source)))?;
            files.insert(entry.file_name(), meta.ino());
        }
        Ok(Replaced { files, _folder: folder })
    }

    /// Renames the directory to its target.
    pub(super) fn publish(mut self) -> Result<(), ArchiveError> {
        if self.replaced.is_none() {
            self.take_name()?;
            self.is_gone = true;
        }
        let unwritten = |source| ArchiveError::File(FileError::new(self.target.clone(), "write", source));
        if let Some(replaced) = &self.replaced {
            self.exchange().map_err(unwritten)?;
            self.keep_changes(&replaced.files).map_err(unwritten)?;
        }
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new("."))).and_then(|parent| parent.sync_all()).map_err(unwritten)
    }

    fn take_name(&self) -> Result<(), ArchiveError> {
        let unwritten = |source| ArchiveError::File(FileError::new(self.target.clone(), "write", source));
        self.folder.set_permissions(fs::Permissions::from_mode(PUBLIC)).map_err(unwritten)?;
        self.folder.sync_all().map_err(unwritten)?;
        match rename(&self.path, &self.target, RenameFlags::NOREPLACE) {
            // The file system does not support the flag; a non-empty directory is not replaced there either.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                fs::rename(&self.path, &self.target).map_err(unwritten)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(ArchiveError::Exists { path: self.target.clone() })
            }
            other => other.map_err(unwritten),
        }
    }

    fn exchange(&self) -> io::Result<()> {
        let (old, new) = (self.target.metadata()?, self.folder.metadata()?);
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            chown(&self.path, Some(old.uid()), Some(old.gid()))?;
        }
        self.folder.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
        self.folder.sync_all()?;
        rename(&self.path, &self.target, RenameFlags::EXCHANGE)
    }

    /// Moves files that other programs wrote to the old directory in the meantime, unless the new one has a newer file
    /// of this name.
    fn keep_changes(&self, files: &BTreeMap<OsString, u64>) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let (entry, inode) = entry.and_then(|entry| entry.metadata().map(|meta| (entry, meta.ino())))?;
            let known = files.get(&entry.file_name());
            let target = self.target.join(entry.file_name());
            let now = target.symlink_metadata().ok().map(|meta| meta.ino());
            if known != Some(&inode) && now == known.copied() {
                fs::rename(entry.path(), target)?;
            }
        }
        Ok(())
    }
}

/// Removes an unpublished directory, or the one that was replaced.
impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.is_gone {
            // A leftover directory is harmless, and the next run removes it.
            let _removed = fs::remove_dir_all(&self.path);
        }
    }
}

/// Creates and locks the staging directory of `target`.
fn lock(path: &Path, target: &Path) -> Result<File, ArchiveError> {
    let unwritten = |source| ArchiveError::File(FileError::new(path, "write", source));
    let busy = || ArchiveError::Busy { path: target.to_owned() };
    match fs::DirBuilder::new().mode(PRIVATE).create(path) {
        Err(source) if source.kind() != ErrorKind::AlreadyExists => return Err(unwritten(source)),
        _ => {}
    }
    let folder = match open(path) {
        Err(source) if source.kind() == ErrorKind::NotFound => return Err(busy()),
        other => other.map_err(unwritten)?,
    };
    ownership::folder(path).map_err(|exposed| unwritten(exposed.into()))?;
    folder.try_lock().map_err(|_| busy())?;
    // The previous holder of the lock may have renamed the directory.
    let (locked, found) = (folder.metadata().map_err(unwritten)?, path.symlink_metadata());
    match found.is_ok_and(|found| (found.dev(), found.ino()) == (locked.dev(), locked.ino())) {
        true => Ok(folder),
        false => Err(busy()),
    }
}

/// Opens a directory. Opening a named pipe in its place would wait for a writer.
fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(OFlags::DIRECTORY.bits().cast_signed()).open(path)
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, flags)?)
}

fn fixed(path: &Path, reason: &str) -> ArchiveError {
    ArchiveError::Fixed { path: path.to_owned(), reason: reason.to_owned() }
}

/// Whether two directories have the same files and subdirectories.
pub(super) fn same_folders(one: &Path, other: &Path) -> io::Result<bool> {
    let names = |path: &Path| -> io::Result<Vec<OsString>> {
        let mut names: Vec<_> = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    };
    let (left, right) = (names(one)?, names(other)?);
    if left != right {
        return Ok(false);
    }
    for name in left {
        let (one, other) = (one.join(&name), other.join(&name));
        let (left, right) = (one.symlink_metadata()?, other.symlink_metadata()?);
        let same = if left.is_dir() && right.is_dir() {
            same_folders(&one, &other)?
        } else {
            let is_executable = |meta: &fs::Metadata| meta.permissions().mode() & 0o100 != 0;
            left.is_file()
                && right.is_file()
                && left.len() == right.len()
                && is_executable(&left) == is_executable(&right)
                && fs::read(&one)? == fs::read(&other)?
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;

    #[test]
    fn a_pipe_in_place_of_a_directory_is_refused_at_once() {
        let parent = tempfile::tempdir().unwrap();
        let pipe =
            |name: &str| rustix::fs::mkfifoat(CWD, parent.path().join(name), Mode::from_raw_mode(0o600)).unwrap();
        pipe("dist");
        pipe(".inputs.staged");
        for (name, named) in [("dist", "dist"), ("inputs", ".inputs.staged")] {
            let error = StagedFolder::over(&parent.path().join(name)).err().unwrap();
            assert!(error.to_string().contains(named), "{error}");
        }
        assert!(!parent.path().join(".dist.staged").exists());
    }
}
