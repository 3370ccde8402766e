//! Finishes a baked image on its first boot.
fn main() {}
