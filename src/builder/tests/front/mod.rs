//! The command line as somebody meets it who has nothing but the program: help, examples, reference,
//! completions.

#[path = "../../examples/reference/sections.rs"]
mod sections;
mod examples;
mod reference;
mod completions;
