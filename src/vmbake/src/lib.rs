//! The program: arguments become requests, results become text or JSON.
//!
//! `docs/architecture.md` has the way of a byte through the crates.

pub mod cli;
pub mod sync;
