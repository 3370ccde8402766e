//! The command line of vmbake.
fn main() {}
