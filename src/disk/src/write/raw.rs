//! Raw files: workers hash the blocks; one thread writes them, since a file system serializes writes to a file, and
//! computes the digest from the hashes.
//!
//! The digest is fs-verity's. SHA-256 of the whole file would take longer than everything else: one thread must hash
//! every byte of the disk, and most of them are holes.

use std::fs::File;

use super::chunk::Chunk;
use super::file::OutputFile;
use super::merkle::Hasher;
use super::sink::{Needs, Sink};
use super::verity::{SALT, Tree};
use super::{Clusters, FileDigest, KnownFile, WriteError, Written};
use crate::image::Format;

/// A raw file that is being written.
pub struct RawWriter<'a> {
    output: OutputFile<'a>,
    len: u64,
    digest: Digest,
}

enum Digest {
    Known(FileDigest),
    Tree(Tree),
}

impl<'a> RawWriter<'a> {
    pub fn new(file: &'a File, len: u64, known: Option<KnownFile>) -> Result<Self, WriteError> {
        let output = OutputFile::new(Format::Raw, file, len)?;
        let digest = known.map_or_else(|| Digest::Tree(Tree::new(len)), |known| Digest::Known(known.digest));
        Ok(Self { output, len, digest })
    }
}

impl Sink for RawWriter<'_> {
    type Written = Written;
    type Error = WriteError;

    /// The blocks, with their hashes unless the digest is known.
    fn needs(&self) -> Needs {
        match self.digest {
            Digest::Known(_) => Needs::blocks(None),
            Digest::Tree(_) => {
                let hasher = Hasher::new(self.len, SALT);
                Needs::blocks(Some(Box::new(move |block| hasher.group(block.bytes, block.zeros))))
            }
        }
    }

    /// Writes the data of `chunk` except for holes, and adds its hashes.
    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        for block in chunk.blocks() {
            if let (Digest::Tree(tree), Some(hash)) = (&mut self.digest, block.hash) {
                tree.append(block.at(), hash);
            }
            block.data_runs().try_for_each(|(at, data)| self.output.write(data, at))?;
        }
        Ok(())
    }

    /// Syncs.
    fn finish(self) -> Result<Written, WriteError> {
        self.output.finish()?;
        let digest = match self.digest {
            Digest::Known(digest) => digest,
            Digest::Tree(tree) => FileDigest::Verity(tree.finish()),
        };
        Ok(Written { format: Format::Raw, digest, file_len: self.len, clusters: Clusters::default() })
    }
}
