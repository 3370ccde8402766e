//! Creates a disk without a base: a partition table, and the contents of partitions.

use std::sync::Arc;

use crate::disk::{AssembleError, Disk};
use crate::gpt::{self, Table};
use crate::source::{Extent, Map, ReadAt, Sources};

/// A disk of `len` bytes with the partitions of `table`, which begin with their `contents` by number. Everything else is zeros.
pub fn create(table: &Table, contents: Vec<(u32, Arc<dyn ReadAt>)>, len: u64) -> Result<Disk, AssembleError> {
    let (head, tail) = gpt::write(table, len)?;
    let (head_len, tail_len) = (head.len() as u64, tail.len() as u64);
    let mut extents = Vec::new();
    let mut sources = Sources::default();
    for (number, content) in contents {
        let partition = table.partition(number).ok_or(AssembleError::NoPartition { number })?;
        let (len, room) = (content.len(), partition.len);
        if len > room {
            return Err(AssembleError::ContentTooLarge { number, len, room });
        }
        extents.push(Extent { at: partition.start, len, source: sources.add(content), offset: 0 });
    }
    let metadata = sources.add(Arc::new([head, tail].concat()));
    extents.push(Extent { at: 0, len: head_len, source: metadata, offset: 0 });
    extents.push(Extent { at: len - tail_len, len: tail_len, source: metadata, offset: head_len });
    extents.sort_by_key(|extent| extent.at);
    let mut map = Map::hole(len);
    extents.into_iter().for_each(|extent| map.push(extent));
    Ok(Disk::new(map, sources))
}
