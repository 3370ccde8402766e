//! Releases: provenance, signing keys, and modifications of signed outputs.

pub mod lab;
mod provenance;
mod keys;
mod archives;
mod attacks;
mod demands;
mod rebuild;
