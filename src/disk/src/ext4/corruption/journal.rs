//! Faults of the journal.

/// Why the journal cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    #[error("the volume needs recovery, but has no journal")]
    Missing,
    #[error("the journal has a hole here")]
    Hole,
    #[error("magic {magic:#010x}, type {kind}, expected 0xc03b3998, type 3 or 4")]
    Magic {
        /// `h_magic`.
        magic: u32,
        /// `h_blocktype`.
        kind: u32,
    },
    #[error("blocks of {found} bytes, expected {expected}")]
    BlockSize {
        /// `s_blocksize`.
        found: u32,
        expected: u64,
    },
    #[error("log at block {start} of blocks {first} to {end}")]
    Log {
        /// `s_start`.
        start: u32,
        /// `s_first`.
        first: u32,
        end: u32,
    },
    #[error("checksums of more than one kind")]
    Checksums,
    #[error("log longer than the journal")]
    LogLen,
    #[error("block {block} of the volume, which has {blocks}")]
    Block { block: u64, blocks: u64 },
    #[error("revocations of {len} bytes")]
    Revocations {
        /// `r_count`.
        len: usize,
    },
    #[error("checksum mismatch of a transaction")]
    Transaction,
}
