//! The file system below `--root`. Absolute paths in; files, directories and a record of changes out.
//!
//! # Invariants
//!
//! Symbolic links are never followed, in any component of a path: each directory is opened from its parent. Paths have no
//! `.` and no `..`. Writes are atomic, wherever the program is killed: a file is written under another
//! name (`.NAME.vmbake`, one per file, so that the next run removes the remains of a killed one), 0600 and root's until
//! its content is complete, then gets its owner and mode, is synced, renamed, and its directory synced. A write that fails
//! leaves only the old file. A file with the right content is not touched; if only its owner or mode is
//! wrong, that is corrected. Writers hold the [lock](Root::lock).
//!
//! # Directories of services
//!
//! In a directory that belongs to a service, that service can replace anything at any time. It must not be able to
//! make this program read, write or chown a file elsewhere: symbolic links and special files are refused; an
//! opened file is examined again before use; a file with several hard links is neither read nor chowned, since it can
//! be another user's; a file is corrected in place only if no user except root and its new owner can have it open for
//! writing. The service can still replace content in its directory, which it is allowed to, and make a
//! run fail, with the path in the message.
//!
//! The link count shows only the present: a service that links a file of another user and removes the
//! link, or waits until the other name is removed, is stopped only by the kernel, which does not let users link files they may
//! not write (`fs.protected_hardlinks`, Debian's default).
//!
//! # Dry runs
//!
//! A dry run changes nothing. Its changes are kept in memory, and are visible to later reads.

mod disk;
mod overlay;

use std::cell::{Ref, RefCell};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::Error;
use disk::Disk;
use overlay::{Overlay, Planned};

/// Permissions and owner of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Permissions, with set-uid, set-gid and sticky bits.
    pub mode: u16,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// File type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    Directory,
    /// A symbolic link.
    Symlink,
    Socket,
    /// A device or a pipe.
    Other,
}

/// Metadata of a path, without following links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Type.
    pub kind: Kind,
    /// Permissions, as in [`Owner`].
    pub mode: u16,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Modification time: seconds and nanoseconds since 1970. For a planned write of a dry run, the maximum
    /// time.
    pub modified: (i64, u32),
    /// Number of hard links.
    pub links: u64,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name in arbitrary bytes.
    pub name: OsString,
    /// Type.
    pub found: Found,
}

/// Excludes other runs until it is dropped, or the process ends.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct Lock {
    _directory: Option<File>,
}

/// The file system below a directory.
#[derive(Debug)]
pub struct Root {
    disk: Disk,
    /// Only in a dry run.
    overlay: Option<RefCell<Overlay>>,
    changes: RefCell<Vec<Change>>,
}

/// A change of a path.
#[derive(Debug)]
pub struct Change {
    /// `write`, `change` (of mode or owner alone), `make` (a directory) or `remove`.
    pub verb: &'static str,
    /// Path below the root.
    pub path: String,
    /// Its new mode and owner, unless it was removed.
    pub owner: Option<Owner>,
}

/// Required action for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Correct,
    Write,
}

/// What messages call such a path.
pub(crate) const PLAIN: &str = "an absolute path without . and ..";

/// Whether a path is absolute, with no empty name, no `.`, no `..` and no NUL: others are refused everywhere.
pub fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    path.strip_prefix('/').is_some_and(|names| names.split('/').all(is_name))
}

impl Root {
    /// Opens the directory `path`, following a link, since the caller chose it.
    pub fn open(path: &Path, dry_run: bool) -> Result<Self, Error> {
        let overlay = dry_run.then(|| RefCell::new(Overlay::default()));
        Ok(Self { disk: Disk::open(path)?, overlay, changes: RefCell::default() })
    }

    /// Whether this is the machine itself, `/`.
    pub fn is_system(&self) -> bool {
        self.disk.is_system()
    }

    /// Whether it is a dry run.
    pub fn dry_run(&self) -> bool {
        self.overlay.is_some()
    }

    /// Syncs the writes of other programs, which a power cut would lose within half a minute.
    /// Only on the machine itself, since it affects all file systems.
    pub fn sync_all(&self) {
        if self.is_system() && !self.dry_run() {
            rustix::fs::sync();
        }
    }

    /// The path below the root, for messages.
    pub fn shown(&self, path: &str) -> PathBuf {
        self.disk.shown(path)
    }

    /// Waits for the lock, which is on the directory `/var/lib/vmbake`: no lock file is left behind, and
    /// the kernel releases it with the process. Locking twice in a process is a deadlock. A dry run does not lock.
    pub fn lock(&self) -> Result<Lock, Error> {
        let make = !self.dry_run();
        Ok(Lock {
            _directory: self
                .disk
                .state_directory(make)?
                .filter(|_| make)
                .map(|file| self.disk.lock(file))
                .transpose()?,
        })
    }

