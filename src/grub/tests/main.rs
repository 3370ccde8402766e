//! Tests of GRUB's core image and of new disks against the tools of GRUB, dosfstools, mtools and gdisk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail by panicking")]

mod core_image;
mod menu;
mod new_disk;
#[path = "../../disk/tests/skip.rs"]
mod skip;
#[path = "../../disk/tests/tools/mod.rs"]
mod tools;
mod trees;
