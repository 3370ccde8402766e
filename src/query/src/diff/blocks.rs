//! Compares two disks byte by byte: how much a store of clusters, or of blocks as in cloud snapshots, would share.
//!
//! Two images in, a [`BlockDifference`] out. Both disks are read as streams, by several threads and only where one of
//! them can have data; only a digest of each cluster is kept. The owner of a cluster is determined from the root file
//! system's tree and the record of origins in the image, as in `explain`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::DiffError;
use super::cells::{BLOCK, CLUSTER, Cell, Name};
use super::owners::{Disk, Owners};
use super::shares::{BlockDifference, Share};
use vmbake_common::parallel::for_each;

/// Bytes per unit of work: a whole number of blocks.
const BATCH: u64 = 8 << 20;

/// Compares the disks of the images `from` and `to` byte by byte. Their root partitions, or those with number `partition`,
/// determine which files the bytes belong to.
pub fn diff_blocks(
    from: &Path,
    to: &Path,
    partition: Option<u32>,
    threads: NonZeroUsize,
) -> Result<BlockDifference, DiffError> {
    let mut opened = for_each(vec![from, to], threads, |path| Disk::open(path, partition)).into_iter();
    let (Some(from), Some(to)) = (opened.next(), opened.next()) else { return Ok(BlockDifference::default()) };
    let (from, to) = (from?, to?);
    let cells = cells(&from, &to, threads)?;
    Ok(count(&cells, &Owners::of(&from, &to)))
}

/// All clusters that are non-zero in one disk, in order.
fn cells(from: &Disk, to: &Disk, threads: NonZeroUsize) -> Result<Vec<Cell>, DiffError> {
    let len = from.source.len().max(to.source.len());
    let mut batches = Vec::new();
    let mut at = 0;
    while let Some(start) = first_data(from, at)?.into_iter().chain(first_data(to, at)?).min() {
        batches.push(start / BATCH * BATCH);
        at = start / BATCH * BATCH + BATCH;
    }
    let found = for_each(batches, threads, |start| batch(from, to, start..len.min(start + BATCH)));
    let found: Vec<Vec<Cell>> = found.into_iter().collect::<Result<_, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn first_data(disk: &Disk, at: u64) -> Result<Option<u64>, DiffError> {
    let data = if at < disk.source.len() { disk.source.next_data(at) } else { Ok(None) };
    data.map(|data| data.map(|data| data.start)).map_err(|source| disk.unreadable(source))
}

fn batch(from: &Disk, to: &Disk, range: std::ops::Range<u64>) -> Result<Vec<Cell>, DiffError> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut cells = Vec::new();
    for start in range.clone().step_by(64 << 10) {
        let end = range.end.min(start + CLUSTER);
        let (one, other) = (read(from, &mut left, start..end)?, read(to, &mut right, start..end)?);
        let name = |bytes: &[u8]| {
            let mut name = Name::default();
            name.copy_from_slice(&Sha256::digest(bytes)[..16]);
            name
        };
        let cell = match (one, other) {
            (false, false) => continue,
            (true, true) if left == right => {
                let name = name(&left);
                Cell { at: start / CLUSTER, from: Some(name), to: Some(name) }
            }
            _ => Cell { at: start / CLUSTER, from: one.then(|| name(&left)), to: other.then(|| name(&right)) },
        };
        cells.push(cell);
    }
    Ok(cells)
}

/// Reads a range up to the end of the disk; returns whether it has non-zero bytes.
fn read(disk: &Disk, buffer: &mut Vec<u8>, range: std::ops::Range<u64>) -> Result<bool, DiffError> {
    let end = range.end.min(disk.source.len());
    if first_data(disk, range.start)?.is_none_or(|start| start >= end) {
        return Ok(false);
    }
    buffer.clear();
    buffer.resize(usize::try_from(end - range.start).unwrap_or(usize::MAX), 0);
    disk.source.read_exact_at(buffer, range.start).map_err(|source| disk.unreadable(source))?;
    // The last cluster of a shorter disk is padded with zeros.
    buffer.resize(usize::try_from(range.end - range.start).unwrap_or(usize::MAX), 0);
    Ok(buffer.iter().any(|byte| *byte != 0))
}

/// Counts clusters and blocks: all, and those outside of changed artifacts.
fn count(cells: &[Cell], owners: &Owners<'_>) -> BlockDifference {
    let mut found = BlockDifference { changed_artifacts: owners.changed(), ..BlockDifference::default() };
    found.notes = owners.notes();
    for block in cells.chunk_by(|a, b| a.at * CLUSTER / BLOCK == b.at * CLUSTER / BLOCK) {
        let mut inside = false;
        for cell in block {
            let touched = owners.in_changed(cell.at * CLUSTER);
            inside |= touched;
            let state = (cell.from.is_some(), cell.to.is_some(), cell.same());
            found.clusters.add(state);
            if !touched {
                found.outside.clusters.add(state);
            }
        }
        let all = (
            block.iter().any(|cell| cell.from.is_some()),
            block.iter().any(|cell| cell.to.is_some()),
            block.iter().all(Cell::same),
        );
        found.blocks.add(all);
        if !inside {
            found.outside.blocks.add(all);
        }
    }
    found.contents = contents(cells);
    found.block_delta_bytes = found.blocks.to * BLOCK;
    found.cluster_delta_bytes = found.contents.to * CLUSTER;
    found.places = owners.places(cells);
    found
}

/// Distinct clusters, regardless of position.
fn contents(cells: &[Cell]) -> Share {
    let from: BTreeSet<Name> = cells.iter().filter_map(|cell| cell.from).collect();
    let to: BTreeSet<Name> = cells.iter().filter_map(|cell| cell.to).collect();
    let shared = from.intersection(&to).count() as u64;
    Share { shared, from: from.len() as u64 - shared, to: to.len() as u64 - shared }
}
