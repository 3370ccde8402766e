//! A whole disk before it is written: what enters are partitions, tables and boot code as runs of sources, what leaves
//! is bytes that can be read at any offset.

mod assemble;

use std::io;
use std::ops::Range;

pub use assemble::{Arch, AssembleError, BaseDisk, assemble, open, root_len};

use crate::source::{ContentId, Map, ReadAt, Sources};

/// A whole disk, ready to be written: runs of sources, holes elsewhere.
#[derive(Clone, Debug)]
pub struct Disk {
    map: Map,
    sources: Sources,
}

impl Disk {
    /// A disk as long as `map`, whose extents refer to `sources`.
    pub fn new(map: Map, sources: Sources) -> Self {
        Self { map, sources }
    }

    /// Length in bytes, holes included.
    pub fn len(&self) -> u64 {
        self.map.len()
    }

    /// Whether the disk has no byte at all.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Which bytes stand where.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Where the bytes come from.
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
