//! Where a disk goes: a file of some format, or something that is no file, such as a store of blocks on another machine.

use super::WriteError;
use super::block::Block;
use super::chunk::Chunk;
use crate::image::ClusterCompression;

/// Takes a disk, from its start to its end.
///
/// [`write_to`](super::write_to) calls, from the thread that called it:
///
/// 1. [`Self::needs`], once, to learn what worker threads must make of each chunk of the disk.
/// 2. [`Self::append`] with each chunk that may hold data, ascending and none twice. What no chunk covers is zeros: a sink whose
///    unwritten bytes read as something else must write them itself. The workers go on meanwhile, up to a fixed number of
///    chunks, so a sink may take its time.
/// 3. [`Self::finish`], to complete what was begun.
///
/// After an error, of the sink or of reading the disk, nothing more is called, and the sink is dropped.
pub trait Sink {
    /// What is known when the disk is complete.
    type Written;
    /// Why the disk was not taken. Errors of reading it come as they are.
    type Error: From<WriteError>;

    /// What worker threads make of each chunk before [`Self::append`] gets it.
    fn needs(&self) -> Needs;

    /// Takes the next chunk.
    fn append(&mut self, chunk: &Chunk) -> Result<(), Self::Error>;

    /// Completes what was begun, when all chunks have been taken.
    fn finish(self) -> Result<Self::Written, Self::Error>;
}

pub type HashBlock = Box<dyn Fn(&Block<'_>) -> [u8; 32] + Send + Sync>;

/// What worker threads make of each chunk.
#[derive(Default)]
pub struct Needs {
    /// Whether all of it is read and its zeros are found.
    pub(super) blocks: bool,
    pub(super) hash: Option<HashBlock>,
    /// How its clusters are compressed, if they are.
    pub(super) clusters: Option<ClusterCompression>,
}

impl Needs {
    /// The blocks that hold data, for [`Chunk::blocks`]; with `hash`, that of each.
    pub fn blocks(hash: Option<HashBlock>) -> Self {
        Self { blocks: true, hash, clusters: None }
    }

    /// Compressed clusters, for qcow2.
    pub(super) fn clusters(compression: ClusterCompression) -> Self {
        Self { clusters: Some(compression), ..Self::default() }
    }

    /// What two files need that are written at once. Blocks have one hash: files that hash them hash them alike.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            blocks: self.blocks || other.blocks,
            hash: self.hash.or(other.hash),
            clusters: self.clusters.or(other.clusters),
        }
    }
}
