//! The file allocation table: the next cluster of each cluster.

use super::boot::{Boot, FatKind, read_bytes};
use super::{ChainFault, FatError};
use crate::source::ReadAt;

/// Maximum size of a directory: 65536 entries of 32 bytes (specification, 6).
const MAX_DIRECTORY_LEN: u64 = 65536 * 32;

/// The FAT in memory, and the clusters used so far. As each is used once, all chains together are no longer than the
/// volume, and no chain or directory can loop.
pub(super) struct Chains {
    /// By cluster number; the first two are not clusters.
    next: Vec<u32>,
    taken: Vec<bool>,
    /// Values from here on end a chain.
    end: u32,
    directory_clusters: u64,
}

impl Chains {
    pub(super) fn read(source: &dyn ReadAt, boot: &Boot) -> Result<Self, FatError> {
        let fat = read_bytes(source, boot.fat_offset, boot.fat_len)?;
        let (next, end) = match boot.kind {
            FatKind::Fat12 => (fat.chunks_exact(3).flat_map(pair_of_12_bits).collect(), 0xFF8),
            FatKind::Fat16 => {
                (fat.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]]))).collect(), 0xFFF8)
            }
            FatKind::Fat32 => {
                let long = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) & 0x0FFF_FFFF;
                (fat.chunks_exact(4).map(long).collect(), 0x0FFF_FFF8)
            }
        };
        let mut next: Vec<u32> = next;
        // Two bytes after the last pair contain one more entry.
        if let (FatKind::Fat12, [a, b]) = (boot.kind, fat.chunks_exact(3).remainder()) {
            next.push(u32::from(*a) | u32::from(*b & 0xF) << 8);
        }
        next.truncate(boot.clusters as usize + 2);
        let taken = vec![false; next.len()];
        let directory_clusters = MAX_DIRECTORY_LEN.div_ceil(boot.cluster_size.into());
        Ok(Self { next, taken, end, directory_clusters })
    }

    /// Number of clusters that no chain uses.
    pub(super) fn free(&self) -> u32 {
        u32::try_from(self.next.iter().skip(2).filter(|next| **next == 0).count()).unwrap_or(u32::MAX)
    }

    /// The clusters of a directory, from `first` to the end of its chain.
    pub(super) fn directory(&mut self, path: &str, first: u32) -> Result<Vec<u32>, FatError> {
        let mut chain = Vec::new();
        let mut cluster = first;
        loop {
            chain.push(self.take(path, cluster)?);
            if chain.len() as u64 > self.directory_clusters {
                return Err(FatError::Chain { path: path.to_owned(), cluster, what: ChainFault::DirectoryLen });
            }
            cluster = self.next[cluster as usize];
            if cluster >= self.end {
                return Ok(chain);
            }
        }
    }

    /// The `count` clusters of a file, starting with `first`. More may be preallocated.
    pub(super) fn file(&mut self, path: &str, first: u32, count: u64) -> Result<Vec<u32>, FatError> {
        let mut chain = Vec::new();
        let mut cluster = first;
        for _ in 0..count {
            chain.push(self.take(path, cluster)?);
            cluster = self.next[cluster as usize];
        }
        Ok(chain)
    }

    fn take(&mut self, path: &str, cluster: u32) -> Result<u32, FatError> {
        let fail = |what| FatError::Chain { path: path.to_owned(), cluster, what };
        let taken = self.taken.get_mut(cluster as usize).filter(|_| cluster >= 2);
        let taken = taken.ok_or(fail(ChainFault::NoCluster))?;
        if std::mem::replace(taken, true) {
            return Err(fail(ChainFault::Taken));
        }
        Ok(cluster)
    }
}

/// Two entries of FAT12 from three bytes.
fn pair_of_12_bits(bytes: &[u8]) -> [u32; 2] {
    let [a, b, c] = [u32::from(bytes[0]), u32::from(bytes[1]), u32::from(bytes[2])];
    [a | (b & 0xF) << 8, b >> 4 | c << 4]
}
