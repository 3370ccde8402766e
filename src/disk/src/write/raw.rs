//! Raw files: workers write the blocks, here the length is set and the stream is hashed, holes included. That takes
//! longer than all else, and is left out where the digest is known.

use std::fs::File;

use sha2::{Digest, Sha256};

use super::chunk::Chunk;
use super::{Clusters, KnownFile, WriteError, Written, at_once, output_error};
use crate::image::Format;

/// One buffer for all holes.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A raw file that is being written.
pub struct RawWriter<'a> {
    file: &'a File,
    len: u64,
    known: Option<KnownFile>,
    hash: Sha256,
    hashed: u64,
}

impl<'a> RawWriter<'a> {
    /// Gives the file its length: one hole.
    pub fn new(file: &'a File, len: u64, known: Option<KnownFile>) -> Result<Self, WriteError> {
        file.set_len(len).map_err(|source| output_error(Format::Raw, "extend", len, source))?;
        let known = known.filter(|known| known.file_len == len);
        Ok(Self { file, len, known, hash: Sha256::new(), hashed: 0 })
    }

    /// Hashes up to the end of `chunk`, which a worker has written.
    pub fn append(&mut self, chunk: &Chunk) {
        if self.known.is_none() {
            self.hash_zeros(chunk.at());
            self.hash.update(&chunk.data);
            self.hashed = chunk.end();
        }
    }

    /// Hashes the rest and syncs.
    pub fn finish(mut self) -> Result<Written, WriteError> {
        let (file, file_len) = (self.file, self.len);
        let sync = || file.sync_all().map_err(|source| output_error(Format::Raw, "sync", 0, source));
        let sha256 = match self.known {
            Some(known) => {
                sync()?;
                known.sha256
            }
            None => {
                let (synced, sha256) = at_once(sync, || {
                    self.hash_zeros(file_len);
                    self.hash.finalize().into()
                })?;
                synced?;
                sha256
            }
        };
        Ok(Written { format: Format::Raw, sha256, file_len, clusters: Clusters::default() })
    }

    fn hash_zeros(&mut self, end: u64) {
        while self.hashed < end {
            let len = (end - self.hashed).min(ZEROS.len() as u64);
            self.hash.update(&ZEROS[..usize::try_from(len).unwrap_or(ZEROS.len())]);
            self.hashed += len;
        }
    }
}
