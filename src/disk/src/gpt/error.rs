//! Why a table cannot be read or written.

use std::fmt;
use std::io;

use super::Guid;

/// Why a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GptError {
    /// The disk cannot be read.
    #[error("cannot read sector {lba} of the disk")]
    Read { lba: u64, source: io::Error },
    /// The disk has no such table.
    #[error("no GUID partition table: sector 0 has no protective MBR")]
    NoProtectiveMbr,
    /// One copy of the table is not there.
    #[error("no GUID partition table at sector {lba}: signature not found")]
    NoSignature { lba: u64 },
    /// A part does not have the checksum that is stored for it.
    #[error("corrupt partition table: {what} at sector {lba} has checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        what: GptPart,
        lba: u64,
        expected: u32,
        /// What its bytes give.
        found: u32,
    },
    /// A part has an impossible value.
    #[error("corrupt partition table at sector {lba}: {what} is {found}")]
    Corrupt { lba: u64, what: GptPart, found: u64 },
    /// A partition is outside of the sectors for partitions.
    #[error("corrupt partition table: partition {number} (sectors {first} to {last}) is not inside {min} to {max}")]
    OutOfBounds { number: u32, first: u64, last: u64, min: u64, max: u64 },
    /// Two partitions have sectors in common.
    #[error("corrupt partition table: partitions {a} and {b} overlap")]
    Overlap { a: u32, b: u32 },
    /// Two partitions have one GUID.
    #[error("corrupt partition table: partitions {a} and {b} have the same GUID {guid}")]
    DuplicateGuid { a: u32, b: u32, guid: Guid },
    /// A part has a value that is not supported.
    #[error("unsupported partition table at sector {lba}: {what} is {found}, expected {expected}")]
    Unsupported { lba: u64, what: GptPart, found: u64, expected: &'static str },
    /// Neither copy can be read.
    #[error("neither copy of the partition table is usable; primary: {primary}; backup: {backup}")]
    BothUnusable {
        /// Why the one at the start cannot.
        primary: Box<GptError>,
        /// Why the one at the end cannot.
        backup: Box<GptError>,
    },
    /// The MBR has partitions too, which would be lost.
    #[error("refused: the MBR is hybrid (it lists partitions beside the protective one)")]
    HybridMbr,
    /// Sectors of another length are read, but not written.
    #[error(
        "refused: the disk has sectors of {found} bytes, and partition tables are written for sectors of 512 bytes"
    )]
    SectorSize { found: u64 },
    /// No disk of that length has a table.
    #[error("refused: a disk of {len} bytes; a multiple of 512 and at least {min} is needed")]
    DiskLen {
        /// The length in bytes.
        len: u64,
        min: u64,
    },
    /// A partition has no form on disk.
    #[error("refused: partition {number} cannot be written: {what}")]
    Unwritable { number: u32, what: Unwritable },
}

/// A part of a table that an error speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GptPart {
    Header,
    /// All entries.
    EntryArray,
    /// `Revision`.
    Revision,
    /// `HeaderSize`.
    HeaderSize,
    /// `MyLBA`.
    MyLba,
    /// `SizeOfPartitionEntry`.
    EntrySize,
    /// `NumberOfPartitionEntries`.
    EntryCount,
    /// `PartitionEntryLBA`.
    EntryLba,
    /// `EndingLBA` of a partition, in bytes beyond all numbers.
    LastLba,
    /// `EndingLBA` of a partition, before `StartingLBA`.
    LastBeforeFirst,
    /// A sector, in bytes beyond all numbers.
    Sector,
    /// Where a copy is written.
    CopyLba,
}

impl fmt::Display for GptPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::EntryArray => "entry array",
            Self::Revision => "the revision",
            Self::HeaderSize => "the header size",
            Self::MyLba => "the sector that the header claims",
            Self::EntrySize => "the entry size",
            Self::EntryCount => "the number of entries",
            Self::EntryLba => "the entry array",
            Self::LastLba => "the last sector of a partition",
            Self::LastBeforeFirst => "the last sector of a partition before its first",
            Self::Sector => "the sector number",
            Self::CopyLba => "the sector to encode a copy at",
        })
    }
}

/// Why a partition has no form on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// Its type marks an unused entry.
    #[error("its type is that of an unused entry")]
    UnusedType,
    /// It begins or ends inside a sector, or has none.
    #[error("its range is not made of whole sectors")]
    Unaligned,
    /// Its name is too long.
    #[error("its name is longer than 36 UTF-16 units")]
    NameLen,
    /// Its number is 0, or behind the last.
    #[error("the table has no such number")]
    NoSuchNumber,
    /// Another partition has its number.
    #[error("its number is taken twice")]
    NumberTwice,
}
