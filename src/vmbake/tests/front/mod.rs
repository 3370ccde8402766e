//! The command line with nothing but the program: help, examples, reference, completions, and its output
//! when something is missing.

#[path = "../../examples/reference/sections.rs"]
mod sections;
mod examples;
#[cfg(all(feature = "aws", feature = "profile", feature = "qemu", feature = "report", feature = "sysext"))]
mod reference;
mod completions;
mod errors;
mod read_only;
#[cfg(all(feature = "aws", feature = "profile", feature = "qemu", feature = "report", feature = "sysext"))]
mod snapshots;
mod messages;
mod progress;
