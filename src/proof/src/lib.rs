//! The verification chains: what ties the digest of an artifact to a key or an authority that is pinned in `trust/`.
//!
//! Nothing here opens a socket, reads a clock or knows where a file came from: bytes, trust anchors and the time of the
//! check enter, and what was proven leaves, or the reason why not.

pub mod openpgp;
pub mod apt;
pub mod checksum;
pub mod sigstore;
pub mod cosign;
pub mod program;
