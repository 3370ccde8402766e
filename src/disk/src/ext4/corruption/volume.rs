//! Faults of the superblock and of group descriptors.

/// Why the superblock or a group descriptor cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeFault {
    /// The block size is larger than 64 KiB.
    #[error("block size 1024 << {log}")]
    BlockSize {
        /// `s_log_block_size`.
        log: u32,
    },
    /// The cluster size is too large, or smaller than a block.
    #[error("cluster size 1024 << {log}")]
    ClusterSize {
        /// `s_log_cluster_size`.
        log: u32,
    },
    /// The volume has no blocks, or more than fit into the partition.
    #[error("{found} blocks, but the partition holds {held}")]
    Blocks {
        /// `s_blocks_count`.
        found: u64,
        held: u64,
    },
    /// A block group has too many or too few blocks, or the first group does not start at block 0 or 1.
    #[error("{found} blocks per group from block {first}")]
    BlocksPerGroup {
        /// `s_blocks_per_group`.
        found: u64,
        /// `s_first_data_block`.
        first: u32,
    },
    /// The length of a group descriptor is impossible.
    #[error("{groups} group descriptors of {found} bytes")]
    DescriptorSize {
        groups: u64,
        /// `s_desc_size`.
        found: u16,
    },
    /// The first meta block group is behind the last descriptor block.
    #[error("meta block groups from {first} of {blocks} descriptor blocks")]
    MetaGroups {
        /// `s_first_meta_bg`.
        first: u32,
        blocks: u64,
    },
    /// The length of an inode is impossible.
    #[error("inodes of {found} bytes")]
    InodeSize {
        /// `s_inode_size`.
        found: u16,
    },
    /// A block group has no inodes, or more than a bitmap has bits.
    #[error("{found} inodes per group")]
    InodesPerGroup {
        /// `s_inodes_per_group`.
        found: u32,
    },
    /// The groups together do not have as many inodes as the volume.
    #[error("{found} inodes in {groups} groups of {per_group}")]
    Inodes {
        /// `s_inodes_count`.
        found: u32,
        groups: u64,
        per_group: u32,
    },
    /// The first inode for files is one of the reserved inodes.
    #[error("first inode {found}")]
    FirstInode {
        /// `s_first_ino`.
        found: u32,
    },
    /// The number of the group does not fit into 32 bits.
    #[error("number out of range")]
    GroupNumber,
    /// A block bitmap is not inside the volume.
    #[error("block bitmap at block {block} of {blocks}")]
    BlockBitmap { block: u64, blocks: u64 },
    /// An inode table is not inside the volume.
    #[error("inode table at block {block} of {blocks}")]
    InodeTable { block: u64, blocks: u64 },
    /// The inode tables of two groups overlap.
    #[error("inode table at block {block} overlaps that of block group {other}")]
    InodeTablesOverlap { block: u64, other: u64 },
    /// More inodes of a group are unused than it has.
    #[error("{found} unused inodes of {per_group}")]
    UnusedInodes {
        /// `bg_itable_unused`.
        found: u32,
        /// How many inodes the group has.
        per_group: u32,
    },
    /// An inode refers to a block behind the end of the volume.
    #[error("refers to block {block} of {blocks}")]
    OutOfRange { block: u64, blocks: u64 },
}
