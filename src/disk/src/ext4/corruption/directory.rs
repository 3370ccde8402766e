//! Faults of directories, and of names that do not match their inodes.

/// Why a directory is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryFault {
    #[error("directory of {len} bytes")]
    Len {
        /// `i_size`.
        len: u64,
    },
    #[error("hole at block {block} of the directory")]
    Hole {
        /// The missing block, counted from the start of the directory.
        block: u64,
    },
    #[error("directory entry of {len} bytes at byte {at}")]
    EntryLen {
        /// `rec_len`.
        len: usize,
        at: usize,
    },
    #[error("entry for inode {inode} of {inodes}")]
    EntryInode {
        /// `inode`.
        inode: u32,
        inodes: u32,
    },
    #[error("name of {name_len} bytes in a directory entry of {len}")]
    EntryName {
        /// `name_len`.
        name_len: usize,
        /// `rec_len`.
        len: usize,
    },
    #[error("entry of type {found}, expected {expected}")]
    EntryType {
        /// `file_type`.
        found: u8,
        expected: u8,
    },
    #[error("directory inode {directory} has an entry for an unused inode")]
    EntryUnused { directory: u32 },
    #[error("does not start with entries . and ..")]
    Dots,
    #[error("entry .. names inode {found}, expected {expected}")]
    Parent { found: u32, expected: u32 },
    #[error("directory block without checksum")]
    Tail,
    #[error("directory index with {count} of {limit} entries")]
    Index {
        /// `dx_countlimit.count`.
        count: u16,
        /// `dx_countlimit.limit`.
        limit: u16,
    },
    #[error("missing root directory")]
    NoRoot,
    #[error("not a directory")]
    NotDirectory,
    #[error("directory has two names")]
    TwoNames,
    #[error("duplicate name {name:?}")]
    NameTwice { name: String },
    #[error("invalid file name {name:?}")]
    Name { name: String },
}
