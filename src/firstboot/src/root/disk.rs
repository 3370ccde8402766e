//! System calls: every path is walked from the root directory, component by component.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, Timespec, Timestamps, futimens, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use super::{Found, Kind, Listed, Owner, PLAIN, Step, is_plain};
use crate::error::Error;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// References a file without opening it.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// `NONBLOCK` and `NOCTTY`: opening has no effect if it was replaced by a pipe or a terminal.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIRECTORY: u32 = 0o700;

/// Path of the lock, with modes for missing directories.
const STATE: [(&str, u32); 3] = [("var", 0o755), ("lib", 0o755), ("vmbake", PRIVATE_DIRECTORY)];

/// Maximum number of listed entries: some 20 are expected, but a service can create any number.
const MAX_ENTRIES: usize = 4096;

#[derive(Debug)]
pub(super) struct Disk {
    top: File,
    path: PathBuf,
}

impl Disk {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, path, flags, Mode::empty()).map_err(|error| Error::failed("open", path, error.into()))?;
        Ok(Self { top: top.into(), path: path.to_path_buf() })
    }

    pub(super) fn is_system(&self) -> bool {
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        self.top.metadata().map(id).is_ok_and(|top| fs::metadata("/").map(id).is_ok_and(|system| system == top))
    }

    pub(super) fn shown(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// The lock directory, or `None` if it is missing and must not be created.
    pub(super) fn state_directory(&self, make: bool) -> Result<Option<File>, Error> {
        let mut shown = self.path.clone();
        let mut directory = self.clone_top()?;
        for (name, mode) in STATE {
            shown.push(name);
            let next = match self.enter(&directory, name, &shown)? {
                None if !make => return Ok(None),
                None => {
                    match mkdirat(&directory, name, Mode::from_raw_mode(mode)) {
                        Ok(()) => directory.sync_all().map_err(Error::io("sync", &shown))?,
                        // Created by another run.
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(Error::failed("create", &shown, error.into())),
                    }
                    self.enter(&directory, name, &shown)?.ok_or_else(|| Error::missing(&shown))?
                }
                Some(next) => next,
            };
            directory = next;
        }
        let found = directory.metadata().map_err(Error::io("examine", &shown))?;
        if make && found.mode() & 0o7777 != PRIVATE_DIRECTORY {
            set_mode(&directory, PRIVATE_DIRECTORY, &shown)?;
        }
        Ok(Some(directory))
    }

    pub(super) fn lock(&self, directory: File) -> Result<File, Error> {
        let shown = STATE.iter().fold(self.path.clone(), |path, (name, _)| path.join(name));
        directory.lock().map_err(Error::io("lock", &shown))?;
        Ok(directory)
    }

    pub(super) fn find(&self, path: &str) -> Result<Option<Found>, Error> {
        let Some((directory, name)) = self.above(path)? else { return Ok(None) };
        Ok(examine(&directory, name, &self.shown(path))?.map(|(_, found)| found))
    }

    pub(super) fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some((directory, name)) = self.above(path)? else { return Ok(None) };
        let shown = self.shown(path);
        let Some((file, found)) = open_file(&directory, name, &shown)? else { return Ok(None) };
        refuse_links(&directory, &found, &shown)?;
        if found.size > limit {
            return Err(Error::TooLarge { path: shown, limit });
        }
        let mut content = Vec::new();
        // The file can grow meanwhile, and files of /proc have no length.
        file.take(limit.saturating_add(1)).read_to_end(&mut content).map_err(Error::io("read", &shown))?;
        if content.len() as u64 > limit {
            return Err(Error::TooLarge { path: shown, limit });
        }
        Ok(Some(content))
    }

    /// Whether it is a regular file with this content.
    pub(super) fn holds(&self, path: &str, content: &[u8]) -> Result<bool, Error> {
        let Some((directory, name)) = self.above(path)? else { return Ok(false) };
        let shown = self.shown(path);
        let Some((mut file, found)) = open_file(&directory, name, &shown)? else { return Ok(false) };
        holds(&mut file, &found, content, &shown)
    }

    pub(super) fn write(&self, path: &str, content: &[u8], owner: &Owner) -> Result<Step, Error> {
        let shown = self.shown(path);
        let (directory, name) = self.above(path)?.ok_or_else(|| Error::missing(&above(&shown)))?;
        let temporary = temporary(name);
        let shown_temporary = shown.with_file_name(&temporary);
        unlink(&directory, &temporary, &shown_temporary)?;
        if let Some((mut file, found)) = open_file(&directory, name, &shown)? {
            let same = holds(&mut file, &found, content, &shown)?;
            match found.step(same, owner) {
                Step::Nothing => return Ok(Step::Nothing),
                Step::Correct => return give(&file, &found, owner, &shown).map(|()| Step::Correct),
                Step::Write => {}
            }
        }
        let written = create(&directory, &temporary, content, owner, &shown_temporary).and_then(|()| {
            renameat(&directory, &temporary, &directory, name)
                .map_err(|error| Error::failed("rename to", &shown, error.into()))
        });
        if let Err(error) = written {
            // The first error counts; the next run removes the rest.
            let _ = unlinkat(&directory, &temporary, AtFlags::empty());
            return Err(error);
        }
        directory.sync_all().map_err(Error::io("sync the directory of", &shown))?;
        Ok(Step::Write)
    }

    pub(super) fn remove(&self, path: &str) -> Result<bool, Error> {
        let Some((directory, name)) = self.above(path)? else { return Ok(false) };
        let shown = self.shown(path);
        let temporary = temporary(name);
        unlink(&directory, &temporary, &shown.with_file_name(&temporary))?;
        let removed = unlink(&directory, name, &shown)?;
        if removed {
            directory.sync_all().map_err(Error::io("sync the directory of", &shown))?;
        }
        Ok(removed)
    }

    pub(super) fn remove_directory(&self, path: &str) -> Result<bool, Error> {
        let Some((directory, name)) = self.above(path)? else { return Ok(false) };
        let shown = self.shown(path);
        match unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            Ok(()) => {
                directory.sync_all().map_err(Error::io("sync the directory of", &shown))?;
                Ok(true)
            }
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(Errno::NOTDIR) => Err(no_directory(&directory, name, &shown)),
            Err(error) => Err(Error::failed("remove", &shown, error.into())),
        }
    }

    pub(super) fn directory(&self, path: &str, owner: &Owner) -> Result<(), Error> {
        let shown = self.shown(path);
        let (directory, name) = self.above(path)?.ok_or_else(|| Error::missing(&above(&shown)))?;
        match mkdirat(&directory, name, Mode::from_raw_mode(PRIVATE_DIRECTORY)) {
            Ok(()) => directory.sync_all().map_err(Error::io("sync the directory of", &shown))?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::failed("create", &shown, error.into())),
        }
        let made = self.enter(&directory, name, &shown)?.ok_or_else(|| Error::missing(&shown))?;
        let found = Found::of(&made.metadata().map_err(Error::io("examine", &shown))?);
        give(&made, &found, owner, &shown)?;
        made.sync_all().map_err(Error::io("sync", &shown))
    }

    pub(super) fn permit(&self, path: &str, owner: &Owner) -> Result<(), Error> {
        let shown = self.shown(path);
        let (directory, name) = self.above(path)?.ok_or_else(|| Error::missing(&shown))?;
        let (handle, found) = examine(&directory, name, &shown)?.ok_or_else(|| Error::missing(&shown))?;
        if found.kind == Kind::Socket {
            // A socket cannot be opened; its path in /proc by descriptor refers to exactly the examined file.
            let by_handle = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
            chown(&by_handle, Some(owner.uid), Some(owner.gid)).map_err(Error::io("change the owner of", &shown))?;
            let mode = Permissions::from_mode(owner.mode.into());
            return fs::set_permissions(&by_handle, mode).map_err(Error::io("change the mode of", &shown));
        }
        let (file, found) = open_file(&directory, name, &shown)?.ok_or_else(|| Error::missing(&shown))?;
        refuse_links(&directory, &found, &shown)?;
        give(&file, &found, owner, &shown)
    }

    pub(super) fn stamp(&self, path: &str, (seconds, nanoseconds): (i64, u32)) -> Result<(), Error> {
        let shown = self.shown(path);
        let (directory, name) = self.above(path)?.ok_or_else(|| Error::missing(&shown))?;
        let (file, _) = open_file(&directory, name, &shown)?.ok_or_else(|| Error::missing(&shown))?;
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
        let times = Timestamps { last_access: time, last_modification: time };
        futimens(&file, &times).map_err(|error| Error::failed("change the time of", &shown, error.into()))
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<Listed>, Error> {
        let Some((above, name)) = self.above(path)? else { return Ok(Vec::new()) };
        let shown = self.shown(path);
        let Some(directory) = self.enter(&above, name, &shown)? else { return Ok(Vec::new()) };
        let entries = Dir::read_from(&directory).map_err(|error| Error::failed("list", &shown, error.into()))?;
        let mut listed = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| Error::failed("list", &shown, error.into()))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if listed.len() == MAX_ENTRIES {
                return Err(Error::refused(&shown, "at most 4096 entries", "more"));
            }
            // Entries that vanished meanwhile are skipped.
            if let Some((_, found)) = examine(&directory, name, &shown)? {
                listed.push(Listed { name: std::ffi::OsString::from_vec(name.to_bytes().to_vec()), found });
            }
        }
        Ok(listed)
    }

    /// The parent directory and last component of `path`; `None` if a parent is missing.
    fn above<'a>(&self, path: &'a str) -> Result<Option<(File, &'a str)>, Error> {
        let names: Vec<&str> = path.strip_prefix('/').map(|path| path.split('/').collect()).unwrap_or_default();
        let Some((name, parents)) = names.split_last().filter(|_| is_plain(path)) else {
            return Err(Error::refused(&self.shown(path), PLAIN, &format!("{path:?}")));
        };
        let mut directory = None;
        let mut shown = self.path.clone();
        for parent in parents {
            shown.push(parent);
            match self.enter(directory.as_ref().unwrap_or(&self.top), parent, &shown)? {
                None => return Ok(None),
                next => directory = next,
            }
        }
        Ok(Some((directory.map_or_else(|| self.clone_top(), Ok)?, name)))
    }

    fn enter(&self, directory: &File, name: &str, shown: &Path) -> Result<Option<File>, Error> {
        match openat(directory, name, DIRECTORY, Mode::empty()) {
            Ok(next) => Ok(Some(next.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(no_directory(directory, name, shown)),
            Err(error) => Err(Error::failed("open", shown, error.into())),
        }
    }

    fn clone_top(&self) -> Result<File, Error> {
        self.top.try_clone().map_err(Error::io("open", &self.path))
    }
}

fn above(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_path_buf()
}

/// One name per file, so that a later run finds the remains of a killed one.
fn temporary(name: &str) -> String {
    format!(".{name}.vmbake")
}

/// A file pinned by descriptor.
fn examine<N: rustix::path::Arg>(directory: &File, name: N, shown: &Path) -> Result<Option<(File, Found)>, Error> {
    let handle = match openat(directory, name, HANDLE, Mode::empty()) {
        Ok(handle) => File::from(handle),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(Error::failed("examine", shown, error.into())),
    };
    let found = Found::of(&handle.metadata().map_err(Error::io("examine", shown))?);
    Ok(Some((handle, found)))
}

/// Opens a regular file for reading. It is examined before, since opening a device can have effects, and after, since
/// it can have been replaced.
fn open_file(directory: &File, name: &str, shown: &Path) -> Result<Option<(File, Found)>, Error> {
    let Some((_, found)) = examine(directory, name, shown)? else { return Ok(None) };
    let refused = |found: Found| Error::refused(shown, "a regular file", found.kind.name());
    if found.kind != Kind::File {
        return Err(refused(found));
    }
    let file = match openat(directory, name, READ, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(Error::failed("open", shown, error.into())),
    };
    let found = Found::of(&file.metadata().map_err(Error::io("examine", shown))?);
    if found.kind != Kind::File {
        return Err(refused(found));
    }
    Ok(Some((file, found)))
}

fn refuse_links(directory: &File, found: &Found, shown: &Path) -> Result<(), Error> {
    if found.links <= 1 {
        return Ok(());
    }
    let above = Found::of(&directory.metadata().map_err(Error::io("examine the directory of", shown))?);
    if above.is_others() {
        return Err(Error::refused(shown, "a file with one name", "a file with several hard links"));
    }
    Ok(())
}

fn holds(file: &mut File, found: &Found, content: &[u8], shown: &Path) -> Result<bool, Error> {
    if found.size != content.len() as u64 {
        return Ok(false);
    }
    let mut present = Vec::with_capacity(content.len().saturating_add(1));
    file.take((content.len() as u64).saturating_add(1)).read_to_end(&mut present).map_err(Error::io("read", shown))?;
    Ok(present == content)
}

fn create(directory: &File, name: &str, content: &[u8], owner: &Owner, shown: &Path) -> Result<(), Error> {
    let mut file = openat(directory, name, CREATE, Mode::from_raw_mode(PRIVATE_FILE))
        .map(File::from)
        .map_err(|error| Error::failed("create", shown, error.into()))?;
    file.write_all(content).map_err(Error::io("write", shown))?;
    let found = Found::of(&file.metadata().map_err(Error::io("examine", shown))?);
    give(&file, &found, owner, shown)?;
    file.sync_all().map_err(Error::io("sync", shown))
}

/// Changes owner and mode without intermediate permissions that neither state has.
fn give(file: &File, found: &Found, owner: &Owner, shown: &Path) -> Result<(), Error> {
    let mut mode = found.mode;
    if (found.uid, found.gid) != (owner.uid, owner.gid) {
        // Even if the mode is unchanged: changing the owner clears set-uid and set-gid bits.
        let both = mode & owner.mode & 0o1777;
        if both != mode {
            set_mode(file, both.into(), shown)?;
            mode = both;
        }
        fchown(file, Some(owner.uid), Some(owner.gid)).map_err(Error::io("change the owner of", shown))?;
    }
    if mode != owner.mode {
        set_mode(file, owner.mode.into(), shown)?;
    }
    Ok(())
}

fn set_mode(file: &File, mode: u32, shown: &Path) -> Result<(), Error> {
    file.set_permissions(Permissions::from_mode(mode)).map_err(Error::io("change the mode of", shown))
}

/// Removes a path unless it is a directory; returns whether it existed.
fn unlink(directory: &File, name: &str, shown: &Path) -> Result<bool, Error> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::ISDIR) => Err(Error::refused(shown, "a file", Kind::Directory.name())),
        Err(error) => Err(Error::failed("remove", shown, error.into())),
    }
}

fn no_directory(directory: &File, name: &str, shown: &Path) -> Error {
    match examine(directory, name, shown) {
        Ok(Some((_, found))) => Error::refused(shown, "a directory", found.kind.name()),
        Ok(None) => Error::missing(shown),
        Err(error) => error,
    }
}
