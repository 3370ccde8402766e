//! OpenPGP (RFC 9580): verifies a clearsigned message or a detached signature with a keyring; returns the signed text
//! and the signers.
//!
//! Stricter than the specification and gpg: no text is allowed outside the signed block, a key must be valid at the
//! time of the check (not only when it signed) and must never have been revoked, and a bad signature by a known key
//! invalidates the message even if another one is good. Signatures by unknown keys are ignored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use sequoia_openpgp::policy::{HashAlgoSecurity, StandardPolicy};
use sequoia_openpgp::types::HashAlgorithm;

pub use clearsigned::{Clearsigned, FramingFault, OpenPgpError};
pub use detached::FileSignature;
pub use keyring::{Key, KeyState, Keyring, KeyringError};

mod clearsigned;
mod detached;
mod keyring;

/// Seconds of 2026-01-01: algorithms that were weak by then are always weak. An older time of the check must not
/// re-enable MD5, SHA-1 and short keys.
const WEAKNESS_AS_OF: i64 = 1_767_225_600;

/// Tolerance for a signer's clock that is ahead.
pub const CLOCK_SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// The algorithms accepted at `now`.
fn policy(now: Timestamp) -> StandardPolicy<'static> {
    StandardPolicy::at(seconds(now.as_second().max(WEAKNESS_AS_OF)))
}

/// The algorithms accepted at `now` for self-signatures. Keyrings are pinned byte by byte, so an attack needs a second
/// preimage, which is infeasible even for SHA-1. Signatures over files and messages require collision resistance.
fn self_signed(now: Timestamp) -> StandardPolicy<'static> {
    let mut policy = policy(now);
    policy.accept_hash_property(HashAlgorithm::SHA1, HashAlgoSecurity::SecondPreImageResistance);
    policy
}

fn system_time(time: Timestamp) -> SystemTime {
    seconds(time.as_second())
}

/// Times before 1970 become 1970: no key is that old.
fn seconds(unix: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0))
}
