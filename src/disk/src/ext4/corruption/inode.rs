//! Faults of inodes.

/// Why an inode cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InodeFault {
    /// The extra fields do not fit into the inode, or end inside a field.
    #[error("extra size {found}")]
    ExtraSize {
        /// `i_extra_isize`.
        found: usize,
    },
    /// No file type has these bits.
    #[error("mode {found:#o}")]
    Mode {
        /// `i_mode`.
        found: u16,
    },
    /// The nanoseconds of its time are a second or more.
    #[error("{found} nanoseconds")]
    Nanoseconds {
        /// From `i_mtime_extra`.
        found: u32,
    },
    /// The file has more blocks than can be numbered.
    #[error("file of {len} bytes")]
    FileLen {
        /// `i_size`.
        len: u64,
    },
    /// Inline data is longer than the room for it.
    #[error("{len} bytes in an inode that holds {held}")]
    InlineLen {
        /// `i_size`.
        len: u64,
        /// How many bytes there is room for.
        held: u64,
    },
    /// The target of a symbolic link has no block, or does not fit into one.
    #[error("link target of {len} bytes without block")]
    TargetLen {
        /// `i_size`.
        len: u64,
    },
    /// The target of a symbolic link is empty, or has a NUL.
    #[error("link target {target:?}")]
    Target { target: String },
    /// The link count differs from the number of names.
    #[error("{links} links, but {names} names")]
    Links {
        /// `i_links_count`.
        links: u32,
        names: u32,
    },
    /// The link count of a directory differs from the number of its subdirectories.
    #[error("{links} links, but {found} subdirectories")]
    Subdirectories {
        /// `i_links_count`: two, and one for each subdirectory.
        links: u32,
        found: u32,
    },
    /// A directory names the inode, but it is free.
    #[error("is named, but not in use")]
    Unused,
}
