//! Errors of reading a volume, with their location.

use std::fmt;

use super::corruption::{AttributeFault, Corruption};

/// The location of an error in a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The superblock, at byte 1024.
    Superblock,
    /// A block group, counted from 0.
    Group(u64),
    /// An inode, counted from 1.
    Inode(u32),
    /// A block of the journal, counted from its start.
    Journal(u64),
    /// A metadata block of an inode, counted from the start of the volume.
    Block { inode: u32, block: u64 },
    /// A name in the tree.
    Path {
        inode: u32,
        /// Path from the root.
        path: String,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock => f.write_str("superblock"),
            Self::Group(group) => write!(f, "block group {group}"),
            Self::Journal(block) => write!(f, "block {block} of the journal"),
            Self::Inode(inode) => write!(f, "inode {inode}"),
            Self::Block { inode, block } => write!(f, "block {block} of inode {inode}"),
            Self::Path { inode, path } => write!(f, "{path} (inode {inode})"),
        }
    }
}

/// Why a volume could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {len} bytes at offset {offset} of the ext4 volume")]
    Io { offset: u64, len: usize, source: std::io::Error },
    #[error("not an ext4 volume: magic {found:#06x} at offset 1080, expected 0xef53")]
    NotExt4 {
        /// The value of `s_magic`.
        found: u16,
    },
    #[error("corrupt ext4 volume: {place}: {what}")]
    Corrupt { place: Location, what: Corruption },
    #[error("unsupported ext4 volume: {place}: {feature}; {hint}")]
    Unsupported {
        place: Location,
        /// The name of the feature in e2fsprogs.
        feature: String,
        hint: &'static str,
    },
}

impl ReadError {
    pub(super) fn corrupt(place: Location, what: impl Into<Corruption>) -> Self {
        Self::Corrupt { place, what: what.into() }
    }

    pub(super) fn checksum(place: Location, found: u32, expected: u32) -> Self {
        Self::corrupt(place, Corruption::Checksum { found, expected })
    }

    pub(super) fn unsupported(place: Location, feature: impl Into<String>, hint: &'static str) -> Self {
        Self::Unsupported { place, feature: feature.into(), hint }
    }

    /// The error for the inode with the value of an attribute, including its owner.
    pub(super) fn of_attribute(self, owner: &Location, name: &str) -> Self {
        match self {
            Self::Corrupt { place, what } => {
                let (name, owner, what) = (name.to_owned(), Box::new(owner.clone()), Box::new(what));
                Self::corrupt(place, AttributeFault::Value { name, owner, what })
            }
            other => other,
        }
    }
}

/// Hint for a feature that cannot be disabled.
pub(super) const REBUILD: &str = "copy its files to a volume without this feature";

/// Hint for a volume that is not clean.
pub(super) const REPAIR: &str = "mount it once or run `e2fsck -p` on it, then try again";
