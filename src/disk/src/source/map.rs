//! Maps: runs of bytes of sources, and holes.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::content_id::PIECES;
use super::{ContentId, ReadAt};

/// Identifies a source in a [`Sources`] table. Sources are numbered in the order in which they were added, which is the
/// order in which authored file systems place their contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

/// The sources that the extents of a map refer to. Cloning is cheap: the sources themselves are shared.
#[derive(Clone, Default)]
pub struct Sources(Vec<Arc<dyn ReadAt>>);

impl Sources {
    /// Adds a source and returns its ID.
    pub fn add(&mut self, source: Arc<dyn ReadAt>) -> SourceId {
        let id = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.push(source);
        SourceId(id)
    }

    /// The source with that ID. Panics if `id` belongs to another table, which is a programming error.
    pub fn get(&self, id: SourceId) -> &Arc<dyn ReadAt> {
        &self.0[id.0 as usize]
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|source| source.len())).finish()
    }
}

/// A run of bytes at `at` of a map, located at `offset` of a source. All in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Position in the map.
    pub at: u64,
    /// Length, never 0.
    pub len: u64,
    pub source: SourceId,
    /// Position in the source.
    pub offset: u64,
}

impl Extent {
    /// End (exclusive) in the map.
    pub fn end(&self) -> u64 {
        self.at + self.len
    }
}

/// Bytes composed of runs of sources; gaps between extents are holes and read as zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    len: u64,
    extents: Vec<Extent>,
}

impl Map {
    /// An all-zero map of `len` bytes.
    pub fn hole(len: u64) -> Self {
        Self { len, extents: Vec::new() }
    }

    /// The map of `len` bytes at `offset` of a source.
    pub fn whole(source: SourceId, offset: u64, len: u64) -> Self {
        let mut map = Self::hole(len);
        map.push(Extent { at: 0, len, source, offset });
        map
    }

    /// Appends a run; an empty one is ignored, and one that continues the last run is merged with it.
    ///
    /// Runs must be ascending, disjoint and inside the map: anything else is a programming error and panics, as the
    /// alternative is a corrupt image.
    pub fn push(&mut self, extent: Extent) {
        if extent.len == 0 {
            return;
        }
        let end = self.extents.last().map_or(0, Extent::end);
        assert!(extent.at >= end && extent.end() <= self.len, "extent {extent:?} after {end} of {}", self.len);
        match self.extents.last_mut() {
            Some(last)
                if last.end() == extent.at
                    && last.source == extent.source
                    && last.offset + last.len == extent.offset =>
            {
                last.len += extent.len;
            }
            _ => self.extents.push(extent),
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The runs, ascending and disjoint.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Bytes that are not holes.
    pub fn data_len(&self) -> u64 {
        self.extents.iter().map(|extent| extent.len).sum()
    }

    /// Fills `buf` from `offset` of the map.
    pub fn read_exact_at(&self, sources: &Sources, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut done = offset;
        let first = self.extents.partition_point(|extent| extent.end() <= offset);
        for extent in self.extents[first..].iter().take_while(|extent| extent.at < end) {
            let (from, to) = (extent.at.max(offset), extent.end().min(end));
            buf[index(done - offset)..index(from - offset)].fill(0);
            let part = &mut buf[index(from - offset)..index(to - offset)];
            sources.get(extent.source).read_exact_at(part, extent.offset + (from - extent.at))?;
            done = to;
        }
        buf[index(done - offset)..].fill(0);
        Ok(())
    }

    /// The first range at or after `offset` that may contain anything but zeros.
    pub fn next_data(&self, sources: &Sources, offset: u64) -> io::Result<Option<Range<u64>>> {
        let first = self.extents.partition_point(|extent| extent.end() <= offset);
        for extent in &self.extents[first..] {
            let from = extent.offset + offset.saturating_sub(extent.at);
            let data = sources.get(extent.source).next_data(from)?;
            if let Some(data) = data.filter(|data| data.start < extent.offset + extent.len) {
                let end = data.end.min(extent.offset + extent.len);
                return Ok(Some(data.start - extent.offset + extent.at..end - extent.offset + extent.at));
            }
        }
        Ok(None)
    }

    /// The ID of a range (see [`ReadAt::content_id`]), derived from the IDs and offsets of the pieces in it.
    pub fn content_id(&self, sources: &Sources, range: Range<u64>) -> Option<ContentId> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.len)?;
        let mut hash = Sha256::new_with_prefix(PIECES).chain_update(len.to_le_bytes());
        let first = self.extents.partition_point(|extent| extent.end() <= range.start);
        for extent in self.extents[first..].iter().take_while(|extent| extent.at < range.end) {
            let (from, to) = (extent.at.max(range.start), extent.end().min(range.end));
            let offset = extent.offset + (from - extent.at);
            let ContentId(id) = sources.get(extent.source).content_id(offset..offset.checked_add(to - from)?)?;
            hash.update((from - range.start).to_le_bytes());
            hash.update((to - from).to_le_bytes());
            hash.update(id);
        }
        Some(ContentId(hash.finalize().into()))
    }
}

