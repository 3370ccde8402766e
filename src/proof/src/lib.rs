//! The verification chains: from pinned keys and authorities in `trust/` to the digest of an artifact.
//!
//! Does not open sockets or read the clock, and does not know the origin of files: takes bytes, trust anchors and the
//! time of the check, and returns the proof or the reason for the rejection.

pub mod openpgp;
pub mod apt;
pub mod checksum;
pub mod sigstore;
pub mod cosign;
pub mod program;
