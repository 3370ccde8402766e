//! Shared by the other crates, and depends on none of them: digests, URLs, safe reading and replacing of files, hints,
//! progress.

pub mod address;
pub mod atomic_file;
pub mod catalog;
pub mod content_id;
pub mod digest;
pub mod glob;
pub mod semver;
pub mod escape;
pub mod hint;
pub mod message;
pub mod input;
pub mod once_map;
pub mod ownership;
pub mod parallel;
pub mod paths;
pub mod progress;
pub mod output_format;
pub mod qcow2_compression;
pub mod spelling;

#[cfg(test)]
#[path = "../../disk/tests/skip.rs"]
mod skip;
