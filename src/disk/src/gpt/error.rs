//! Errors of partition tables.

use std::fmt;
use std::io;

use super::Guid;

/// Why a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GptError {
    #[error("cannot read sector {lba} of the disk")]
    Read { lba: u64, source: io::Error },
    #[error("no GUID partition table: sector 0 has no protective MBR")]
    NoProtectiveMbr,
    #[error("no GUID partition table at sector {lba}: signature not found")]
    NoSignature { lba: u64 },
    #[error("corrupt partition table: {what} at sector {lba} has checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        what: GptPart,
        lba: u64,
        expected: u32,
        /// Computed from its bytes.
        found: u32,
    },
    #[error("corrupt partition table at sector {lba}: {what} is {found}")]
    Corrupt { lba: u64, what: GptPart, found: u64 },
    #[error("corrupt partition table: partition {number} (sectors {first} to {last}) is not inside {min} to {max}")]
    OutOfBounds { number: u32, first: u64, last: u64, min: u64, max: u64 },
    #[error("corrupt partition table: partitions {a} and {b} overlap")]
    Overlap { a: u32, b: u32 },
    #[error("corrupt partition table: partitions {a} and {b} have the same GUID {guid}")]
    DuplicateGuid { a: u32, b: u32, guid: Guid },
    #[error("unsupported partition table at sector {lba}: {what} is {found}, expected {expected}")]
    Unsupported { lba: u64, what: GptPart, found: u64, expected: &'static str },
    #[error("both copies of the partition table are invalid; primary: {primary}; backup: {backup}")]
    BothUnusable {
        /// The error of the primary copy.
        primary: Box<GptError>,
        /// The error of the backup.
        backup: Box<GptError>,
    },
    #[error("refused: hybrid MBR, which lists partitions in addition to the protective one")]
    HybridMbr,
    #[error(
        "refused: the disk has sectors of {found} bytes, but partition tables can only be written for sectors of 512 bytes"
    )]
    SectorSize { found: u64 },
    #[error("refused: a disk of {len} bytes, expected a multiple of 512 and at least {min}")]
    DiskLen { len: u64, min: u64 },
    #[error("refused: partition {number} cannot be written: {what}")]
    Unwritable { number: u32, what: Unwritable },
}

/// A part of a table.
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
    /// `EndingLBA` of a partition, whose offset in bytes overflows.
    LastLba,
    /// `EndingLBA` of a partition, before `StartingLBA`.
    LastBeforeFirst,
    /// A sector, whose offset in bytes overflows.
    Sector,
    /// The sector of a copy to write.
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

/// Why a partition cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    #[error("its type is reserved for unused entries")]
    UnusedType,
    #[error("its range is not aligned to sectors")]
    Unaligned,
    #[error("its name is longer than 36 UTF-16 units")]
    NameLen,
    #[error("its number is out of range")]
    NoSuchNumber,
    #[error("its number is a duplicate")]
    NumberTwice,
}
