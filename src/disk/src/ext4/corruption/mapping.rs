//! Faults of extent trees and block maps.

/// Why an extent tree or a block map cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingFault {
    /// A node of an extent tree has the wrong magic number.
    #[error("extents with magic {found:#06x}, expected 0xf30a")]
    ExtentMagic {
        /// `eh_magic`.
        found: u16,
    },
    /// A node has more entries than there is room for.
    #[error("{entries} extents of {max}, in a node for {capacity}")]
    ExtentCount {
        /// `eh_entries`.
        entries: u16,
        /// `eh_max`.
        max: u16,
        /// How many fit into the node.
        capacity: u16,
    },
    /// The extent tree is too deep.
    #[error("extent tree of depth {found}")]
    ExtentDepth {
        /// `eh_depth`.
        found: u16,
    },
    /// A node is empty, or its depth does not follow from its parent's.
    #[error("{entries} extents at depth {depth}, expected {expected}")]
    ExtentNode {
        /// `eh_entries`.
        entries: u16,
        /// `eh_depth`.
        depth: u16,
        /// The depth that it must have.
        expected: u16,
    },
    /// A node is outside the volume, or out of order.
    #[error("extent index for block {logical} of the file at block {block}")]
    ExtentIndex {
        /// `ei_block`.
        logical: u32,
        /// `ei_leaf`.
        block: u64,
    },
    /// The first extent of a node is not the one that its parent announces.
    #[error("extents do not begin where their index says")]
    ExtentStart,
    /// A node has no room for its checksum.
    #[error("no room for the checksum of the extents")]
    ExtentTail,
    /// A block of block numbers is outside the volume.
    #[error("map of block {logical} of the file at block {block}")]
    Map {
        /// The first block of the file that it maps.
        logical: u64,
        block: u64,
    },
    /// An extent is empty, or outside the volume.
    #[error("{len} blocks of the file at block {block} of the volume")]
    Run { len: u64, block: u64 },
    /// An extent begins before the end of the previous one.
    #[error("block {logical} of the file is mapped after {end}")]
    Order {
        logical: u64,
        /// Where the previous extent ends, exclusive.
        end: u64,
    },
    /// A block is part of two maps.
    #[error("block {block} maps blocks twice")]
    MapTwice { block: u64 },
    /// The map has more blocks than the file can need.
    #[error("more blocks map its content than it can have")]
    Maps,
    /// All files together have more extents than the volume has blocks.
    #[error("with those before it maps more blocks than there can be")]
    Runs,
    /// A block is mapped twice by one inode.
    #[error("block {block} stands at two places of it")]
    BlockTwice { block: u64 },
    /// A block belongs to two inodes.
    #[error("block {block} belongs to inode {other} too")]
    BlockShared { block: u64, other: u32 },
}
