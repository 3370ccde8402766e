//! What a release says of itself, and whether that is true.
//!
//! The inputs and digests of a bake enter, and leave as a statement that others can check ([`provenance`]). A private key ([`key`])
//! and the outputs become signatures beside them ([`sign`]). Whoever
//! gets a release checks all of it ([`verify`]), and says what he demands ([`policy`]).

pub mod provenance;
pub mod sums;
pub mod key;
pub mod sign;
pub mod policy;
pub mod verify;

use std::io;
use std::path::Path;

use vmbake_common::input;

/// A file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    input::read(path, limit)
}
