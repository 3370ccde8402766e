//! A whole disk before it is written: partitions, tables and boot code as runs of sources, readable at any offset.

mod assemble;
mod create;

use std::io;
use std::ops::Range;

pub use assemble::{Arch, AssembleError, BaseDisk, assemble, open, root_len};
pub use create::create;

use crate::source::{ContentId, Map, ReadAt, Sources};

/// A whole disk, ready to be written: runs of sources, holes elsewhere.
#[derive(Clone, Debug)]
pub struct Disk {
    map: Map,
    sources: Sources,
}

impl Disk {
    /// A disk of the length of `map`, whose extents refer to `sources`.
    pub fn new(map: Map, sources: Sources) -> Self {
        Self { map, sources }
    }

    /// Length in bytes, including holes.
    pub fn len(&self) -> u64 {
        self.map.len()
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The layout of its bytes.
    pub fn map(&self) -> &Map {
        &self.map
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }
}

impl ReadAt for Disk {
    fn len(&self) -> u64 {
        self.map.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.map.read_exact_at(&self.sources, buf, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.map.next_data(&self.sources, offset)
    }

    fn content_id(&self, range: Range<u64>) -> Option<ContentId> {
        self.map.content_id(&self.sources, range)
    }
}
