//! What a release says of itself, and whether that is true.
//!
//! The inputs and digests of a bake enter, and leave as a statement that others can check ([`provenance`]).
pub mod provenance;
