//! Inspection of disk images: partitions, file systems and boot configuration.
//!
//! Base images and baked images are handled alike, with the readers of `vmbake-disk`. This crate writes nothing.

pub mod elf;
pub mod filesystem;
pub mod disk;
pub mod grub;
pub mod inspect;
pub mod identity;
