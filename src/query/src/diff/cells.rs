//! The pieces in which two disks are compared, one beside the other.

/// The cluster of qcow2, in bytes.
pub(super) const CLUSTER: u64 = 64 << 10;
/// The block of EBS snapshots, in bytes.
pub(super) const BLOCK: u64 = 512 << 10;

/// Name of a cluster's bytes: half of their SHA-256.
pub(super) type Name = [u8; 16];

/// One cluster of both disks; `None` is a cluster of zeros. One of both is none at most.
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
