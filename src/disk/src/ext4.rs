//! ext4: a volume becomes a [`Tree`](crate::tree::Tree), and a tree becomes a [`Volume`].
//!
//! What enters the reader is a partition; what leaves is a tree whose contents are ranges of that partition. What
//! enters the author is a tree; what leaves is a block map over the tree's sources and one block of metadata in memory.
//! No file content is read by either.
//!
//! The format is that of the kernel's `Documentation/filesystems/ext4`: little endian, offsets in bytes from the start
//! of the structure, blocks of 4096 bytes counted from the start of the volume. The `mkext4` library decodes single
//! structures and lays out new volumes; none of its types leave this module, so that it can be replaced.
//!
//! Where we are stricter than the kernel: only clean volumes are read (no journal replay, no orphans); link counts,
//! `.` and `..`, entry types and name uniqueness must agree; every extent must lie inside the volume; checksums are
//! verified wherever the volume has them. A feature whose meaning a tree cannot carry is refused by name.
//!
//! What is not carried over: access, change and creation times (the author sets all to the modification time), inode
//! numbers and generations, and the `chattr` flags that only advise (no-dump, no-atime and such). The flags immutable
//! and append-only are refused. An empty `/lost+found` is not part of a tree, as each author makes its own; one that
//! holds something is read, so that it can be looked at, and refused by the author.

mod acl;
mod error;
mod superblock;
mod groups;
mod inodes;
mod extents;
mod blocks;
mod directory;
mod xattrs;
mod read;
mod author;

pub use author::{AuthorError, Refusal, Size, Stats, Volume, VolumeOptions, author};
pub use error::{Place, ReadError};
pub use read::{Reach, Want, read, read_some};
pub use superblock::{FileSystem, probe};

/// The only block size that is read and written, in bytes.
const BLOCK: u64 = 4096;

/// The same, for buffers.
const BLOCK_LEN: usize = 4096;

/// Blocks that one bitmap block describes: the size of a block group.
const BLOCKS_PER_GROUP: u64 = 32768;

/// Most names of one inode (`EXT4_LINK_MAX`).
const LINK_MAX: u32 = 65_000;

/// The directory that e2fsck fills; it belongs to the volume, not to the tree.
const LOST_FOUND: &[u8] = b"lost+found";

/// A little-endian number at `at`; the caller has checked that it lies inside.
fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A little-endian number at `at`; the caller has checked that it lies inside.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
