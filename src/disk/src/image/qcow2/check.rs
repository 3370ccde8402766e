//! Validates all tables of an image when it is opened: an image with a corrupt table is refused independent of the
//! parts that are read, and so is one with much more data than its file permits.
//!
//! Stricter than QEMU: the L1 table must not refer to an L2 table twice. Only snapshots share L2 tables, and each has a
//! separate L1 table.

use std::collections::BTreeSet;

use super::header::Header;
use super::table::{self, L2Table, Mapping};
use super::{ImageError, ImageFile, Qcow2Structure, index};

/// Maximum bytes of a disk for each byte of its file. Real images stay far below 50, a bomb of repeated bytes exceeds
/// 1,000.
const MAX_RATIO: u64 = 200;
/// Data size that is always accepted: a small disk with repeated text is not an attack.
const FLOOR: u64 = 256 << 20;

/// Compressed clusters, by their offset in the file, that are used more than once.
pub type Shared = BTreeSet<u64>;

/// Validates every entry for a part of the disk.
pub fn check(file: &ImageFile, header: &Header, l1: &[u64]) -> Result<Shared, ImageError> {
    let mut walk = Walk { file, header, held: 0, compressed: Vec::new() };
    for (number, offset) in tables(file, header, l1)? {
        walk.table(number, offset)?;
    }
    let limit = file.len().saturating_mul(MAX_RATIO).max(FLOOR);
    if walk.held > limit {
        return Err(file.bomb(walk.held, limit));
    }
    walk.compressed.sort_unstable();
    let repeated = walk.compressed.windows(2).filter(|pair| pair[0] == pair[1]);
    Ok(repeated.map(|pair| pair[0]).collect())
}

/// The L2 tables: index of the L1 entry, and offset in the file.
fn tables(file: &ImageFile, header: &Header, l1: &[u64]) -> Result<Vec<(u64, u64)>, ImageError> {
    let mut tables = Vec::new();
    for (number, entry) in (0u64..).zip(l1) {
        let found = table::l2_offset(file, header, *entry, header.l1_entry(number))?;
        tables.extend(found.map(|offset| (offset, number)));
    }
    tables.sort_unstable();
    if let Some([_, (offset, number)]) = tables.array_windows().find(|[(a, _), (b, _)]| a == b) {
        return Err(file.corrupt(Qcow2Structure::L1Entry, header.l1_entry(*number), *offset, "an unshared L2 table"));
    }
    // In the order of the disk, so that the first fault is that of the lowest offset.
    let mut tables: Vec<(u64, u64)> = tables.into_iter().map(|(offset, number)| (number, offset)).collect();
    tables.sort_unstable();
    Ok(tables)
}

struct Walk<'a> {
    file: &'a ImageFile,
    header: &'a Header,
    /// Bytes of the disk that are not known to be zeros.
    held: u64,
    compressed: Vec<u64>,
}

impl Walk<'_> {
    fn table(&mut self, number: u64, offset: u64) -> Result<(), ImageError> {
        let cluster = self.header.cluster_size();
        let start = number * self.header.l2_reach();
        // Entries after the end of the disk are never read.
        let count = self.header.size.saturating_sub(start).div_ceil(cluster).min(cluster / 8);
        let table = L2Table::read(self.file, self.header, offset)?;
        for (i, at) in (0..index(count)).zip((start..).step_by(index(cluster))) {
            let len = cluster.min(self.header.size - at);
            match table::mapping(self.file, self.header, &table, i)? {
                Mapping::Absent | Mapping::Zero => continue,
                Mapping::Plain(host) => self.file.require(host, len, Qcow2Structure::DataCluster)?,
                Mapping::Compressed { offset, .. } => self.compressed.push(offset),
            }
            self.held = self.held.saturating_add(len);
        }
        Ok(())
    }
}
