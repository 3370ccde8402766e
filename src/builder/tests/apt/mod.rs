//! The chain of an apt repository: repositories signed by gpg, a real archive, and what gpg and apt say of the same files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

mod command;
mod indexes;
pub mod lab;
mod real;
mod releases;
mod signatures;
