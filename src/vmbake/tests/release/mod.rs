//! Releases: the provenance that a bake writes, the keys that sign, and everything that somebody may change in what was signed.

pub mod lab;
mod provenance;
mod keys;
mod attacks;
mod demands;
mod rebuild;