    /// Metadata of `path`, which can be a link; `None` if it or a parent is missing.
    pub fn find(&self, path: &str) -> Result<Option<Found>, Error> {
        let planned = self.overlay.as_ref().and_then(|overlay| overlay.borrow().find(path));
        match planned {
            Some(Planned::Absent) => Ok(None),
            Some(Planned::Node(found)) => Ok(Some(found)),
            Some(Planned::Owned(owner)) => Ok(self.disk.find(path)?.map(|found| found.owned(&owner))),
            None => self.disk.find(path),
        }
    }

    /// Reads the regular file at `path`, of up to `limit` bytes; `None` if it or a parent is missing. In a
    /// directory that others can write, a file with several links is refused.
    pub fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        match self.overlay.as_ref().and_then(|overlay| overlay.borrow().content(path)) {
            Some(Some(content)) if content.len() as u64 > limit => {
                Err(Error::TooLarge { path: self.shown(path), limit })
            }
            Some(content) => Ok(content),
            None => self.disk.read(path, limit),
        }
    }

    /// Writes a file with this content, owner and mode; returns whether anything changed. An existing path that is not a
    /// regular file is refused. The directory must exist.
    pub fn write(&self, path: &str, content: &[u8], owner: &Owner) -> Result<bool, Error> {
        let step = match &self.overlay {
            None => self.disk.write(path, content, owner)?,
            Some(overlay) => {
                let step = self.plan_write(path, content, owner)?;
                match step {
                    Step::Nothing => {}
                    Step::Correct => overlay.borrow_mut().own(path, owner),
                    Step::Write => overlay.borrow_mut().write(path, content, owner),
                }
                step
            }
        };
        Ok(match step {
            Step::Nothing => false,
            Step::Correct => self.changed("change", path, Some(owner)),
            Step::Write => self.changed("write", path, Some(owner)),
        })
    }

    /// Removes `path` unless it is a directory; returns whether it existed.
    pub fn remove(&self, path: &str) -> Result<bool, Error> {
        let removed = match &self.overlay {
            None => self.disk.remove(path)?,
            Some(overlay) => match self.find(path)? {
                None => false,
                Some(Found { kind: Kind::Directory, .. }) => return Err(self.refused(path, "a file", Kind::Directory)),
                Some(_) => overlay.borrow_mut().remove(path),
            },
        };
        Ok(removed && self.changed("remove", path, None))
    }

    /// Removes the directory `path` if it is empty; returns whether it did.
    pub fn remove_directory(&self, path: &str) -> Result<bool, Error> {
        let removed = match &self.overlay {
            None => self.disk.remove_directory(path)?,
            Some(overlay) => match self.find(path)? {
                None => false,
                Some(Found { kind: Kind::Directory, .. }) => {
                    self.list(path)?.is_empty() && overlay.borrow_mut().remove(path)
                }
                Some(found) => return Err(self.refused(path, "a directory", found.kind)),
            },
        };
        Ok(removed && self.changed("remove", path, None))
    }

    /// Creates the directory `path` with this owner and mode; returns whether anything changed. Its parent must exist.
    pub fn directory(&self, path: &str, owner: &Owner) -> Result<bool, Error> {
        let found = self.find(path)?;
        let verb = match found {
            Some(found) if found.kind != Kind::Directory => return Err(self.refused(path, "a directory", found.kind)),
            Some(found) if found.has(owner) => return Ok(false),
            Some(_) => "change",
            None => "make",
        };
        match &self.overlay {
            None => self.disk.directory(path, owner)?,
            Some(overlay) if found.is_some() => overlay.borrow_mut().own(path, owner),
            Some(overlay) => {
                self.check_above(path)?;
                overlay.borrow_mut().make(path, owner);
            }
        }
        Ok(self.changed(verb, path, Some(owner)))
    }

    /// Sets owner and mode of the file or socket at `path`; returns whether anything changed. If it is missing and not
    /// `optional`, that is an error. In a directory that others can write, a file with several links is refused.
    pub fn permit(&self, path: &str, owner: &Owner, optional: bool) -> Result<bool, Error> {
        let found = match self.find(path)? {
            Some(found) if matches!(found.kind, Kind::File | Kind::Socket) => found,
            Some(found) => return Err(self.refused(path, "a file or a socket", found.kind)),
            None if optional => return Ok(false),
            None => return Err(Error::refused(&self.shown(path), "a file or a socket", "nothing")),
        };
        if found.has(owner) {
            return Ok(false);
        }
        match &self.overlay {
            None => self.disk.permit(path, owner)?,
            Some(overlay) => overlay.borrow_mut().own(path, owner),
        }
        Ok(self.changed("change", path, Some(owner)))
    }

    /// Sets the modification time of `path`, which is created if missing; a dry run does nothing.
    pub fn stamp(&self, path: &str, time: (i64, u32)) -> Result<(), Error> {
        if self.dry_run() {
            return Ok(());
        }
        if self.find(path)?.is_none() {
            self.write(path, b"", &Owner { mode: 0o600, uid: 0, gid: 0 })?;
        }
        self.disk.stamp(path, time)
    }

    /// Entries of the directory `path`, by name; empty if it is missing.
    pub fn list(&self, path: &str) -> Result<Vec<Listed>, Error> {
        let planned = self.overlay.as_ref().is_some_and(|overlay| overlay.borrow().find(path).is_some());
        let mut listed = match self.find(path)? {
            // A directory that is planned or removed in a dry run.
            None if planned => Vec::new(),
            _ => self.disk.list(path)?,
        };
        if let Some(overlay) = &self.overlay {
            for (name, below) in overlay.borrow().below(path) {
                let rest = self.find(&below)?;
                listed.retain(|entry| entry.name != *name);
                listed.extend(rest.map(|found| Listed { name: name.into(), found }));
            }
        }
        // Insertion sort: std's sort would add kilobytes to the program.
        let mut sorted: Vec<Listed> = Vec::with_capacity(listed.len());
        for entry in listed {
            let at = sorted.partition_point(|other| other.name < entry.name);
            sorted.insert(at, entry);
        }
        Ok(sorted)
    }

    /// Changes so far, real or of a dry run, in order.
    pub fn changes(&self) -> Ref<'_, [Change]> {
        Ref::map(self.changes.borrow(), Vec::as_slice)
    }

    fn changed(&self, verb: &'static str, path: &str, owner: Option<&Owner>) -> bool {
        self.changes.borrow_mut().push(Change { verb, path: path.to_owned(), owner: owner.copied() });
        true
    }

    fn plan_write(&self, path: &str, content: &[u8], owner: &Owner) -> Result<Step, Error> {
        self.check_above(path)?;
        let Some(found) = self.find(path)? else { return Ok(Step::Write) };
        if found.kind != Kind::File {
            return Err(self.refused(path, "a regular file", found.kind));
        }
        let planned = self.overlay.as_ref().and_then(|overlay| overlay.borrow().content(path));
        let same = match planned {
            Some(planned) => planned.is_some_and(|planned| planned == content),
            None => self.disk.holds(path, content)?,
        };
        Ok(found.step(same, owner))
    }

    /// The directory of a dry-run write must exist, as in a real one.
    fn check_above(&self, path: &str) -> Result<(), Error> {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        match above {
            "" => Ok(()),
            _ => match self.find(above)? {
                Some(Found { kind: Kind::Directory, .. }) => Ok(()),
                Some(found) => Err(self.refused(above, "a directory", found.kind)),
                None => Err(Error::missing(&self.shown(above))),
            },
        }
    }

    fn refused(&self, path: &str, expected: &'static str, kind: Kind) -> Error {
        Error::refused(&self.shown(path), expected, kind.name())
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::File => "a regular file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Socket => "a socket",
            Self::Other => "a special file",
        }
    }
}

