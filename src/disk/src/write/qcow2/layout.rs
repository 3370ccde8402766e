//! Allocation in a qcow2 file, with the reference count of each host cluster.

use super::CLUSTER_LEN;

/// Reference counts of 16 bits in one refcount block.
const BLOCK_ENTRIES: u64 = CLUSTER_LEN / 2;
/// Refcount blocks referred to by one cluster of the refcount table.
const TABLE_ENTRIES: u64 = CLUSTER_LEN / 8;
/// Maximum distance from the end of the file in bytes at which gaps are filled. A plain cluster between compressed ones
/// leaves a gap, and most are filled soon; earlier parts of the file are final, so that they can be hashed.
const REACH: u64 = 16 << 20;

/// Allocates space in a growing file.
pub struct Layout {
    /// By host cluster. 16 bits suffice: a compressed cluster has more than the 9 bytes of an empty zstd frame, so less
    /// than 65536 of them touch one host cluster of 64 KiB.
    refcounts: Vec<u16>,
    /// Free ranges after compressed data, ascending; the last may extend to the end of the file.
    free: Vec<std::ops::Range<u64>>,
}

/// The serialized reference counts.
pub struct Refcounts {
    /// All refcount blocks.
    pub blocks: Vec<u8>,
    pub blocks_at: u64,
    pub table: Vec<u64>,
    pub table_at: u64,
    pub table_clusters: u64,
    /// Length of the whole file.
    pub file_len: u64,
}

impl Layout {
    /// A file whose first `reserved` clusters are allocated.
    pub fn new(reserved: usize) -> Self {
        Self { refcounts: vec![1; reserved], free: Vec::new() }
    }

    /// Allocates `count` clusters.
    pub fn clusters(&mut self, count: u64) -> u64 {
        let at = self.end();
        self.refcounts.extend((0..count).map(|_| 1));
        at
    }

    /// Allocates `len` bytes (1 to a cluster's) for compressed data: in the first sufficient gap in reach, otherwise at
    /// the end of the file.
    pub fn compressed(&mut self, len: u64) -> u64 {
        let end = self.end();
        self.free.retain(|free| free.end + REACH >= end);
        let room = self.free.iter().position(|free| free.end - free.start >= len);
        let i = room.unwrap_or_else(|| self.grow());
        let free = &mut self.free[i];
        let at = free.start;
        free.start += len;
        if free.is_empty() {
            self.free.remove(i);
        }
        for cluster in at / CLUSTER_LEN..=(at + len - 1) / CLUSTER_LEN {
            self.refcounts[super::index(cluster)] += 1;
        }
        at
    }

    /// Adds a cluster for compressed data; returns the index of its gap.
    fn grow(&mut self) -> usize {
        let start = self.end();
        self.refcounts.push(0);
        let end = self.end();
        match self.free.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => self.free.push(start..end),
        }
        self.free.len() - 1
    }

    /// Allocates the reference counts, which include themselves, at the end.
    pub fn finish(&mut self) -> Refcounts {
        let used = self.refcounts.len() as u64;
        let (mut blocks, mut table_clusters) = (1, 1);
        // Additional blocks must be counted, too; this terminates as each of them counts many.
        while blocks * BLOCK_ENTRIES < used + blocks + table_clusters {
            blocks = (used + blocks + table_clusters).div_ceil(BLOCK_ENTRIES);
            table_clusters = blocks.div_ceil(TABLE_ENTRIES);
        }
        let blocks_at = self.clusters(blocks);
        let table_at = self.clusters(table_clusters);
        let file_len = self.end();
        let bytes = self.refcounts.iter().flat_map(|count| count.to_be_bytes()).collect();
        let table = (0..blocks).map(|i| blocks_at + i * CLUSTER_LEN).collect();
        Refcounts { blocks: bytes, blocks_at, table, table_at, table_clusters, file_len }
    }

    fn end(&self) -> u64 {
        self.refcounts.len() as u64 * CLUSTER_LEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_data_is_packed_and_counted() {
        let mut layout = Layout::new(1);
        assert_eq!(layout.compressed(40_000), CLUSTER_LEN);
        assert_eq!(layout.compressed(40_000), CLUSTER_LEN + 40_000, "crosses into the next cluster");
        assert_eq!(layout.refcounts, [1, 2, 1]);
        assert_eq!(layout.clusters(1), 3 * CLUSTER_LEN);
        assert_eq!(layout.compressed(50_000), CLUSTER_LEN + 80_000, "there is room before the plain cluster");
        assert_eq!(layout.compressed(50_000), 4 * CLUSTER_LEN, "the rest is too small");
        assert_eq!(layout.refcounts, [1, 2, 2, 1, 1]);
        assert_eq!(layout.compressed(1000), CLUSTER_LEN + 130_000, "what is left of the gap is used");
        assert_eq!(layout.compressed(72), CLUSTER_LEN + 131_000);
        assert_eq!(layout.compressed(72), 4 * CLUSTER_LEN + 50_000);
        assert_eq!(layout.refcounts, [1, 2, 4, 1, 2]);
    }

    #[test]
    fn gaps_far_from_the_end_stay() {
        let mut layout = Layout::new(1);
        for i in 0..250 {
            layout.compressed(CLUSTER_LEN - 100 - i);
            layout.clusters(1);
        }
        assert!(layout.free.is_sorted_by(|a, b| a.end <= b.start));
        let first = layout.free.first().map(|free| layout.end() - free.end);
        assert_eq!(
            first,
            Some(REACH + CLUSTER_LEN),
            "gaps end two clusters apart, and two were added since the last search"
        );
        assert_eq!(layout.free.last().map(|free| free.end - free.start), Some(349));
    }

    #[test]
    fn refcounts_count_themselves() {
        for used in [1, 32_765, 32_766, 32_767, 32_768, 100_000] {
            let refcounts = Layout::new(used).finish();
            let clusters = refcounts.file_len / CLUSTER_LEN;
            assert_eq!(refcounts.blocks.len() as u64, clusters * 2);
            assert!(refcounts.table.len() as u64 * BLOCK_ENTRIES >= clusters);
            assert_eq!(used as u64 + refcounts.table.len() as u64 + refcounts.table_clusters, clusters);
        }
    }
}
