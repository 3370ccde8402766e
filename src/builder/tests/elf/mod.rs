//! ELF files: reading them, checking those of an image, and the dynamic linker's cache, with binutils and glibc as judges.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

mod parts;
mod reader;
mod programs;
mod loader;
mod ldcache;
