//! ext2, ext3 and ext4: a volume becomes a [`Tree`](crate::tree::Tree), and a tree becomes a [`Volume`].
//!
//! What enters the reader is a partition; what leaves is a tree whose contents are ranges of that partition. What
//! enters the author is a tree; what leaves is a block map over the tree's sources and one block of metadata in memory.
//! No file content is read by either.
//!
//! The format is that of the kernel's `Documentation/filesystems/ext4`: little endian, offsets in bytes from the start
//! of the structure, blocks counted from the start of the volume. The reader decodes every structure itself, in a module
//! each, and takes checksums from the `mkext4` library, which also lays out new volumes; none of its types leave this
//! module, so that it can be replaced.
//!
//! [`read`] and [`read_some`], for queries, take what the kernel mounts: blocks of 1 to 64 KiB, extents and block maps,
//! and all features but compression, `dirdata` and those it does not know; it may ignore unknown ones that only a writer
//! must know. A journal that needs recovery is replayed in memory; one with fast commits, or on another device, is refused.
//! Deleted but open files are not part of the tree. Names are taken as they stand, casefolded ones too; a volume with an
//! encrypted file is refused, as neither its names nor its contents could be told. Attributes that system calls do not show,
//! those of encryption, fs-verity and inline data, are left out.
//!
//! [`read_base`], for a bake, refuses by name what an authored volume would not carry over: quotas, project ids, case
//! folding, fs-verity, encryption, unknown features, the flags immutable and append-only; and a volume that was not left
//! clean. The author writes blocks of 4096 bytes, whatever the base's are.
//!
//! Where we are stricter than the kernel: link counts, `.` and `..`, entry types and name uniqueness must agree; every
//! block of a file must lie inside the volume; all blocks of a directory must be there; checksums are verified wherever the
//! volume has them. No block belongs to two inodes (files may share them where the feature `shared_blocks` says so), no inode table
//! to two groups. Values of attributes in inodes end at 64 KiB, shared attributes at 128 MiB for all inodes together, names
//! at two million, their paths at 128 MiB: a hostile volume costs no more than an honest one.
//!
//! What is not carried over: access, change and creation times (the author sets all to the modification time), inode
//! numbers and generations, and the `chattr` flags that only advise (no-dump, no-atime and such). An empty `/lost+found`
//! is not part of a tree, as each author makes its own; one that holds something is read, so that it can be looked at, and
//! refused by the author.

mod acl;
mod error;
mod corruption;
mod features;
mod superblock;
mod groups;
mod free;
mod journal;
mod inodes;
mod xattrs;
mod inline;
mod extents;
mod indirect;
mod mapping;
mod directory;
mod blocks;
mod read;
mod author;

pub use author::{AuthorError, Refusal, Size, Stats, Volume, VolumeOptions, author};
pub use corruption::{
    AclFault, AttributeFault, Corruption, DirectoryFault, InodeFault, JournalFault, MappingFault, VolumeFault,
};
pub use error::{Place, ReadError};
pub use free::free_ranges;
pub use read::{Reach, Want, read, read_base, read_some};
pub use superblock::{FileSystem, probe};

/// The only block size that is written, in bytes.
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
