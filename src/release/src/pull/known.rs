//! Chunks of a local raw image: finds the location of each content.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use vmbake_common::message::FileError;
use vmbake_disk::source::{FileSource, ReadAt};

use crate::chunks::is_hole;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::parallel;

use super::error::PullError;

/// The digests of the chunks of a file that have data, in order.
pub(super) fn digests(disk: &FileSource, chunk_size: u64, threads: NonZeroUsize) -> io::Result<Vec<(u64, Digest)>> {
    let chunk = usize::try_from(chunk_size).map_err(io::Error::other)?;
    let starts = (0..disk.len().div_ceil(chunk_size)).map(|number| number * chunk_size).collect();
    let digests = parallel::for_each(starts, threads, |offset| {
        let len = usize::try_from(disk.len() - offset).map_or(chunk, |left| left.min(chunk));
        if is_hole(disk, offset, len)? {
            return Ok(None);
        }
        let mut content = vec![0; len];
        disk.read_exact_at(&mut content, offset)?;
        Ok(Some((offset, Digest::of(&content))))
    });
    digests.into_iter().filter_map(Result::transpose).collect()
}

#[derive(Debug)]
pub(super) struct OldImage {
    path: PathBuf,
    file: File,
    chunks: BTreeMap<Digest, u64>,
}

impl OldImage {
    /// Hashes its chunks.
    pub(super) fn read(path: &Path, chunk_size: u64, threads: NonZeroUsize) -> Result<Self, PullError> {
        let failed = |source| PullError::File(FileError::new(path, "read", source));
        let file = input::open_regular(path).map_err(failed)?;
        let disk = FileSource::new(file.try_clone().map_err(failed)?).map_err(failed)?;
        let chunks = digests(&disk, chunk_size, threads).map_err(failed)?;
        let chunks = chunks.into_iter().map(|(offset, digest)| (digest, offset)).collect();
        Ok(Self { path: path.to_owned(), file, chunks })
    }

    /// The content with that digest, if the file has it and has not changed since.
    pub(super) fn content(&self, digest: &Digest, len: usize) -> Result<Option<Vec<u8>>, PullError> {
        let Some(offset) = self.chunks.get(digest) else { return Ok(None) };
        let mut content = vec![0; len];
        match self.file.read_exact_at(&mut content, *offset) {
            Ok(()) => Ok(Some(content).filter(|content| Digest::of(content) == *digest)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(source) => Err(PullError::File(FileError::new(self.path.clone(), "read", source))),
        }
    }
}
