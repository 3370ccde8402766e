//! File identities: metadata by which an unchanged file is recognized without reading it, and cached records about
//! files.
//!
//! As in git and cargo, a file with the same length, device, inode and timestamps is unchanged. The store is not
//! synced, so after a power failure a file may have its metadata but not its content: an identity is valid until the
//! next boot. Both are trusted only for private files (see [`vmbake_common::ownership`]): another user with write
//! access could modify bytes through a mapping without changing the timestamps, or forge a record.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use vmbake_common::ownership;

/// Maximum delay of file timestamps behind the clock: FAT has a resolution of two seconds.
const COARSE: Duration = Duration::from_secs(4);

/// Maximum delay of the timestamps of Linux file systems: twice the tick of a kernel with 100 Hz.
const TICK: Duration = Duration::from_millis(20);

/// Changes with each boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub len: u64,
    /// Seconds and nanoseconds since 1970.
    mtime: (i64, i64),
    ctime: (i64, i64),
    boot: String,
}

impl FileIdentity {
    /// The identity of an open regular file; `None` if the metadata are insufficient.
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

    /// The identity of the file open as `path`, if it is private: for any other file it proves nothing.
    pub fn of_private(file: &File, path: &Path) -> Option<Self> {
        ownership::private(file, path).ok()?;
        Self::of(file).ok()?
    }

    /// Whether a later change may leave the timestamps, and so the identity, unchanged: git calls such a file racily
    /// clean.
    pub(crate) fn is_racily_clean(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = i64::try_from(now.saturating_sub(COARSE).as_secs()).unwrap_or_default();
        self.mtime.0 >= limit || self.ctime.0 >= limit
    }

    /// The identity of a file that only this process writes and that is not racily clean: its modification time is set
    /// back, so that no later change can have the same.
    pub(crate) fn backdated(file: &File) -> io::Result<Option<Self>> {
        let before = SystemTime::now().checked_sub(2 * COARSE).ok_or(io::ErrorKind::InvalidData)?;
        file.set_modified(before)?;
        Self::of(file)
    }

    /// Waits until any later change gives the file another timestamp, on Linux file systems.
    pub fn wait(&self) {
        let (secs, nanos) = self.ctime;
        let since = Duration::new(u64::try_from(secs).unwrap_or_default(), u32::try_from(nanos).unwrap_or_default());
        if let Ok(age) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since) {
            // The clock of the file system cannot be queried.
            std::thread::sleep(TICK.saturating_sub(age));
        }
    }
}

/// Opens a record that only this user or root can have written.
pub fn open_record(path: &Path) -> Option<File> {
    let file = ownership::open(path).ok()?;
    ownership::private(&file, path).ok()?;
    Some(file)
}

/// Reads a record that only this user can have written.
pub fn read_record(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_record(path)?.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Writes a record atomically. Failures are ignored: without the record, the next run repeats the work.
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
    // The store is read-only or full: an old record is no longer valid.
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
        assert!(FileIdentity::of(&file).unwrap().unwrap().is_racily_clean());
        let identity = FileIdentity::backdated(&file).unwrap();
        assert_eq!(FileIdentity::of(&file).unwrap(), identity);
        std::os::unix::fs::FileExt::write_all_at(&file, b"C", 0).unwrap();
        assert_ne!(FileIdentity::of(&file).unwrap(), identity);
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
