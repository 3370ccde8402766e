//! A whole disk as one map of ranges: what the writers write.

mod assemble;

use std::io;
use std::ops::Range;

pub use assemble::{Arch, AssembleError, BaseDisk, assemble, open, root_len};

use crate::source::{Map, ReadAt, Sources};

/// The bytes of a disk, in ranges of the sources that they come from.
#[derive(Clone, Debug)]
pub struct Disk {
    map: Map,
    sources: Sources,
}

impl Disk {
    /// A disk that reads as `map`, whose extents refer to `sources`.
    pub fn new(map: Map, sources: Sources) -> Self {
        Self { map, sources }
    }

    /// Where its bytes come from.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The sources of the map.
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
}
