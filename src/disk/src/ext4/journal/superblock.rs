//! The superblock of the journal (`journal_superblock_s`): location and format of its log.

use mkext4::csum::crc32c_raw;

use super::{Journal, MOUNT, be32};
use crate::ext4::corruption::JournalFault;
use crate::ext4::{Location, ReadError, le16, le32};

/// First word of every block of the journal itself.
pub(super) const MAGIC: u32 = 0xc03b_3998;
/// Length of the superblock in bytes.
const LEN: usize = 1024;
/// Offset of `s_checksum`.
const S_CHECKSUM: usize = 0xfc;
/// Default number of blocks for fast commits (`JBD2_DEFAULT_FAST_COMMIT_BLOCKS`).
const DEFAULT_FAST_BLOCKS: u32 = 256;
/// First word of an area of fast commits (`EXT4_FC_TAG_HEAD`, its length): features and transaction follow, little
/// endian.
const FAST_HEAD: (u16, u16) = (9, 8);

// `s_feature_compat`.
const CHECKSUM: u32 = 0x1;
// `s_feature_incompat`.
const REVOKE: u32 = 0x1;
const BITS64: u32 = 0x2;
const ASYNC_COMMIT: u32 = 0x4;
const CSUM_V2: u32 = 0x8;
const CSUM_V3: u32 = 0x10;
const FAST_COMMIT: u32 = 0x20;
const KNOWN: u32 = REVOKE | BITS64 | ASYNC_COMMIT | CSUM_V2 | CSUM_V3 | FAST_COMMIT;

/// The parameters of the journal.
pub(super) struct JournalSuper {
    /// The blocks of the circular log.
    pub(super) log: std::ops::Range<u64>,
    /// `s_start`: first block of the log, 0 if it is empty.
    pub(super) start: u64,
    /// `s_sequence`: number of the first transaction.
    pub(super) sequence: u32,
    /// Whether block numbers have 64 bits.
    pub(super) bits64: bool,
    pub(super) checksums: Checksums,
    /// Whether a commit may have been written before its blocks.
    pub(super) async_commit: bool,
    /// The transaction with fast commits after the log, if any.
    pub(super) fast_commit: Option<u32>,
}

/// The type of checksums of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checksums {
    None,
    /// One CRC-32 of all its blocks.
    V1,
    /// CRC-32C of each block, with this seed; tags have its low half.
    V2(u32),
    /// CRC-32C of each block, with this seed; tags have all of it.
    V3(u32),
}

impl JournalSuper {
    pub(super) fn read(journal: &Journal<'_>) -> Result<Self, ReadError> {
        let bytes = journal.read(0)?;
        let corrupt = |what: JournalFault| Err(ReadError::corrupt(Location::Journal(0), what));
        let (h_magic, h_blocktype) = (be32(&bytes, 0x00), be32(&bytes, 0x04));
        if h_magic != MAGIC || !matches!(h_blocktype, 3 | 4) {
            return corrupt(JournalFault::Magic { magic: h_magic, kind: h_blocktype });
        }
        let s_blocksize = be32(&bytes, 0x0c);
        if u64::from(s_blocksize) != journal.volume.block {
            return corrupt(JournalFault::BlockSize { found: s_blocksize, expected: journal.volume.block });
        }
        // The first version of the superblock has no features.
        let word = |at| if h_blocktype == 4 { be32(&bytes, at) } else { 0 };
        let (compat, incompat) = (word(0x24), word(0x28));
        if incompat & !KNOWN != 0 {
            let feature = format!("journal features {:#x}", incompat & !KNOWN);
            return Err(ReadError::unsupported(Location::Journal(0), feature, MOUNT));
        }
        let checksums = checksums(compat, incompat, &bytes)?;
        let (s_maxlen, s_first) = (be32(&bytes, 0x10), be32(&bytes, 0x14));
        let fast_blocks = match be32(&bytes, 0x54) {
            _ if incompat & FAST_COMMIT == 0 => 0,
            0 => DEFAULT_FAST_BLOCKS,
            blocks => blocks,
        };
        let end = s_maxlen.saturating_sub(fast_blocks);
        let s_start = be32(&bytes, 0x1c);
        if s_first == 0 || s_first >= end || (s_start != 0 && !(s_first..end).contains(&s_start)) {
            return corrupt(JournalFault::Log { start: s_start, first: s_first, end });
        }
        Ok(Self {
            log: s_first.into()..end.into(),
            start: s_start.into(),
            sequence: be32(&bytes, 0x18),
            bits64: incompat & BITS64 != 0,
            checksums,
            async_commit: incompat & ASYNC_COMMIT != 0,
            // Linux leaves block `end` (`j_last`) unused: the area starts after it (`j_fc_first`).
            fast_commit: if fast_blocks < 2 { None } else { fast_commit(journal, u64::from(end) + 1)? },
        })
    }
}

fn checksums(compat: u32, incompat: u32, bytes: &[u8]) -> Result<Checksums, ReadError> {
    let found = match (incompat & (CSUM_V2 | CSUM_V3), compat & CHECKSUM) {
        (0, 0) => return Ok(Checksums::None),
        (0, _) => return Ok(Checksums::V1),
        (CSUM_V2, 0) => Checksums::V2,
        (CSUM_V3, 0) => Checksums::V3,
        _ => return Err(ReadError::corrupt(Location::Journal(0), JournalFault::Checksums)),
    };
    let sum = crc32c_raw(crc32c_raw(!0, &bytes[..S_CHECKSUM]), &[0; 4]);
    let expected = crc32c_raw(sum, &bytes[S_CHECKSUM + 4..LEN]);
    let stored = be32(bytes, S_CHECKSUM);
    if stored != expected {
        return Err(ReadError::checksum(Location::Journal(0), stored, expected));
    }
    Ok(found(crc32c_raw(!0, &bytes[0x30..0x40]))) // s_uuid
}

/// The transaction that precedes the fast commits from block `on` on; `None` if there are none.
fn fast_commit(journal: &Journal<'_>, block: u64) -> Result<Option<u32>, ReadError> {
    let bytes = journal.read(block)?;
    let head = (le16(&bytes, 0), le16(&bytes, 2));
    Ok((head == FAST_HEAD).then(|| le32(&bytes, 8)))
}
