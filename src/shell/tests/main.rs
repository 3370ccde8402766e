//! Judged by the real dash and the programs of the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests fail by panicking")]

#[path = "../../disk/tests/skip.rs"]
mod skip;
mod host;
mod snippets;
mod bash;
mod errors;
mod limits;
mod awk;
mod property;
mod capabilities;
mod random;
mod seam;
mod judge;
mod generated;
mod judged;