impl Found {
    fn of(metadata: &Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_symlink() => Kind::Symlink,
            kind if kind.is_socket() => Kind::Socket,
            _ => Kind::Other,
        };
        Self {
            kind,
            mode: u16::try_from(metadata.mode() & 0o7777).unwrap_or_default(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            size: metadata.len(),
            modified: (metadata.mtime(), u32::try_from(metadata.mtime_nsec()).unwrap_or_default()),
            links: metadata.nlink(),
        }
    }

    fn has(&self, owner: &Owner) -> bool {
        self.mode == owner.mode && self.uid == owner.uid && self.gid == owner.gid
    }

    fn owned(self, owner: &Owner) -> Self {
        Self { mode: owner.mode, uid: owner.uid, gid: owner.gid, ..self }
    }

    /// Whether users other than root can add and remove names in this directory.
    fn is_others(&self) -> bool {
        self.uid != 0 || self.mode & 0o022 != 0
    }

    fn step(&self, same_content: bool, owner: &Owner) -> Step {
        // A former writer can still have the file open: then the new owner gets a new file.
        let only_ours = self.links == 1 && (self.uid == 0 || self.uid == owner.uid) && self.mode & 0o022 == 0;
        match same_content {
            true if self.has(owner) => Step::Nothing,
            true if only_ours => Step::Correct,
            _ => Step::Write,
        }
    }
}

#[cfg(test)]
mod tests;
