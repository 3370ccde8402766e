//! A partial image: `.NAME.part` next to its target. Data of an earlier attempt are hashed again, so there is no record
//! that could be wrong.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FallocateFlags, RenameFlags};
use vmbake_common::message::FileError;
use vmbake_disk::source::FileSource;
use vmbake_disk::write::fsverity;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_common::atomic_file::{PublishError, require_file};
use vmbake_common::digest::Digest;
use vmbake_common::ownership;
use vmbake_store::store::lock;

use super::error::PullError;
use super::known::digests;

/// Zeros of this length become a hole, as in the blocks of file systems.
const PAGE: usize = 4096;
/// The mode of baked images.
const MODE: u32 = 0o644;

/// A partial image. Other pulls of the same image wait for it.
#[derive(Debug)]
pub(super) struct PartialImage {
    path: PathBuf,
    target: PathBuf,
    file: File,
    /// Whether an earlier attempt left data.
    is_old: bool,
}

impl PartialImage {
    /// Opens the partial file of `target`, with `size` bytes.
    pub(super) fn open(target: &Path, size: u64) -> Result<Self, PullError> {
        let folder = target.parent().unwrap_or(Path::new("."));
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!(".{name}.part"));
        let failed = |source| PullError::File(FileError::new(path.clone(), "write", source));
        ownership::create_folder(folder).map_err(failed)?;
        let file = lock(&path).map_err(failed)?;
        let is_old = file.metadata().map_err(failed)?.len() > 0;
        file.set_len(size).map_err(failed)?;
        Ok(Self { path, target: target.to_owned(), file, is_old })
    }

    /// The data of an earlier attempt: digests of chunks, by offset.
    pub(super) fn found(&self, chunk_size: u64, threads: NonZeroUsize) -> Result<BTreeMap<u64, Digest>, PullError> {
        if !self.is_old {
            return Ok(BTreeMap::new());
        }
        Ok(digests(&self.source()?, chunk_size, threads)
            .map_err(|source| self.unreadable(source))?
            .into_iter()
            .collect())
    }

    /// Replaces data of an earlier attempt with a hole.
    pub(super) fn clear(&self, offset: u64, len: usize) -> Result<(), PullError> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, len as u64) {
            // Fallback: write zeros.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.file.write_all_at(&vec![0; len], offset).map_err(|source| self.failed(source))
            }
            result => result.map_err(|error| self.failed(error.into())),
        }
    }

    /// Writes the content of a chunk into a hole, and leaves holes for zeros.
    pub(super) fn place(&self, content: &[u8], offset: u64) -> Result<(), PullError> {
        let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
        let mut at = 0;
        // Runs of pages that are all zeros or all have data.
        for run in content.chunks(PAGE).collect::<Vec<_>>().chunk_by(|one, next| is_zero(one) == is_zero(next)) {
            let len: usize = run.iter().map(|page| page.len()).sum();
            if !run.first().is_none_or(|page| is_zero(page)) {
                let offset = offset.saturating_add(at as u64);
                self.file.write_all_at(&content[at..at + len], offset).map_err(|source| self.failed(source))?;
            }
            at += len;
        }
        Ok(())
    }

    /// Verifies the complete image. On a mismatch, it cannot be resumed either, and is removed.
    pub(super) fn check(&self, expected: &Checksum, threads: NonZeroUsize) -> Result<(), PullError> {
        let found = fsverity(&self.source()?, threads).map_err(|source| self.unreadable(source))?;
        let found = Checksum::Verity(Digest::Sha256(found));
        if found == *expected {
            return Ok(());
        }
        std::fs::remove_file(&self.path).map_err(|source| self.failed(source))?;
        let (expected, found) = (Box::new(*expected), Box::new(found));
        Err(PullError::Checksum { path: self.target.clone(), expected, found })
    }

    /// Renames it to its target.
    pub(super) fn publish(self, force: bool) -> Result<(), PullError> {
        let rename = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AlreadyExists => PublishError::Exists { path: self.target.clone() },
            _ => PublishError::Rename { path: self.target.clone(), source },
        };
        require_file(&self.target)?;
        self.file.set_permissions(Permissions::from_mode(MODE)).map_err(rename)?;
        self.file.sync_all().map_err(rename)?;
        let flags = if force { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        rustix::fs::renameat_with(CWD, &self.path, CWD, &self.target, flags).map_err(|error| rename(error.into()))?;
        let folder = self.target.parent().unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(rename)?;
        Ok(())
    }

    fn source(&self) -> Result<FileSource, PullError> {
        let file = self.file.try_clone().map_err(|source| self.unreadable(source))?;
        FileSource::new(file).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: std::io::Error) -> PullError {
        PullError::File(FileError::new(self.path.clone(), "read", source))
    }

    fn failed(&self, source: std::io::Error) -> PullError {
        PullError::File(FileError::new(self.path.clone(), "write", source))
    }
}
