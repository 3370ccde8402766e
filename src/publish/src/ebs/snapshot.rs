//! Plans a snapshot: the blocks to upload for an image, given that of an optional parent.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding};
use serde::{Deserialize, Serialize};

use super::blocks::{BLOCK, BlockDigest, Blocks, BlocksError, linear_checksum};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{Progress, counted, human_bytes};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentBlock {
    /// Its index on the disk.
    pub index: u64,
    /// Its SHA-256 in Base64, for `PutSnapshotBlock`.
    pub checksum: String,
}

/// A snapshot of an image, in terms of the EBS direct APIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotPlan {
    /// Size of the disk in GiB.
    pub volume_size: u64,
    /// Block size in bytes.
    pub block_size: u64,
    /// Identifies the disk: a digest over all used blocks, the size and the boot mode.
    pub disk_digest: Digest,
    /// Number of used blocks; those not uploaded are the parent's.
    pub used_blocks: u64,
    /// First and last block of each unused range.
    pub left_out: Vec<[u64; 2]>,
    /// Number of uploaded blocks, for `CompleteSnapshot`.
    pub changed_blocks_count: u64,
    /// SHA-256 over the digests of all uploaded blocks, in Base64: its checksum with the aggregation method LINEAR.
    pub checksum: String,
    pub blocks: Vec<SentBlock>,
}

/// Why a snapshot cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Blocks(#[from] BlocksError),
    #[error("{parent}: size {found} GiB is too large for the parent of a snapshot of {expected} GiB")]
    Longer {
        parent: PathBuf,
        found: u64,
        /// Size of the image in GiB.
        expected: u64,
    },
}

impl Hint for SnapshotError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::Longer { .. }).then(|| "leave out --parent to upload all blocks".to_owned())
    }

    vmbake_common::causes!(Blocks);
}

/// Reads the used blocks of an image and its parent once.
pub fn plan(
    image: &Path,
    parent: Option<&Path>,
    boot_mode: &str,
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<SnapshotPlan, SnapshotError> {
    let own = Blocks::of_image(image, threads, progress)?;
    let sent: Vec<(u64, BlockDigest)> = match parent {
        None => own.iter().collect(),
        Some(path) => {
            let parent = Blocks::of_image(path, threads, progress)?;
            if parent.gib() > own.gib() {
                let (found, expected) = (parent.gib(), own.gib());
                return Err(SnapshotError::Longer { parent: path.to_owned(), found, expected });
            }
            own.beyond(&parent).collect()
        }
    };
    Ok(SnapshotPlan {
        volume_size: own.gib(),
        block_size: BLOCK,
        disk_digest: own.disk_digest(boot_mode, None),
        used_blocks: own.iter().map(|_| 1).sum(),
        left_out: gaps(own.iter().map(|(index, _)| index), own.len()),
        changed_blocks_count: sent.iter().map(|_| 1).sum(),
        checksum: Base64::encode_string(&linear_checksum(sent.iter().map(|(_, digest)| *digest))),
        blocks: sent.into_iter().map(SentBlock::from).collect(),
    })
}

/// First and last block of each gap below `end`.
fn gaps(there: impl Iterator<Item = u64>, end: u64) -> Vec<[u64; 2]> {
    let (mut gaps, mut next) = (Vec::new(), 0);
    for index in there.chain([end]) {
        if next < index {
            gaps.push([next, index - 1]);
        }
        next = index.saturating_add(1);
    }
    gaps
}

impl From<(u64, BlockDigest)> for SentBlock {
    fn from((index, digest): (u64, BlockDigest)) -> Self {
        Self { index, checksum: Base64::encode_string(&digest) }
    }
}

impl fmt::Display for SnapshotPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { volume_size, block_size, used_blocks, changed_blocks_count, .. } = self;
        let sent = counted(*changed_blocks_count, "block");
        let bytes = human_bytes(changed_blocks_count.saturating_mul(*block_size));
        writeln!(f, "snapshot         {volume_size} GiB: {sent} to upload, {bytes}; {used_blocks} in use")?;
        writeln!(f, "disk digest      {}", self.disk_digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_between() {
        assert_eq!(gaps([0, 1, 4].into_iter(), 8), [[2, 3], [5, 7]]);
        assert_eq!(gaps([2, 7].into_iter(), 8), [[0, 1], [3, 6]]);
        assert_eq!(gaps(std::iter::empty(), 3), [[0, 2]]);
        assert!(gaps(0..3, 3).is_empty());
    }
}
