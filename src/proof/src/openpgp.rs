//! OpenPGP (RFC 9580): a keyring and a clearsigned message, or a file with a detached signature, enter; the signed text and the signers leave.
//!
//! Stricter than the specification and than gpg: nothing may stand outside the signed block, every key must be alive
//! at the time of the check (not only when it signed) and never revoked since, and a signature of a known key that does not
//! hold condemns the message even where another one holds. Signatures of unknown keys say nothing, good or bad.

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

/// Seconds of 2026-01-01: what counts as weak is judged at least as of then. An older time of the check must not bring
/// MD5, SHA-1 and short keys back.
const WEAKNESS_AS_OF: i64 = 1_767_225_600;

/// How far the clock of a signer may be ahead of ours.
pub const CLOCK_SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// Which algorithms are strong enough at `now`.
fn policy(now: Timestamp) -> StandardPolicy<'static> {
    StandardPolicy::at(seconds(now.as_second().max(WEAKNESS_AS_OF)))
}

/// Which algorithms are strong enough at `now` for what the owner of a key says of it. Keyrings are pinned with all their bytes, so that only another
/// statement with the digest of this one could take its place: SHA-1 still rules that out. A signature over a file or message needs more.
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
