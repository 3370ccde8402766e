//! Tests of the builder against the real tools of its field, as one program: it is built and linked once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail by panicking")]

mod apt;
mod bake_inputs;
mod base;
mod boot;
mod catalog;
mod changelog;
mod closure;
mod disks;
mod download;
mod elf;
mod escape;
mod firstboot;
mod front;
mod hostile;
mod images;
mod inspect_image;
mod layers;
mod maintainer;
mod names;
mod origin;
mod parsers;
mod plan;
mod prove;
mod registry;
mod release;
mod requested;
mod rooms;
mod sbom;
mod siblings;
mod sigstore;
mod tools;
mod trust;
mod user_data;
mod verify;
mod version;
