//! vmbake turns a Debian cloud image and a pinned manifest into a golden disk image.
//!
//! Each module of the first list is a room. `pin` makes manifests out of `sources.json`; from there each stage takes only the
//! result of the one before it: `Manifest -> Fetched -> Artifact -> Staged -> Tree -> Volume -> Disk -> Written`.

// Rooms. None uses one that comes later in this list.
pub mod image;
pub mod supply;
#[cfg(feature = "aws")]
pub mod aws;
pub mod pin;
pub mod fetch;
pub mod layer;
pub mod user_data;
pub mod profile;
pub mod compose;
pub mod query;
pub mod incremental;
pub mod release;
pub mod bake;
pub mod distribute;
pub mod machine;
pub mod cli;

// The vocabulary of all rooms.
pub mod address;
pub mod atomic_file;
pub mod catalog;
mod content_id;
pub mod digest;
pub mod elf;
pub mod embedded;
pub mod escape;
pub mod hint;
mod input;
pub mod manifest;
mod memo;
pub mod oci;
pub mod ownership;
pub mod parallel;
pub mod package_request;
pub mod progress;
pub mod qcow2_compression;
pub mod relation;
mod spelling;
pub mod upstream;

#[cfg(test)]
#[path = "../tests/tools/mod.rs"]
mod tools;
