//! Integration tests, compared with real tools, as a single test binary that is linked once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod apt;
mod archive;
mod base;
#[cfg(feature = "qemu")]
mod boot;
mod bundle;
mod catalog;
mod changelog;
mod closure;
mod convert;
mod credentials;
mod delta;
mod disks;
mod download;
mod elf;
mod escape;
mod firstboot;
#[path = "../../bake/tests/fixtures.rs"]
mod fixtures;
mod front;
mod hostile;
mod images;
mod inputs;
mod inspect_image;
mod layers;
mod origin;
mod parsers;
mod plan;
mod preflight;
#[cfg(feature = "profile")]
mod profile;
mod program;
mod prove;
mod publish;
mod registry;
mod release;
#[cfg(feature = "report")]
mod report;
mod requested;
mod sbom;
mod sigstore;
mod sources;
mod tools;
mod transfer;
mod trust;
mod user_data;
mod verify;
mod version;
