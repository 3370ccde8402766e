//! Faults of the superblock and of group descriptors.

/// Why the superblock or a group descriptor is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeFault {
    #[error("block size 1024 << {log}")]
    BlockSize {
        /// `s_log_block_size`.
        log: u32,
    },
    #[error("cluster size 1024 << {log}")]
    ClusterSize {
        /// `s_log_cluster_size`.
        log: u32,
    },
    #[error("{found} blocks, but the partition holds {held}")]
    Blocks {
        /// `s_blocks_count`.
        found: u64,
        held: u64,
    },
    #[error("{found} blocks per group from block {first}")]
    BlocksPerGroup {
        /// `s_blocks_per_group`.
        found: u64,
        /// `s_first_data_block`.
        first: u32,
    },
    #[error("{groups} group descriptors of {found} bytes")]
    DescriptorSize {
        groups: u64,
        /// `s_desc_size`.
        found: u16,
    },
    #[error("meta block groups from {first} of {blocks} descriptor blocks")]
    MetaGroups {
        /// `s_first_meta_bg`.
        first: u32,
        blocks: u64,
    },
    #[error("inodes of {found} bytes")]
    InodeSize {
        /// `s_inode_size`.
        found: u16,
    },
    #[error("{found} inodes per group")]
    InodesPerGroup {
        /// `s_inodes_per_group`.
        found: u32,
    },
    #[error("{found} inodes in {groups} groups of {per_group}")]
    Inodes {
        /// `s_inodes_count`.
        found: u32,
        groups: u64,
        per_group: u32,
    },
    #[error("first inode {found}")]
    FirstInode {
        /// `s_first_ino`.
        found: u32,
    },
    #[error("number out of range")]
    GroupNumber,
    #[error("block bitmap at block {block} of {blocks}")]
    BlockBitmap { block: u64, blocks: u64 },
    #[error("inode table at block {block} of {blocks}")]
    InodeTable { block: u64, blocks: u64 },
    #[error("inode table at block {block} overlaps that of block group {other}")]
    InodeTablesOverlap { block: u64, other: u64 },
    #[error("{found} unused inodes of {per_group}")]
    UnusedInodes {
        /// `bg_itable_unused`.
        found: u32,
        /// Inodes of the group.
        per_group: u32,
    },
    #[error("refers to block {block} of {blocks}")]
    OutOfRange { block: u64, blocks: u64 },
}
