//! Shared data of two disks, as printed by `--blocks --json`, and its rendering as text.

use std::fmt;

use serde::Serialize;

use super::cells::{BLOCK, CLUSTER};
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;

/// Units of two disks, without those that are all zeros in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Identical in both.
    pub shared: u64,
    /// Only in the first.
    #[serde(rename = "only_from")]
    pub from: u64,
    /// Only in the second.
    #[serde(rename = "only_to")]
    pub to: u64,
}

/// Differences between two disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockDifference {
    /// Clusters of 64 KiB, by position.
    pub clusters: Share,
    /// Blocks of 512 KiB, by position.
    pub blocks: Share,
    /// Distinct clusters of 64 KiB, regardless of position.
    pub contents: Share,
    /// What a delta of whole blocks, as between snapshots of EBS, has to carry from the first to the second.
    pub block_delta_bytes: u64,
    /// Uncompressed size of the clusters of the second disk that a content-addressed store with the first one lacks.
    pub cluster_delta_bytes: u64,
    /// Changed artifacts.
    pub changed_artifacts: Vec<String>,
    /// Data outside of changed artifacts.
    pub outside: Outside,
    /// Owners of different bytes, by number of differences.
    pub places: Vec<DifferingClusters>,
    /// Unknown facts, and why.
    pub notes: Vec<String>,
}

/// The part of two disks without bytes of changed artifacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outside {
    pub clusters: Share,
    pub blocks: Share,
}

/// Different clusters of one owner, which has most of their bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingClusters {
    /// `partition table`, `partition N`, `metadata`, `base`, `layer NAME`, `artifact NAME` or `files`.
    pub owner: String,
    pub differ: u64,
    /// Total number.
    pub clusters: u64,
    /// Up to five files with the most different clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

impl Share {
    pub(super) fn add(&mut self, (from, to, same): (bool, bool, bool)) {
        if same {
            self.shared += u64::from(to);
        } else {
            self.from += u64::from(from);
            self.to += u64::from(to);
        }
    }

    /// Percentage of the second disk that is shared with the first.
    pub fn percent(&self) -> f64 {
        let hundredths = (self.shared * 10_000).checked_div(self.shared + self.to);
        hundredths.map_or(100.0, |count| u32::try_from(count).map_or(0.0, f64::from) / 100.0)
    }
}

impl BlockDifference {
    pub fn is_empty(&self) -> bool {
        self.clusters.from + self.clusters.to == 0
    }
}

impl fmt::Display for BlockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: u64| format!("{} KiB", bytes >> 10);
        writeln!(f, "{:<26} {:>9} {:>9} {:>9}", "", "shared", "only from", "only to")?;
        line(f, &format!("clusters of {}", kib(CLUSTER)), self.clusters)?;
        line(f, &format!("blocks of {}", kib(BLOCK)), self.blocks)?;
        line(f, "clusters by content", self.contents)?;
        if !self.changed_artifacts.is_empty() {
            let names: Vec<String> = self.changed_artifacts.iter().map(escape::line).collect();
            writeln!(f, "outside {}", names.join(", "))?;
            line(f, &format!("  clusters of {}", kib(CLUSTER)), self.outside.clusters)?;
            line(f, &format!("  blocks of {}", kib(BLOCK)), self.outside.blocks)?;
        }
        writeln!(f, "block delta {}", human_bytes(self.block_delta_bytes))?;
        writeln!(f, "cluster delta {}", human_bytes(self.cluster_delta_bytes))?;
        self.places.iter().try_for_each(|place| writeln!(f, "{place}"))
    }
}

fn line(f: &mut fmt::Formatter<'_>, name: &str, share: Share) -> fmt::Result {
    let Share { shared, from, to } = share;
    writeln!(f, "{name:<26} {shared:>9} {from:>9} {to:>9} {:>6.2} %", share.percent())
}

impl fmt::Display for DifferingClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "differ in {}: {} of {} clusters", escape::line(&self.owner), self.differ, self.clusters)?;
        if self.paths.is_empty() {
            return Ok(());
        }
        write!(f, ", most in {}", self.paths.join(" "))
    }
}
