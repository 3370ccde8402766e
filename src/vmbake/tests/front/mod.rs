//! The command line as somebody meets it who has nothing but the program: help, examples, reference, completions, and what it says
//! when something is missing.

#[path = "../../examples/reference/sections.rs"]
mod sections;
mod examples;
mod reference;
mod completions;
mod errors;
mod read_only;
mod snapshots;
mod progress;
