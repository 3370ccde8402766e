//! What the system says of a file, by which it is known again without being read.
//!
//! Length, device, inode and both times are the same only if nobody has written to the file: as git and cargo do it. Nothing in a
//! store is synced, so after a power cut a file may have its length and times but not its bytes: a stamp holds until the
//! machine is started again.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The most by which a file's times may be behind the clock: FAT counts two seconds at a time.
const COARSE: Duration = Duration::from_secs(4);

/// Changes whenever the machine starts.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// How a file was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) len: u64,
    /// Seconds and nanoseconds since 1970.
    mtime: (i64, i64),
    ctime: (i64, i64),
    boot: String,
}

impl Stamp {
    /// Of an open regular file; `None` where the system does not tell enough.
    pub(super) fn of(file: &File) -> io::Result<Option<Self>> {
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

    /// Whether both times lie so far back that a change from now on gives the file another time.
    pub(super) fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let limit = i64::try_from(now.saturating_sub(COARSE).as_secs()).unwrap_or_default();
        self.mtime.0 < limit && self.ctime.0 < limit
    }

    /// Of a file that nobody else writes, known again from now on: its time of change is set back, so that no other change
    /// gives it the same.
    pub(super) fn settle(file: &File) -> io::Result<Option<Self>> {
        let before = SystemTime::now().checked_sub(2 * COARSE).ok_or(io::ErrorKind::InvalidData)?;
        file.set_modified(before)?;
        Self::of(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_write_that_leaves_the_length_is_noticed_at_once() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        assert!(!Stamp::of(&file).unwrap().unwrap().is_settled());
        let stamp = Stamp::settle(&file).unwrap();
        assert_eq!(Stamp::of(&file).unwrap(), stamp);
        std::os::unix::fs::FileExt::write_all_at(&file, b"C", 0).unwrap();
        assert_ne!(Stamp::of(&file).unwrap(), stamp);
    }
}
