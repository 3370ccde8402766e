//! How much two disks share: what `--blocks --json` prints as it stands, and its rendering for people.

use std::fmt;

use serde::Serialize;

use super::cells::{BLOCK, CLUSTER};
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;

/// Pieces of two disks; those of zeros in both are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The same in both.
    pub shared: u64,
    /// In the first, and not in the second.
    #[serde(rename = "only_from")]
    pub from: u64,
    /// In the second, and not in the first.
    #[serde(rename = "only_to")]
    pub to: u64,
}

/// How two disks differ, piece by piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockDifference {
    /// Clusters of 64 KiB, by their position on the disk.
    pub clusters: Share,
    /// Blocks of 512 KiB, by their position on the disk.
    pub blocks: Share,
    /// Different clusters of 64 KiB, wherever they stand.
    pub contents: Share,
    /// What a delta of whole blocks, as between snapshots of EBS, has to carry from the first to the second.
    pub block_delta_bytes: u64,
    /// What a store of clusters by their content lacks of the second when it has the first; not compressed.
    pub cluster_delta_bytes: u64,
    /// Artifacts that are not the same in both.
    pub changed_artifacts: Vec<String>,
    /// What holds no byte of those.
    pub outside: Outside,
    /// Whose bytes differ, those with most differences first.
    pub places: Vec<DifferingClusters>,
    /// What could not be told, and why.
    pub notes: Vec<String>,
}

/// The part of two disks in which no byte belongs to an artifact that changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// Clusters of 64 KiB, by their position.
    pub clusters: Share,
    /// Blocks of 512 KiB, by their position.
    pub blocks: Share,
}

/// Clusters that differ, most bytes of which belong to one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingClusters {
    /// `partition table`, `partition N`, `metadata`, `base`, `layer NAME`, `artifact NAME` or `files`.
    pub owner: String,
    /// How many differ.
    pub differ: u64,
    /// How many there are.
    pub clusters: u64,
    /// Files with most of them, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}

impl Share {
    /// Counts a piece that the disks hold or not.
    pub(super) fn add(&mut self, (from, to, same): (bool, bool, bool)) {
        if same {
            self.shared += u64::from(to);
        } else {
            self.from += u64::from(from);
            self.to += u64::from(to);
        }
    }

    /// How many of a hundred pieces of the second disk the first one has too.
    pub fn percent(&self) -> f64 {
        let hundredths = (self.shared * 10_000).checked_div(self.shared + self.to);
        hundredths.map_or(100.0, |count| u32::try_from(count).map_or(0.0, f64::from) / 100.0)
    }
}

impl BlockDifference {
    /// Whether the disks are the same.
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
