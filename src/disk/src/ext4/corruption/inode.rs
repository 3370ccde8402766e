//! Faults of inodes.

/// Why an inode is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InodeFault {
    #[error("extra size {found}")]
    ExtraSize {
        /// `i_extra_isize`.
        found: usize,
    },
    #[error("mode {found:#o}")]
    Mode {
        /// `i_mode`.
        found: u16,
    },
    #[error("{found} nanoseconds")]
    Nanoseconds {
        /// From `i_mtime_extra`.
        found: u32,
    },
    #[error("file of {len} bytes")]
    FileLen {
        /// `i_size`.
        len: u64,
    },
    #[error("{len} bytes in an inode that holds {held}")]
    InlineLen {
        /// `i_size`.
        len: u64,
        /// The available space in bytes.
        held: u64,
    },
    #[error("link target of {len} bytes without block")]
    TargetLen {
        /// `i_size`.
        len: u64,
    },
    #[error("link target {target:?}")]
    Target { target: String },
    #[error("{links} links, but {names} names")]
    Links {
        /// `i_links_count`.
        links: u32,
        names: u32,
    },
    #[error("{links} links, but {found} subdirectories")]
    Subdirectories {
        /// `i_links_count`: two, and one for each subdirectory.
        links: u32,
        found: u32,
    },
    #[error("has a name, but is unused")]
    Unused,
}
