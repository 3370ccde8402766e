//! Cached digests of files: returns the digest of an unchanged file without reading it.
//!
//! The record `seen/<device>-<inode>` is written after the file was hashed. If a record cannot be read or written, the
//! file is hashed again.

use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Store, StoreError, files};
use crate::file_identity::{FileIdentity, read_record, write_record};
use vmbake_common::digest::Digest;
use vmbake_common::ownership;

/// Directory in the store.
pub(super) const FOLDER: &str = "seen";

/// Smaller files are hashed faster than their record is read.
const WORTH: u64 = 256 << 10;

/// The cached record of a file.
#[derive(Serialize, Deserialize)]
struct Record {
    path: PathBuf,
    stamp: FileIdentity,
    digest: Digest,
}

impl Store {
    /// The digest of `file`, which must be at its start and stays there, with the algorithm of `like`, and its length
    /// in bytes. The file is read unless it is private and unchanged since it was hashed.
    pub fn digest(&self, path: &Path, mut file: &File, like: &Digest) -> io::Result<(Digest, u64)> {
        let private = || FileIdentity::of_private(file, path).filter(|stamp| stamp.len >= WORTH);
        let before = if self.is_trusted() { private() } else { None };
        if let Some(found) = before.as_ref().and_then(|stamp| self.recall(stamp, like)) {
            return Ok(found);
        }
        let before = before.filter(|before| !before.is_racily_clean());
        let (digest, len) = like.of_stream(file)?;
        file.rewind()?;
        if let Some(stamp) =
            before.filter(|before| FileIdentity::of(file).is_ok_and(|now| now.as_ref() == Some(before)))
        {
            self.note(path, stamp, digest);
        }
        Ok((digest, len))
    }

    /// Records the digest of a file of this process, which was hashed while it was written.
    pub(super) fn note_own(&self, path: &Path, file: &File, digest: Digest) {
        if self.is_trusted()
            && let Ok(Some(stamp)) = FileIdentity::backdated(file)
            && stamp.len >= WORTH
        {
            self.note(path, stamp, digest);
        }
    }

    fn recall(&self, stamp: &FileIdentity, like: &Digest) -> Option<(Digest, u64)> {
        let record: Record = serde_json::from_slice(&read_record(&self.record(stamp))?).ok()?;
        let known = record.stamp == *stamp && record.digest.algorithm() == like.algorithm();
        known.then_some((record.digest, stamp.len))
    }

    fn note(&self, path: &Path, stamp: FileIdentity, digest: Digest) {
        let target = self.record(&stamp);
        let Ok(path) = std::path::absolute(path) else { return };
        write_record(&target, |out| Ok(serde_json::to_writer(out, &Record { path, stamp, digest })?));
    }

    fn record(&self, stamp: &FileIdentity) -> PathBuf {
        self.root.join(FOLDER).join(format!("{:x}-{:x}", stamp.device, stamp.inode))
    }
}

/// Records of files that are missing or have changed.
pub(super) fn stale(store: &Store) -> Result<Vec<PathBuf>, StoreError> {
    let mut records = files(store.root.join(FOLDER))?;
    records.retain(|record| {
        let record = read_record(record).and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        let found = |path: &Path| FileIdentity::of_private(&ownership::open(path).ok()?, path);
        record.is_none_or(|record| found(&record.path).as_ref() != Some(&record.stamp))
    });
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{FileExt, PermissionsExt};

    /// A store with a blob that is large enough for a record.
    fn store(dir: &Path) -> (Store, Digest, PathBuf) {
        let store = Store::open(Some(dir.to_owned())).unwrap();
        let digest = store.insert(&vec![7; 300 << 10]).unwrap();
        let path = store.path(&digest);
        (store, digest, path)
    }

    #[test]
    fn what_was_hashed_is_not_read_again_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let (store, digest, path) = store(dir.path());
        let [record] = &files(dir.path().join("seen")).unwrap()[..] else { panic!("one record") };
        // The record is trusted, so the file is not read.
        let text = std::fs::read_to_string(record).unwrap();
        let other = Digest::of(b"other");
        std::fs::write(record, text.replace(&digest.to_string(), &other.to_string())).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(store.digest(&path, &file, &digest).unwrap(), (other, 300 << 10));
        // The record has another algorithm.
        let sha512 = Digest::Sha512([0; 64]);
        assert_eq!(store.digest(&path, &file, &sha512).unwrap().0.algorithm(), "sha512");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(store.digest(&path, &file, &digest).unwrap().0, digest, "the user who changed the mode may write");
        File::options().write(true).open(&path).unwrap().write_all_at(b"x", 5).unwrap();
        assert_ne!(store.digest(&path, &file, &digest).unwrap().0, digest);
        assert_eq!(stale(&store).unwrap(), std::slice::from_ref(record));
        store.verify(std::num::NonZeroUsize::MIN).unwrap();
        assert!(!record.exists());
    }

    #[test]
    fn a_file_that_was_written_just_now_is_not_noted() {
        let dir = tempfile::tempdir().unwrap();
        let (store, digest, _) = store(dir.path());
        let path = dir.path().join("base");
        std::fs::write(&path, vec![7; 300 << 10]).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(store.digest(&path, &file, &digest).unwrap().0, digest);
        assert_eq!(files(dir.path().join("seen")).unwrap().len(), 1, "only the blob");
    }
}
