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

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// A file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|len| len <= limit) {
        return Ok(content);
    }
    Err(io::Error::new(ErrorKind::FileTooLarge, format!("has more than the {limit} bytes that are read")))
}
