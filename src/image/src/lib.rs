//! Disk images as they are found: a file enters, what is on its partitions and how it boots leaves.
//!
//! Base images and baked ones are read alike, by the readers of `vmbake-disk`. Nothing is written here.

pub mod elf;
pub mod filesystem;
pub mod disk;
pub mod grub;
pub mod inspect;
pub mod identity;
