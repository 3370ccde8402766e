//! ext2, ext3 and ext4: reads volumes to a [`Tree`](crate::tree::Tree), and lays out a tree as a [`Volume`].
//!
//! The reader converts a partition to a tree whose contents are ranges of that partition. The author converts a tree to
//! a block map over the tree's sources and one block of metadata in memory. Neither reads file contents.
//!
//! The format is that of the kernel's `Documentation/filesystems/ext4`: little endian, offsets in bytes from the start
//! of the structure, blocks counted from the start of the volume. The reader decodes each structure in a separate
//! module, and uses the checksums of the `mkext4` library, which also lays out new volumes; none of its types are
//! public, so that it can be replaced.
//!
//! [`read`] and [`read_some`], for queries, accept what the kernel mounts: blocks of 1 to 64 KiB, extents and block
//! maps, and all features except compression, `dirdata` and unknown ones; unknown features that concern only writers
//! are ignored. A journal that needs recovery is replayed in memory; one with fast commits, or on another device, is
//! refused. Deleted but open files are not part of the tree. Names are kept as stored, including casefolded ones; a
//! volume with an encrypted file is refused, as its names and contents are unreadable. Attributes hidden from system
//! calls (encryption, fs-verity, inline data) are left out.
//!
//! [`read_base`], for a bake, refuses what an authored volume would lose: quotas, project IDs, case folding, fs-verity,
//! encryption, unknown features, the flags immutable and append-only; and a volume that is not clean. The author always
//! writes blocks of 4096 bytes.
//!
//! Stricter than the kernel: link counts, `.` and `..`, entry types and name uniqueness must be consistent; every block
//! of a file must be inside the volume; all blocks of a directory must exist; checksums are verified wherever the
//! volume has them. No block belongs to two inodes (except with the feature `shared_blocks`), no inode table to two
//! groups. Limits: 64 KiB for attribute values in inodes, 128 MiB for shared attributes of all inodes together, two
//! million names with paths of 128 MiB in total: a hostile volume costs no more than a regular one.
//!
//! Not preserved: access, change and creation times (set to the modification time), inode numbers and generations, and
//! advisory `chattr` flags (no-dump, no-atime and such). An empty `/lost+found` is not part of a tree, since each
//! author creates it; a non-empty one is read, so that it can be inspected, and refused by the author.

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
pub use error::{Location, ReadError};
pub use free::free_ranges;
pub use read::{Depth, Want, read, read_base, read_some};
pub use superblock::{FileSystem, probe};

/// The only block size written, in bytes.
const BLOCK: u64 = 4096;

/// The same, for buffers.
const BLOCK_LEN: usize = 4096;

/// Blocks that one bitmap block describes: the size of a block group.
const BLOCKS_PER_GROUP: u64 = 32768;

/// Maximum number of names of an inode (`EXT4_LINK_MAX`).
const LINK_MAX: u32 = 65_000;

/// The directory used by e2fsck; it is part of the volume, not of the tree.
const LOST_FOUND: &[u8] = b"lost+found";

/// A little-endian number at `at`; the caller has checked that it lies inside.
fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A little-endian number at `at`; the caller has checked that it lies inside.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
