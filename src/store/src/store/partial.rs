//! A blob that is being written.

use std::fs::{File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use vmbake_common::digest::Digest;
use vmbake_common::digest::Hasher;
use vmbake_common::ownership;

use super::{Store, StoreError, create_dir};

/// A blob in progress: a file that only this process writes, and the digest of what is in it.
///
/// Dropping it keeps what was written, so that the next attempt continues there. Nothing is synced to the disk: a blob
/// that a power cut damages is found by its digest when it is used.
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

    /// Hashes what an earlier attempt left.
    fn resume(&mut self) -> Result<(), StoreError> {
        let mut reader = &self.file;
        let mut sink = HashWriter(&mut self.hasher);
        let copied = std::io::copy(&mut reader, &mut sink);
        self.len = copied.map_err(|source| StoreError::Read { path: self.path.clone(), source })?;
        Ok(())
    }

    /// Bytes that are there already.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is there yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets what is there.
    pub fn reset(&mut self) -> Result<(), StoreError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|source| StoreError::Write { path: self.path.clone(), source })?;
        (self.hasher, self.len) = (self.fresh.clone(), 0);
        Ok(())
    }

    /// Appends bytes, and hashes them on the way.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|source| StoreError::Write { path: self.path.clone(), source })?;
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// The digest of what is there.
    pub fn digest(&self) -> Digest {
        self.hasher.clone().finish()
    }

    /// Takes away what is there, which nobody needs any more.
    pub fn discard(self) -> Result<(), StoreError> {
        super::remove(&self.path)
    }

    /// Gives the blob its name, which is its digest; returns it with the file, open at its start.
    ///
    /// The lock ends here: whoever waits for it must not wait until the last reader has closed the file. The file becomes
    /// read-only last, since one that kept its old name could never be continued.
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

/// Opens the file, which nobody else may be able to write, and waits for its lock. Whoever had the lock before may have renamed or removed the file meanwhile: then
/// the lock is on something that nobody will find again, and a new file is made.
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
        // Something that cannot be replaced has its name.
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
