//! Faults of extent trees and block maps.

/// Why an extent tree or a block map is invalid.
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
        /// Capacity of the node.
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
        /// The required depth.
        expected: u16,
    },
    #[error("extent index for block {logical} of the file at block {block}")]
    ExtentIndex {
        /// `ei_block`.
        logical: u32,
        /// `ei_leaf`.
        block: u64,
    },
    #[error("extents start at another block than in their index")]
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
    #[error("more blocks map its content than possible")]
    Maps,
    #[error("more blocks are mapped in total than possible")]
    Runs,
    #[error("block {block} is used twice by it")]
    BlockTwice { block: u64 },
    #[error("block {block} is used by inode {other}, too")]
    BlockShared { block: u64, other: u32 },
}
