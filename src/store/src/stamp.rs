//! What the system says of a file, by which it is known again without being read, and records of that.
//!
//! Length, device, inode and both times are the same only if nobody has written to the file: as git and cargo do it. Nothing in a
//! store is synced, so after a power cut a file may have its length and times but not its bytes: a stamp holds until the
//! machine is started again. Both are believed only of private files (see [`vmbake_common::ownership`]): another user who may write could change
//! bytes through a mapping and leave the times as they are, or let a record speak of bytes that nobody has proven.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use vmbake_common::ownership;

/// The most by which a file's times may be behind the clock: FAT counts two seconds at a time.
const COARSE: Duration = Duration::from_secs(4);

/// The most by which the times that a file system of Linux gives are behind the clock: a tick of a kernel that counts 100 a second,
/// twice.
const TICK: Duration = Duration::from_millis(20);

/// Changes whenever the machine starts.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// How a file was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub len: u64,
    /// Seconds and nanoseconds since 1970.
    mtime: (i64, i64),
    ctime: (i64, i64),
    boot: String,
}

impl Stamp {
    /// Of an open regular file; `None` where the system does not tell enough.
    pub fn of(file: &File) -> io::Result<Option<Self>> {
        let meta = file.metadata()?;
        let boot = std::fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned();
        Ok((meta.is_file() && !boot.is_empty()).then(|| Self {
            device: meta.dev(),
            inode: meta.ino(),
            len: meta.len(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
            boot,
        }))
    }

    /// Of the file that is open as `path`, if it is private: of another one a stamp proves nothing.
    pub fn of_private(file: &File, path: &Path) -> Option<Self> {
        ownership::private(file, path).ok()?;
        Self::of(file).ok()?
    }

    /// Whether a change from now on may leave the file both of its times, and so this stamp: git calls such a file racily clean.
    pub(crate) fn is_racily_clean(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = i64::try_from(now.saturating_sub(COARSE).as_secs()).unwrap_or_default();
        self.mtime.0 >= limit || self.ctime.0 >= limit
    }

    /// Of a file that nobody else writes and that is not racily clean from now on: its modification time is set back, so that no
    /// other change gives it the same.
    pub(crate) fn backdated(file: &File) -> io::Result<Option<Self>> {
        let before = SystemTime::now().checked_sub(2 * COARSE).ok_or(io::ErrorKind::InvalidData)?;
        file.set_modified(before)?;
        Self::of(file)
    }

    /// Waits until every change from now on gives the file another time, as far as the file system is one of Linux.
    pub fn wait(&self) {
        let (secs, nanos) = self.ctime;
        let since = Duration::new(u64::try_from(secs).unwrap_or_default(), u32::try_from(nanos).unwrap_or_default());
        if let Ok(age) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since) {
            // Nothing tells when the file system's clock goes on but time itself.
            std::thread::sleep(TICK.saturating_sub(age));
        }
    }
}

/// Opens a record that only this user, or root, can have written.
pub fn open_record(path: &Path) -> Option<File> {
    let file = ownership::open(path).ok()?;
    ownership::private(&file, path).ok()?;
    Some(file)
}

/// The whole of a record that this user has written.
pub fn read_record(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_record(path)?.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Writes a record whole or not at all; without it the next run does again what it stands for.
pub fn write_record(target: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let Some(folder) = target.parent() else { return };
    let written = || -> io::Result<()> {
        ownership::make_folder(folder)?;
        let mode = Permissions::from_mode(0o644);
        let file = tempfile::Builder::new().prefix(".").permissions(mode).tempfile_in(folder)?;
        let mut out = BufWriter::new(file);
        content(&mut out)?;
        out.into_inner()?.persist(target)?;
        Ok(())
    };
    // A store that is read-only or full: what an old record says is over.
    if written().is_err() {
        let _gone = std::fs::remove_file(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_leaves_the_length_is_noticed_at_once() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        assert!(Stamp::of(&file).unwrap().unwrap().is_racily_clean());
        let stamp = Stamp::backdated(&file).unwrap();
        assert_eq!(Stamp::of(&file).unwrap(), stamp);
        std::os::unix::fs::FileExt::write_all_at(&file, b"C", 0).unwrap();
        assert_ne!(Stamp::of(&file).unwrap(), stamp);
    }
    #[test]
    fn a_record_that_others_may_have_written_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folder/record");
        write_record(&path, |out| out.write_all(b"content"));
        assert_eq!(read_record(&path).as_deref(), Some(&b"content"[..]));
        std::fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        assert_eq!(read_record(&path), None, "the group may write");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read_record(&link), None, "a link");
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        assert_eq!(read_record(&path), None, "others can replace the folder");
        write_record(&path, |_| Err(io::ErrorKind::StorageFull.into()));
        assert!(!path.exists(), "what could not be written leaves nothing");
    }
}
