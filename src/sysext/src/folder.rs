//! Writes an extension as a directory: a tree in, a directory with its files, modes and times out. It has a temporary name until it is complete.
//!
//! All files belong to the user who runs the program, since only root can change owners.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, RenameFlags, Timespec, Timestamps};
use vmbake_common::message::FileError;
use vmbake_disk::source::MapReader;
use vmbake_disk::tree::{Kind, Metadata, Tree};

use super::error::ExtensionError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::ownership;

/// Writes `tree` as the directory `out`, and returns the total length of its files. With `force`, replaces an existing extension: a
/// directory with the file `release`.
pub(super) fn write_folder(tree: &Tree, out: &Path, release: &str, force: bool) -> Result<u64, ExtensionError> {
    let failed = |source| ExtensionError::File(FileError::new(out, "write the extension", source));
    let is_there = out.symlink_metadata().is_ok();
    if is_there && !force {
        return Err(PublishError::Exists { path: out.to_owned() }.into());
    }
    if is_there && !is_extension(out, release) {
        return Err(ExtensionError::Foreign { path: out.to_owned() });
    }
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ownership::create_folder(parent).map_err(failed)?;
    let temporary = tempfile::Builder::new().prefix(".sysext.").tempdir_in(parent).map_err(failed)?;
    let temporary = Temporary(temporary.keep());
    let len = fill(tree, &temporary.0).map_err(failed)?;
    File::open(&temporary.0).and_then(|folder| Ok(rustix::fs::syncfs(folder)?)).map_err(failed)?;
    // The previous directory gets the temporary name, and is removed.
    let flags = if is_there { RenameFlags::EXCHANGE } else { RenameFlags::empty() };
    rustix::fs::renameat_with(CWD, &temporary.0, CWD, out, flags).map_err(|error| failed(error.into()))?;
    Ok(len)
}

/// Whether a directory is the extension with this release file.
fn is_extension(out: &Path, release: &str) -> bool {
    let is_file = |path: PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
    out.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && is_file(out.join(release.trim_start_matches('/')))
}

/// Writes everything below `folder`. Modes and times of directories are set last, since they can be read-only, and writing changes times.
fn fill(tree: &Tree, folder: &Path) -> io::Result<u64> {
    let (mut directories, mut all) = (Vec::new(), 0);
    for (path, _, inode) in tree.walk() {
        let place = folder.join(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(&path)));
        match &inode.kind {
            Kind::Directory(_) => {
                if !path.is_empty() {
                    DirBuilder::new().mode(0o700).create(&place)?;
                }
                directories.push((place, &inode.meta));
            }
            Kind::File(map) => {
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
                all += io::copy(&mut MapReader::new(map, tree.sources()), &mut file)?;
                apply_metadata(&place, &inode.meta, true)?;
            }
            Kind::Symlink(target) => {
                symlink(OsStr::from_bytes(target), &place)?;
                apply_metadata(&place, &inode.meta, false)?;
            }
            other => return Err(io::Error::other(format!("{}: is a {}", place.display(), other.name()))),
        }
    }
    directories.iter().rev().try_for_each(|(place, meta)| apply_metadata(place, meta, true))?;
    Ok(all)
}

/// Sets owner, mode and time of `place`.
fn apply_metadata(place: &Path, meta: &Metadata, has_mode: bool) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        lchown(place, Some(meta.uid), Some(meta.gid))?;
    }
    if has_mode {
        std::fs::set_permissions(place, Permissions::from_mode(meta.mode.into()))?;
    }
    let time = Timespec { tv_sec: meta.mtime.secs, tv_nsec: meta.mtime.nanos.into() };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(rustix::fs::utimensat(CWD, place, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// A directory that is removed on drop.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // On failure it stays, with a name that systemd does not use as an extension.
        let _left = remove(&self.0);
    }
}

/// Removes a directory, even with read-only subdirectories.
fn remove(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove(&entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    std::fs::remove_dir(folder)
}