/// Converts an offset in a buffer to an index.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Reads a map sequentially as a stream.
#[derive(Debug)]
pub struct MapReader<'a> {
    map: &'a Map,
    sources: &'a Sources,
    at: u64,
}

impl<'a> MapReader<'a> {
    pub fn new(map: &'a Map, sources: &'a Sources) -> Self {
        Self { map, sources, at: 0 }
    }
}

impl io::Read for MapReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = buf.len().min(index(self.map.len - self.at));
        self.map.read_exact_at(self.sources, &mut buf[..len], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn map_reads_runs_and_holes() {
        let mut sources = Sources::default();
        let a = sources.add(Arc::new(b"0123456789".to_vec()));
        let mut map = Map::hole(12);
        map.push(Extent { at: 2, len: 3, source: a, offset: 4 });
        map.push(Extent { at: 5, len: 2, source: a, offset: 7 });
        map.push(Extent { at: 9, len: 1, source: a, offset: 0 });
        assert_eq!(map.extents().len(), 2, "a run that continues the last one joins it");
        let mut all = Vec::new();
        MapReader::new(&map, &sources).read_to_end(&mut all).unwrap();
        assert_eq!(all, b"\0\x0045678\0\x000\0\0");
        assert_eq!(map.next_data(&sources, 7).unwrap(), Some(9..10));
        assert_eq!(map.next_data(&sources, 10).unwrap(), None);
        assert!(map.read_exact_at(&sources, &mut [0; 4], 10).is_err());
    }

    #[test]
    fn the_id_of_a_range_is_that_of_its_pieces_and_their_places() {
        let map = |bytes: &[&str], extents: &[(u64, u64, usize, u64)]| {
            let mut sources = Sources::default();
            let ids: Vec<SourceId> =
                bytes.iter().map(|bytes| sources.add(Arc::new(bytes.as_bytes().to_vec()))).collect();
            let mut map = Map::hole(12);
            for (at, len, source, offset) in extents {
                map.push(Extent { at: *at, len: *len, source: ids[*source], offset: *offset });
            }
            (map, sources)
        };
        let (a, of_a) = map(&["0123456789"], &[(2, 3, 0, 4), (9, 1, 0, 0)]);
        let id = a.content_id(&of_a, 0..12);
        assert!(id.is_some());
        let (b, of_b) = map(&["x", "4567", "0"], &[(2, 3, 1, 0), (9, 1, 2, 0)]);
        assert_eq!(b.content_id(&of_b, 0..12), id, "the numbers of the sources do not matter");
        let (moved, of_moved) = map(&["0123456789"], &[(3, 3, 0, 4), (9, 1, 0, 0)]);
        assert_ne!(moved.content_id(&of_moved, 0..12), id);
        assert_eq!(
            moved.content_id(&of_moved, 1..5),
            a.content_id(&of_a, 0..4),
            "places count from the start of the range"
        );
        assert_ne!(a.content_id(&of_a, 0..11), id, "a hole at the end is seen");
        assert_eq!(a.content_id(&of_a, 5..8), a.content_id(&of_a, 6..9), "holes of one length are one");
        assert_eq!(a.content_id(&of_a, 0..13), None);
    }
}
