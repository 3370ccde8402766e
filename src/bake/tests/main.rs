//! Tests of bakes: what artifacts, packages and their scripts may put into an image, through all stages up to the merged tree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod bake_inputs;
mod fixtures;
mod maintainer;
#[path = "../../vmbake/tests/program.rs"]
mod program;
#[path = "../../vmbake/tests/tools/mod.rs"]
mod tools;
