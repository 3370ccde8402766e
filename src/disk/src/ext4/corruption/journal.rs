//! Faults of the journal.

/// Why the journal cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    /// The inode of the journal is free.
    #[error("the volume needs recovery, but has no journal")]
    Missing,
    #[error("the journal has a hole here")]
    Hole,
    /// The journal does not start with a superblock.
    #[error("magic {magic:#010x}, type {kind}, expected 0xc03b3998, type 3 or 4")]
    Magic {
        /// `h_magic`.
        magic: u32,
        /// `h_blocktype`.
        kind: u32,
    },
    /// The block size differs from the volume's.
    #[error("blocks of {found} bytes, expected {expected}")]
    BlockSize {
        /// `s_blocksize`.
        found: u32,
        expected: u64,
    },
    /// The log starts outside of the journal.
    #[error("log at block {start} of blocks {first} to {end}")]
    Log {
        /// `s_start`.
        start: u32,
        /// `s_first`.
        first: u32,
        end: u32,
    },
    /// The features name two kinds of checksums.
    #[error("checksums of more than one kind")]
    Checksums,
    /// The log is longer than the journal.
    #[error("log longer than the journal")]
    LogLen,
    /// A transaction writes a block behind the end of the volume.
    #[error("block {block} of the volume, which has {blocks}")]
    Block { block: u64, blocks: u64 },
    /// A list of revoked blocks does not fit into its block.
    #[error("revocations of {len} bytes")]
    Revocations {
        /// `r_count`.
        len: usize,
    },
    /// The checksum of a transaction that others follow is wrong.
    #[error("checksum of a transaction does not hold")]
    Transaction,
}
