//! The program: turns arguments into requests, and results into text or JSON.
//!
//! `docs/architecture.md` describes the data flow through the crates.

pub mod cli;
pub mod sync;
