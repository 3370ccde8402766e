//! The layout and usage of the disk: results of `inspect` and extents of files in, a drawing and a table out.
//!
//! The disk is a row of equal cells. The usage of a cell in the root partition is the number of file bytes in it. For other partitions only
//! the superblock has the usage, so all their cells have the average. Holes of the image file are not drawn: a copy can
//! have different ones.

use std::ops::Range;

use serde::Serialize;
use vmbake_disk::tree::{Kind, Tree};

use vmbake_common::progress::human_bytes;
use vmbake_image::inspect::{PartitionReport, Report};

/// Number of cells.
const COLUMNS: u64 = 64;
const ROWS: u64 = 8;
/// Number of usage levels.
const STEPS: u64 = 10;

#[derive(Debug, Serialize)]
pub(super) struct DiskDrawing {
    columns: u64,
    rows: u64,
    /// Formats the size of a cell.
    cell_size: String,
    cells: Vec<Cell>,
    legend: Vec<Legend>,
}

/// A range of the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Cell {
    column: u64,
    row: u64,
    /// Index of its partition in the table; `None` between partitions.
    partition: Option<usize>,
    /// Usage in tenths.
    tenths: u64,
}

#[derive(Debug, Serialize)]
struct Legend {
    partition: usize,
    name: String,
}

/// The byte range of a partition that is on the disk.
pub(super) fn range(partition: &PartitionReport, disk: u64) -> Range<u64> {
    partition.start.min(disk)..partition.start.saturating_add(partition.size).min(disk)
}

/// Draws the disk; `root` is the number of the partition with the files of the tree.
pub(super) fn draw(found: &Report, root: Option<(u32, &Tree)>) -> Option<DiskDrawing> {
    let cell = found.virtual_size.div_ceil(COLUMNS * ROWS);
    if cell == 0 {
        return None;
    }
    let mut full = vec![0_u64; found.partitions.len()];
    let mut files = vec![0_u64; usize::try_from(COLUMNS * ROWS).unwrap_or_default()];
    for (full, partition) in full.iter_mut().zip(&found.partitions) {
        let usage = partition.filesystem.as_ref().and_then(|found| found.usage.as_ref());
        *full = usage.map_or(0, |usage| tenths(usage.blocks.saturating_sub(usage.free_blocks), usage.blocks));
        if let Some((number, tree)) = root
            && number == partition.number
        {
            add_files(tree, partition, cell, &mut files);
        }
    }
    let cells = (0..COLUMNS * ROWS).zip(&files).filter_map(|(index, bytes)| {
        let start = index * cell;
        let middle = start.saturating_add(cell / 2);
        let is_here = |partition: &PartitionReport| range(partition, found.virtual_size).contains(&middle);
        let partition = found.partitions.iter().position(is_here);
        let is_root = partition.is_some_and(|at| Some(found.partitions[at].number) == root.map(|(number, _)| number));
        let tenths = if is_root { tenths(*bytes, cell) } else { partition.map_or(0, |at| full[at]) };
        (start < found.virtual_size).then_some(Cell {
            column: index % COLUMNS,
            row: index / COLUMNS,
            partition,
            tenths,
        })
    });
    let name = |partition: &PartitionReport| format!("partition {}", partition.number);
    let legend = found.partitions.iter().enumerate();
    Some(DiskDrawing {
        columns: COLUMNS,
        rows: ROWS,
        cell_size: human_bytes(cell),
        cells: cells.collect(),
        legend: legend.map(|(at, partition)| Legend { partition: at, name: name(partition) }).collect(),
    })
}

/// `part` of `whole` in tenths, rounded up.
fn tenths(part: u64, whole: u64) -> u64 {
    part.min(whole).saturating_mul(STEPS).div_ceil(whole.max(1))
}

/// Adds the file bytes in each cell. Blocks that a malicious file system assigns to several files count several times.
fn add_files(tree: &Tree, partition: &PartitionReport, cell: u64, files: &mut [u64]) {
    for (.., inode) in tree.walk() {
        let Kind::File(map) = &inode.kind else { continue };
        for extent in map.extents() {
            // Small files can be in their inodes, outside of data blocks.
            if tree.sources().get(extent.source).len() != partition.size {
                continue;
            }
            let mut at = partition.start.saturating_add(extent.offset);
            let end = at.saturating_add(extent.len);
            while at < end {
                let index = at / cell;
                let next = end.min(index.saturating_add(1).saturating_mul(cell));
                let Some(sum) = usize::try_from(index).ok().and_then(|index| files.get_mut(index)) else { break };
                *sum = sum.saturating_add(next - at);
                at = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tenths;

    #[test]
    fn cells_are_as_full_as_their_bytes() {
        for (part, whole, expected) in
            [(0, 10, 0), (1, 1000, 1), (5, 10, 5), (51, 100, 6), (10, 10, 10), (20, 10, 10), (3, 0, 0)]
        {
            assert_eq!(tenths(part, whole), expected, "{part} of {whole}");
        }
    }
}
