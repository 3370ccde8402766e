//! Disk images as bytes: what enters is a base image and file trees, what leaves is a disk.
//!
//! The modules stand in the order in which a byte passes them: a disk image is opened (`image`), its partitions
//! (`layout`, from `gpt` or `mbr`) and file systems (`ext4`, `fat`) are read into a [`tree::Tree`], a tree becomes a [`ext4::Volume`], and
//! volumes become a [`disk::Disk`] that is written as raw or qcow2 (`write`).
//!
//! Nothing here knows a network, a clock or a random number. Whatever is read is hostile: sizes and offsets are
//! checked before they are used, and no input may cause a panic.

pub mod source;
pub mod tree;
pub mod image;
pub mod gpt;
pub mod mbr;
pub mod fat;
pub mod ext4;
pub mod signature;
pub mod layout;
pub mod disk;
pub mod write;
