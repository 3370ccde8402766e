//! Blobs in progress.

use std::fs::{File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use vmbake_common::digest::Digest;
use vmbake_common::digest::Hasher;
use vmbake_common::ownership;

use super::{Store, StoreError, create_dir};

/// A blob in progress: a locked file and the digest of its content.
///
/// Dropping it keeps the data, so that the next attempt resumes there. Nothing is synced to the disk: a blob damaged by
/// a power failure is detected by its digest on use.
#[derive(Debug)]
pub struct Partial {
    store: Store,
    path: PathBuf,
    file: File,
    fresh: Hasher,
    hasher: Hasher,
    len: u64,
}

impl Partial {
    pub(super) fn open(store: &Store, key: &str, fresh: Hasher) -> Result<Self, StoreError> {
        let folder = store.root.join("partial");
        create_dir(&folder)?;
        let path = folder.join(key);
        let file = lock(&path).map_err(|source| StoreError::Write { path: path.clone(), source })?;
        let (hasher, len) = (fresh.clone(), 0);
        let mut partial = Self { store: store.clone(), path, file, fresh, hasher, len };
        partial.resume()?;
        Ok(partial)
    }

    /// Hashes the data of an earlier attempt.
    fn resume(&mut self) -> Result<(), StoreError> {
        let mut reader = &self.file;
        let mut sink = HashWriter(&mut self.hasher);
        let copied = std::io::copy(&mut reader, &mut sink);
        self.len = copied.map_err(|source| StoreError::Read { path: self.path.clone(), source })?;
        Ok(())
    }

    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Discards the data.
    pub fn reset(&mut self) -> Result<(), StoreError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|source| StoreError::Write { path: self.path.clone(), source })?;
        (self.hasher, self.len) = (self.fresh.clone(), 0);
        Ok(())
    }

    /// Appends and hashes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|source| StoreError::Write { path: self.path.clone(), source })?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The digest of the data so far.
    pub fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }

    /// Deletes a file that is no longer needed.
    pub fn discard(self) -> Result<(), StoreError> {
        super::remove(&self.path)
    }

    /// Names the blob after its digest; returns the digest and the file, positioned at the start.
    ///
    /// The lock is released here, so that other processes do not wait until the last reader closes the file. The file
    /// becomes read-only last: a read-only file under its old name could never be resumed.
    pub fn publish(mut self) -> Result<(Digest, File), StoreError> {
        let digest = self.digest();
        let target = self.store.path(&digest);
        if let Some(folder) = target.parent() {
            create_dir(folder)?;
        }
        let write = |source| StoreError::Write { path: target.clone(), source };
        std::fs::rename(&self.path, &target).map_err(write)?;
        self.file.unlock().map_err(write)?;
        self.file.set_permissions(Permissions::from_mode(0o444)).map_err(write)?;
        self.store.note_own(&target, &self.file, digest);
        self.file.seek(SeekFrom::Start(0)).map_err(write)?;
        Ok((digest, self.file))
    }
}

/// Opens the file, which must not be writable by others, and waits for its lock. The previous holder of the lock may
/// have renamed or removed the file: then the lock is on an unlinked file, and a new file is created.
pub fn lock(path: &std::path::Path) -> std::io::Result<File> {
    loop {
        let file = ownership::open_or_make(path)?;
        file.lock()?;
        let ours = file.metadata()?;
        match std::fs::symlink_metadata(path) {
            Ok(found) if (found.dev(), found.ino()) == (ours.dev(), ours.ino()) => return Ok(file),
            _ => {}
        }
    }
}

struct HashWriter<'a>(&'a mut Hasher);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_continued_and_named_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path().join("s"))).unwrap();
        let mut first = store.partial("k", Hasher::sha256()).unwrap();
        first.write(b"hello ").unwrap();
        drop(first);
        let mut second = store.partial("k", Hasher::sha256()).unwrap();
        assert_eq!(second.len(), 6);
        second.write(b"world").unwrap();
        let (digest, _) = second.publish().unwrap();
        assert_eq!(digest, Digest::of(b"hello world"));
        assert_eq!(std::fs::read(store.path(&digest)).unwrap(), b"hello world");
        assert!(store.partial("k", Hasher::sha256()).unwrap().is_empty());
    }

    #[test]
    fn what_could_not_be_published_can_be_continued() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path().to_owned())).unwrap();
        let mut partial = store.partial("k", Hasher::sha256()).unwrap();
        partial.write(b"content").unwrap();
        // A directory, which cannot be replaced, has the name.
        std::fs::create_dir_all(store.path(&partial.digest()).join("x")).unwrap();
        assert!(partial.publish().is_err());
        let mode = std::fs::metadata(dir.path().join("partial/k")).unwrap().permissions().mode();
        assert_eq!(mode & 0o200, 0o200, "its owner may write it");
        assert_eq!(store.partial("k", Hasher::sha256()).unwrap().len(), 7);
    }

    #[test]
    fn only_one_writes_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path().to_owned())).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| store.insert(&vec![7; 1 << 20]).unwrap());
            }
        });
        assert_eq!(store.verify(std::num::NonZeroUsize::MIN).unwrap().0, 1);
        assert_eq!(std::fs::read_dir(dir.path().join("partial")).unwrap().count(), 0);
    }
}
