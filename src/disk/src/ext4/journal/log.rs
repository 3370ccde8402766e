//! The log: a sequence of transactions, each with descriptors and their blocks, revocations and a commit. It ends at a
//! block that is not of the expected transaction.

use std::collections::BTreeMap;

use mkext4::csum::crc32c_raw;

use super::overlay::Shown;
use super::superblock::{Checksums, JournalSuper, MAGIC};
use super::{Journal, MOUNT, be16, be32};
use crate::ext4::corruption::JournalFault;
use crate::ext4::groups::low16;
use crate::ext4::{Location, ReadError};

// `h_blocktype`.
const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;

/// Length of `journal_header_s`, at the start of each of these blocks.
const HEADER: usize = 12;
/// Length of the checksum at the end of descriptors and revocations.
const TAIL: usize = 4;
/// Offset of the checksum of a commit.
const H_CHKSUM: usize = 0x10;

// Flags of a tag.
const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;

/// A transaction, perhaps incomplete.
#[derive(Default)]
struct Transaction {
    /// Blocks of the volume, and the locations of their new contents.
    blocks: Vec<(u64, Shown)>,
    /// Blocks that are not changed by this transaction and those before it.
    revoked: Vec<u64>,
    /// CRC-32 of its blocks, if used.
    sum: u32,
    /// The first fault: an uncommitted transaction may be incomplete, so a fault matters only after a commit.
    damage: Option<ReadError>,
}

impl Transaction {
    fn note(&mut self, damage: Option<ReadError>) {
        if self.damage.is_none() {
            self.damage = damage;
        }
    }
}

/// A tag of a descriptor, which describes one block.
struct Tag {
    block: u64,
    flags: u32,
    /// Its checksum, or half of it.
    sum: u32,
}

/// The committed transactions, in order.
pub(super) struct Log {
    transactions: Vec<Transaction>,
}

impl Log {
    pub(super) fn read(journal: &Journal<'_>, info: &JournalSuper) -> Result<Self, ReadError> {
        let mut transactions = Vec::new();
        let mut scan =
            Scan { journal, info, next: info.start, left: info.log.end - info.log.start, sequence: info.sequence };
        if info.start != 0 {
            while let Some(transaction) = scan.transaction()? {
                transactions.push(transaction);
                scan.sequence = scan.sequence.wrapping_add(1);
            }
        }
        if info.fast_commit == Some(scan.sequence) {
            return Err(ReadError::unsupported(
                Location::Journal(info.log.end + 1),
                "fast commits that need recovery",
                MOUNT,
            ));
        }
        Ok(Self { transactions })
    }

    /// The new location of each replaced block.
    pub(super) fn replay(&self) -> BTreeMap<u64, Shown> {
        let mut revoked = BTreeMap::new();
        for (index, transaction) in self.transactions.iter().enumerate() {
            revoked.extend(transaction.revoked.iter().map(|block| (*block, index)));
        }
        let mut all = BTreeMap::new();
        for (index, transaction) in self.transactions.iter().enumerate() {
            let valid = |block: &u64| revoked.get(block).is_none_or(|last| *last < index);
            all.extend(transaction.blocks.iter().filter(|(block, _)| valid(block)).copied());
        }
        all
    }
}

/// A walk along the log.
struct Scan<'a> {
    journal: &'a Journal<'a>,
    info: &'a JournalSuper,
    /// The next block.
    next: u64,
    /// Number of unvisited blocks: the log wraps around at most once.
    left: u64,
    /// The transaction that is expected.
    sequence: u32,
}

