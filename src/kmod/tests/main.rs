//! Tests of the whole crate, over trees in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail by panicking")]

mod tree;
mod transcript;
mod hostile;
