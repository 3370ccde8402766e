//! Units of comparison of two disks.

/// Cluster size of qcow2, in bytes.
pub(super) const CLUSTER: u64 = 64 << 10;
/// Block size of EBS snapshots, in bytes.
pub(super) const BLOCK: u64 = 512 << 10;

/// Digest of a cluster: half of its SHA-256.
pub(super) type Name = [u8; 16];

/// One cluster of both disks; `None` if it is all zeros. At most one of them is `None`.
pub(super) struct Cell {
    /// Position in clusters.
    pub(super) at: u64,
    pub(super) from: Option<Name>,
    pub(super) to: Option<Name>,
}

impl Cell {
    pub(super) fn same(&self) -> bool {
        self.from == self.to
    }
}
