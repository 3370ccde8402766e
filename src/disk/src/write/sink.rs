//! The target of a disk: a file of some format, or another target such as a block store on another machine.

use super::WriteError;
use super::block::Block;
use super::chunk::Chunk;
use crate::image::ClusterCompression;

/// Receives a disk sequentially.
///
/// [`write_to`](super::write_to) calls, from the thread that called it:
///
/// 1. [`Self::needs`], once, to determine how worker threads process each chunk of the disk.
/// 2. [`Self::append`] with each chunk that may have data, ascending and without duplicates. Gaps are zeros: a sink whose
///    unwritten bytes read as something else must write them itself. The workers continue in the meantime, up to a fixed
///    number of chunks, so a sink may block.
/// 3. [`Self::finish`], to complete the output.
///
/// After an error of the sink or of reading the disk, no more methods are called, and the sink is dropped.
pub trait Sink {
    /// The result of a complete disk.
    type Written;
    /// Why the sink failed. Errors of reading the disk are passed through.
    type Error: From<WriteError>;

    /// How worker threads process each chunk before [`Self::append`].
    fn needs(&self) -> Needs;

    /// Processes the next chunk.
    fn append(&mut self, chunk: &Chunk) -> Result<(), Self::Error>;

    /// Completes the output, after all chunks.
    fn finish(self) -> Result<Self::Written, Self::Error>;
}

pub type HashBlock = Box<dyn Fn(&Block<'_>) -> [u8; 32] + Send + Sync>;

/// The results of worker threads for each chunk.
#[derive(Default)]
pub struct Needs {
    /// Whether all data are read and zeros are detected.
    pub(super) blocks: bool,
    pub(super) hash: Option<HashBlock>,
    /// The compression of clusters, if any.
    pub(super) clusters: Option<ClusterCompression>,
}

impl Needs {
    /// Blocks with data, for [`Chunk::blocks`]; with `hash`, their hashes.
    pub fn blocks(hash: Option<HashBlock>) -> Self {
        Self { blocks: true, hash, clusters: None }
    }

    /// Compressed clusters, for qcow2.
    pub(super) fn clusters(compression: ClusterCompression) -> Self {
        Self { clusters: Some(compression), ..Self::default() }
    }

    /// The union of the needs of two files that are written at once. Files that hash blocks use the same hash.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            blocks: self.blocks || other.blocks,
            hash: self.hash.or(other.hash),
            clusters: self.clusters.or(other.clusters),
        }
    }
}
