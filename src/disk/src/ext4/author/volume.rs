//! The resulting volume: a map over the tree's sources and one more source, the metadata.

use std::sync::Arc;

use mkext4::spec::Superblock;

use super::AuthorError;
use super::metadata::Metadata;
use super::plan::{Content, Plan};
use super::release::release;
use super::seal::{Sealed, library};
use crate::ext4::BLOCK;
use crate::source::{Extent, Map, Sources};
use crate::tree::Tree;

/// Usage of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Blocks of 4096 bytes.
    pub blocks: u64,
    /// Free blocks, including reserved ones.
    pub free_blocks: u64,
    /// Blocks that only root may use.
    pub reserved_blocks: u64,
    /// Inodes, including reserved ones.
    pub inodes: u32,
    pub free_inodes: u32,
    pub journal_blocks: u32,
    /// Where contents start, in bytes; `None` if no file has content.
    pub data_start: Option<u64>,
    /// Bytes of metadata, which are in memory.
    pub metadata_bytes: u64,
}

/// An ext4 volume that has not been written yet.
#[derive(Clone, Debug)]
pub struct Volume {
    map: Map,
    sources: Sources,
    stats: Stats,
}

impl Volume {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.map.len()
    }

    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Every byte of the volume; unused parts are holes.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// The sources of the map: those of the tree with their IDs, and the metadata.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    pub(super) fn emit(tree: &Tree, plan: &Plan<'_>, sealed: &Sealed, size: u64) -> Result<Self, AuthorError> {
        let mut sink = Metadata::default();
        drop(sealed.layout.writer(&mut sink).map_err(library)?);
        release(&mut sink, &sealed.placeholders)?;
        let sink = sink.compact();
        let mut sources = tree.sources().clone();
        let metadata_bytes = sink.bytes.len() as u64;
        let sb = superblock(&sink.bytes)?;
        let source = sources.add(Arc::new(sink.bytes));
        let mut extents: Vec<Extent> = Vec::with_capacity(sink.runs.len() + plan.items.len());
        extents.extend(sink.runs.iter().map(|run| Extent { at: run.at, len: run.len, source, offset: run.offset }));
        for (item, handle) in plan.items.iter().zip(&sealed.handles[1..]) {
            if let Content::File { map, data } = &item.content {
                place(map, data, &sealed.layout.extents(*handle), &mut extents);
            }
        }
        extents.sort_unstable_by_key(|extent| extent.at);
        let mut map = Map::hole(size);
        extents.into_iter().for_each(|extent| map.push(extent));
        let stats = Stats {
            blocks: sb.blocks_count,
            free_blocks: sb.free_blocks_count,
            reserved_blocks: sb.r_blocks_count,
            inodes: sb.inodes_count,
            free_inodes: sb.free_inodes_count,
            journal_blocks: sealed.geometry.journal_blocks,
            data_start: sealed.data_start().map(|block| block * BLOCK),
            metadata_bytes,
        };
        Ok(Self { map, sources, stats })
    }
}

/// Used blocks of a volume that is laid out for measuring.
pub(super) fn used_blocks(sealed: &Sealed) -> Result<u64, AuthorError> {
    let mut sink = Metadata { only_first: true, ..Metadata::default() };
    drop(sealed.layout.writer(&mut sink).map_err(library)?);
    let sb = superblock(&sink.bytes)?;
    Ok(sb.blocks_count - sb.free_blocks_count)
}

/// The superblock, from the metadata in the order of the volume.
fn superblock(bytes: &[u8]) -> Result<Superblock, AuthorError> {
    Superblock::decode(bytes.get(1024..2048).unwrap_or_default()).map_err(library)
}

/// Translates the extents of a file to those of the volume. `data` are the block ranges of the file that have blocks
/// and `ranges` their locations, in the same order; both in bytes.
fn place(map: &Map, data: &[std::ops::Range<u64>], ranges: &[(u64, u64)], out: &mut Vec<Extent>) {
    let mut ranges = ranges.iter();
    let mut extents = map.extents().iter().peekable();
    for segment in data {
        let mut at = segment.start;
        while at < segment.end {
            let Some((image, len)) = ranges.next() else { return };
            while let Some(extent) = extents.peek().filter(|extent| extent.at < at + len) {
                let (from, to) = (extent.at.max(at), extent.end().min(at + len));
                out.push(Extent {
                    at: image + (from - at),
                    len: to - from,
                    source: extent.source,
                    offset: extent.offset + (from - extent.at),
                });
                if extent.end() > at + len {
                    break;
                }
                extents.next();
            }
            at += len;
        }
    }
}