impl Scan<'_> {
    /// The next transaction; `None` at the end of the log.
    fn transaction(&mut self) -> Result<Option<Transaction>, ReadError> {
        let mut transaction = Transaction { sum: !0, ..Transaction::default() };
        while self.left > 0 {
            let (at, bytes) = self.take()?;
            let (h_magic, h_blocktype, h_sequence) = (be32(&bytes, 0x00), be32(&bytes, 0x04), be32(&bytes, 0x08));
            if h_magic != MAGIC || h_sequence != self.sequence {
                return Ok(None);
            }
            match h_blocktype {
                DESCRIPTOR => self.descriptor(&bytes, at, &mut transaction)?,
                REVOKE => self.revocations(&bytes, at, &mut transaction),
                COMMIT if self.is_committed(&bytes, transaction.sum) => {
                    return transaction.damage.take().map_or(Ok(Some(transaction)), Err);
                }
                COMMIT => return self.torn(at),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The next block and its number in the journal.
    fn take(&mut self) -> Result<(u64, Vec<u8>), ReadError> {
        let at = self.next;
        let left = self.left.checked_sub(1);
        self.left = left.ok_or_else(|| ReadError::corrupt(Location::Journal(at), JournalFault::LogLen))?;
        self.next = if at + 1 == self.info.log.end { self.info.log.start } else { at + 1 };
        Ok((at, self.journal.read(at)?))
    }

    fn descriptor(&mut self, bytes: &[u8], at: u64, transaction: &mut Transaction) -> Result<(), ReadError> {
        transaction.note(self.damaged_tail(bytes, at));
        transaction.sum = self.add(transaction.sum, bytes);
        let end = bytes.len() - if self.seed().is_some() { TAIL } else { 0 };
        let mut rest = &bytes[HEADER..end];
        while let Some((tag, after)) = self.tag(rest) {
            let (from, content) = self.take()?;
            transaction.sum = self.add(transaction.sum, &content);
            transaction.note(self.damaged_content(&tag, &content, from));
            if tag.block >= self.journal.volume.info.blocks {
                let what = JournalFault::Block { block: tag.block, blocks: self.journal.volume.info.blocks };
                transaction.note(Some(ReadError::corrupt(Location::Journal(at), what)));
            }
            let shown = Shown { at: self.journal.place(from)?, escaped: tag.flags & ESCAPED != 0 };
            transaction.blocks.push((tag.block, shown));
            if tag.flags & LAST != 0 {
                break;
            }
            rest = after;
        }
        Ok(())
    }

    /// The next tag of a descriptor and the data after it; `None` at the end.
    fn tag<'b>(&self, bytes: &'b [u8]) -> Option<(Tag, &'b [u8])> {
        let (len, has_high) = match (self.info.checksums, self.info.bits64) {
            (Checksums::V3(_), bits64) => (16, bits64),
            (Checksums::V2(_), true) => (14, true),
            (Checksums::V2(_), false) => (10, false),
            (_, true) => (12, true),
            (_, false) => (8, false),
        };
        let (tag, rest) = bytes.split_at_checked(len)?;
        let (flags, sum) = match self.info.checksums {
            Checksums::V3(_) => (be32(tag, 0x04), be32(tag, 0x0c)), // t_flags, t_checksum
            _ => (be16(tag, 0x06).into(), be16(tag, 0x04).into()),
        };
        let high = if has_high { u64::from(be32(tag, 0x08)) << 32 } else { 0 }; // t_blocknr_high
        let tag = Tag { block: u64::from(be32(tag, 0x00)) | high, flags, sum };
        let uuid = if tag.flags & SAME_UUID == 0 { 16 } else { 0 };
        Some((tag, rest.get(uuid..).unwrap_or_default()))
    }

    fn revocations(&self, bytes: &[u8], at: u64, transaction: &mut Transaction) {
        transaction.note(self.damaged_tail(bytes, at));
        // r_count includes the header and itself.
        let r_count = usize::try_from(be32(bytes, HEADER)).unwrap_or(usize::MAX);
        let Some(numbers) = bytes.get(HEADER + 4..r_count) else {
            let what = JournalFault::Revocations { len: r_count };
            return transaction.note(Some(ReadError::corrupt(Location::Journal(at), what)));
        };
        let len = if self.info.bits64 { 8 } else { 4 };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        transaction.revoked.extend(numbers.chunks_exact(len).map(number));
    }

    /// Whether the checksum of a commit, if any, is valid.
    fn is_committed(&self, bytes: &[u8], sum: u32) -> bool {
        let found = be32(bytes, H_CHKSUM);
        match self.info.checksums {
            Checksums::None => true,
            // Type CRC-32 of 4 bytes; a commit without one has zeros.
            Checksums::V1 => (bytes[0x0c], bytes[0x0d]) == (1, 4) && found == sum || bytes[0x0c..0x14] == [0; 8],
            Checksums::V2(seed) | Checksums::V3(seed) => {
                let sum = crc32c_raw(crc32c_raw(seed, &bytes[..H_CHKSUM]), &[0; 4]);
                found == crc32c_raw(sum, &bytes[H_CHKSUM + 4..])
            }
        }
    }

    /// An invalid commit at the end is an incomplete transaction and ignored; followed by others it is corruption.
    fn torn(&mut self, at: u64) -> Result<Option<Transaction>, ReadError> {
        let follows = self.left > 0 && {
            let (_, bytes) = self.take()?;
            be32(&bytes, 0x00) == MAGIC && be32(&bytes, 0x08) == self.sequence.wrapping_add(1)
        };
        if follows || self.info.async_commit {
            return Err(ReadError::corrupt(Location::Journal(at), JournalFault::Transaction));
        }
        Ok(None)
    }

    fn seed(&self) -> Option<u32> {
        match self.info.checksums {
            Checksums::V2(seed) | Checksums::V3(seed) => Some(seed),
            Checksums::None | Checksums::V1 => None,
        }
    }

    /// The fault of a descriptor or of revocations with a checksum mismatch.
    fn damaged_tail(&self, bytes: &[u8], at: u64) -> Option<ReadError> {
        let seed = self.seed()?;
        let (covered, tail) = bytes.split_at(bytes.len() - TAIL);
        let (found, expected) = (be32(tail, 0), crc32c_raw(crc32c_raw(seed, covered), &[0; TAIL]));
        (found != expected).then(|| ReadError::checksum(Location::Journal(at), found, expected))
    }

    /// The fault of a block to replay with a checksum mismatch.
    fn damaged_content(&self, tag: &Tag, content: &[u8], at: u64) -> Option<ReadError> {
        let expected = crc32c_raw(crc32c_raw(self.seed()?, &self.sequence.to_be_bytes()), content);
        let expected = match self.info.checksums {
            Checksums::V3(_) => expected,
            _ => low16(expected).into(),
        };
        (tag.sum != expected).then(|| ReadError::checksum(Location::Journal(at), tag.sum, expected))
    }

    /// Continues the checksum of a transaction, if used: a CRC-32 without bit reflection.
    fn add(&self, sum: u32, bytes: &[u8]) -> u32 {
        if self.info.checksums != Checksums::V1 {
            return sum;
        }
        let shift = |sum: u32| if sum >> 31 == 0 { sum << 1 } else { sum << 1 ^ 0x04c1_1db7 };
        bytes.iter().fold(sum, |sum, byte| (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| shift(sum)))
    }
}
