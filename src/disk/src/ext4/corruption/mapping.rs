//! Faults of extent trees and block maps.

/// Why an extent tree or a block map cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingFault {
    #[error("extents with magic {found:#06x}, expected 0xf30a")]
    ExtentMagic {
        /// `eh_magic`.
        found: u16,
    },
    #[error("{entries} extents of {max}, in a node for {capacity}")]
    ExtentCount {
        /// `eh_entries`.
        entries: u16,
        /// `eh_max`.
        max: u16,
        /// How many fit into the node.
        capacity: u16,
    },
    #[error("extent tree of depth {found}")]
    ExtentDepth {
        /// `eh_depth`.
        found: u16,
    },
    #[error("{entries} extents at depth {depth}, expected {expected}")]
    ExtentNode {
        /// `eh_entries`.
        entries: u16,
        /// `eh_depth`.
        depth: u16,
        /// The depth that it must have.
        expected: u16,
    },
    #[error("extent index for block {logical} of the file at block {block}")]
    ExtentIndex {
        /// `ei_block`.
        logical: u32,
        /// `ei_leaf`.
        block: u64,
    },
    #[error("extents do not begin where their index says")]
    ExtentStart,
    #[error("no room for the checksum of the extents")]
    ExtentTail,
    #[error("map of block {logical} of the file at block {block}")]
    Map {
        /// The first block of the file that it maps.
        logical: u64,
        block: u64,
    },
    #[error("{len} blocks of the file at block {block} of the volume")]
    Run { len: u64, block: u64 },
    #[error("block {logical} of the file is mapped after {end}")]
    Order {
        logical: u64,
        /// Where the previous extent ends, exclusive.
        end: u64,
    },
    #[error("block {block} maps blocks twice")]
    MapTwice { block: u64 },
    #[error("more blocks map its content than it can have")]
    Maps,
    #[error("with those before it maps more blocks than there can be")]
    Runs,
    #[error("block {block} stands at two places of it")]
    BlockTwice { block: u64 },
    #[error("block {block} belongs to inode {other} too")]
    BlockShared { block: u64, other: u32 },
}
