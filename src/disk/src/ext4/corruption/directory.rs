//! Faults of directories, and of names that do not agree with their inodes.

/// Why a directory cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryFault {
    /// The length of the directory is zero, not a multiple of the block size, or larger than the volume.
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
    /// The length of an entry is impossible.
    #[error("directory entry of {len} bytes at byte {at}")]
    EntryLen {
        /// `rec_len`.
        len: usize,
        at: usize,
    },
    /// An entry names an inode behind the last one.
    #[error("entry for inode {inode} of {inodes}")]
    EntryInode {
        /// `inode`.
        inode: u32,
        inodes: u32,
    },
    /// A name does not fit into its entry.
    #[error("name of {name_len} bytes in a directory entry of {len}")]
    EntryName {
        /// `name_len`.
        name_len: usize,
        /// `rec_len`.
        len: usize,
    },
    /// An entry and its inode have different types.
    #[error("entry of type {found}, expected {expected}")]
    EntryType {
        /// `file_type`.
        found: u8,
        expected: u8,
    },
    /// An entry names a free inode.
    #[error("directory inode {directory} names an unused inode")]
    EntryUnused { directory: u32 },
    /// The first two entries are not `.` and `..`.
    #[error("does not begin with entries . and ..")]
    Dots,
    /// `..` is not the directory that names this one.
    #[error("entry .. names inode {found}, expected {expected}")]
    Parent { found: u32, expected: u32 },
    /// A block has no checksum.
    #[error("directory block without checksum")]
    Tail,
    /// A node of the hash index has too many entries.
    #[error("directory index with {count} of {limit} entries")]
    Index {
        /// `dx_countlimit.count`.
        count: u16,
        /// `dx_countlimit.limit`.
        limit: u16,
    },
    /// The volume has no root directory.
    #[error("no root directory")]
    NoRoot,
    /// An inode that must be a directory is not.
    #[error("no directory")]
    NotDirectory,
    /// Two entries name the same directory.
    #[error("directory has two names")]
    TwoNames,
    /// Two entries have the same name.
    #[error("name {name:?} exists twice")]
    NameTwice { name: String },
    /// An entry has a name that no file can have.
    #[error("name {name:?} is not a valid file name")]
    Name { name: String },
}
