//! Tests of disk images against the real tools of their fields, as one program: it is built and linked once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail by panicking")]

mod assemble_disks;
mod common;
mod cpio_author;
mod ext4_author;
mod ext4_dump;
mod ext4_features;
mod ext4_free;
mod ext4_hostile;
mod ext4_journal;
mod ext4_kernel;
mod ext4_roundtrip;
mod fat_volumes;
mod gpt_tables;
mod image_foreign;
mod image_hostile;
mod image_qcow2;
mod image_tools;
mod layouts;
mod linux_paths;
mod mbr_tables;
mod overlays;
mod skip;
mod squashfs_author;
mod tar_author;
mod tools;
mod verity_trees;
mod write_disk;
