//! Releases: provenance, signatures and verification.
//!
//! The inputs and digests of a bake become a verifiable statement ([`provenance`]). A private key ([`key`]) signs the
//! outputs ([`sign`]). Consumers verify a release ([`verify`]) according to a policy ([`policy`]).

pub mod provenance;
pub mod sums;
pub mod key;
pub mod sign;
pub mod policy;
pub mod verify;

use std::io;
use std::path::Path;

use vmbake_common::input;

/// Reads a file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    input::read(path, limit)
}
