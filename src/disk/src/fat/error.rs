//! Errors of reading a FAT volume.

use std::fmt;
use std::io;

use crate::tree::TreeError;

/// Why a volume cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FatError {
    #[error("cannot read {len} bytes at {offset} of the FAT volume")]
    Read { offset: u64, len: u64, source: io::Error },
    #[error("not a FAT volume: {what} at {offset} is {found:#x}")]
    NotFat { what: FatPart, offset: u64, found: u64 },
    #[error("corrupt FAT volume: {what} is {found}, the maximum is {limit}")]
    TooLarge { what: FatPart, found: u64, limit: u64 },
    #[error("corrupt FAT volume: {path}: cluster {cluster} {what}")]
    Chain { path: String, cluster: u32, what: ChainFault },
    #[error("corrupt FAT volume: {path}: {what}")]
    Entry { path: String, what: EntryFault },
    #[error("unsupported FAT volume: {what} is {found}, the maximum is {limit}")]
    Unsupported { what: FatPart, found: u64, limit: u64 },
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// A part of a volume: fields with their names in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FatPart {
    /// The last two bytes of the boot sector.
    Signature,
    /// `BS_jmpBoot`.
    Jump,
    /// `BPB_BytsPerSec`.
    BytesPerSector,
    /// `BPB_SecPerClus`.
    SectorsPerCluster,
    /// `BPB_RsvdSecCnt`.
    ReservedSectors,
    /// `BPB_NumFATs`.
    Fats,
    /// `BPB_RootEntCnt`.
    RootEntries,
    /// `BPB_Media`.
    Media,
    /// `BPB_FATSz16` or `BPB_FATSz32`.
    FatSectors,
    /// `BPB_FSVer`.
    Version,
    /// The first sector of the clusters.
    FirstDataSector,
    /// `BPB_TotSec16` or `BPB_TotSec32`, in bytes.
    Len,
    /// The number of clusters.
    Clusters,
    /// `BPB_FATSz32`, in bytes.
    FatLen,
    /// `BPB_ExtFlags`: the active FAT.
    ActiveFat,
    /// The number of files.
    Files,
    /// The length of a path.
    PathLen,
    /// The length of all paths.
    PathsLen,
}

impl fmt::Display for FatPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "the signature",
            Self::Jump => "the jump instruction",
            Self::BytesPerSector => "BPB_BytsPerSec",
            Self::SectorsPerCluster => "BPB_SecPerClus",
            Self::ReservedSectors => "BPB_RsvdSecCnt",
            Self::Fats => "BPB_NumFATs",
            Self::RootEntries => "BPB_RootEntCnt",
            Self::Media => "BPB_Media",
            Self::FatSectors => "BPB_FATSz",
            Self::Version => "BPB_FSVer",
            Self::FirstDataSector => "the first data sector",
            Self::Len => "the volume's length",
            Self::Clusters => "the number of clusters",
            Self::FatLen => "the length of the FAT",
            Self::ActiveFat => "the active FAT",
            Self::Files => "the number of files",
            Self::PathLen => "the length of a path",
            Self::PathsLen => "the length of all paths",
        })
    }
}

/// A fault in a chain of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    #[error("is out of range, or the chain is too short")]
    NoCluster,
    #[error("belongs to two files or to a loop")]
    Taken,
    #[error("exceeds the limit of 2 MiB for a directory")]
    DirectoryLen,
}

/// A fault in an entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    #[error("duplicate name in the directory")]
    NameTwice,
    #[error("entry with an empty name")]
    NoName,
}
