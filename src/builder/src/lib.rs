//! vmbake turns a Debian cloud image and a pinned manifest into a golden disk image.
//!
//! The modules stand in the order in which a byte passes them. Those up to `update` make manifests out of `sources.json`. From
//! there each stage takes only the result of the one before it:
//! `Manifest -> Fetched -> Artifact -> Staged -> Tree -> Volume -> Disk -> Written`.

pub mod sources;
pub mod anchors;
pub mod trust;
pub mod http;
pub mod ownership;
mod stamp;
pub mod store;
pub mod download;
pub mod elf;
pub mod proof;
pub mod registry;
pub mod boot;
pub mod resolve;
pub mod prove;
pub mod update;
pub mod manifest;
pub mod fetch;
pub mod verify;
pub mod layer;
pub mod first_boot;
pub mod images;
pub mod stage;
pub mod inputs;
pub mod merge;
pub mod origin;
pub mod publish;
pub mod sums;
pub mod record;
mod again;
pub mod bake;

pub mod cli;
pub mod diff;
pub mod embedded;
pub mod escape;
pub mod hint;
pub mod inspect;
pub mod lint;
pub mod machine;
mod memo;
mod named;
pub mod parallel;
pub mod progress;
pub mod user_data;

#[cfg(test)]
#[path = "../tests/tools/mod.rs"]
mod tools;
