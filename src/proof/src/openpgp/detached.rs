//! Detached signatures (RFC 9580, section 10.4): verifies a signature over a file and returns the signers.
//!
//! Only binary signatures are accepted: a text signature also matches other line endings.

use std::io::Read;

use jiff::Timestamp;
use sequoia_openpgp::parse::Parse as _;
use sequoia_openpgp::parse::stream::DetachedVerifierBuilder;
use sequoia_openpgp::types::SignatureType;

use super::clearsigned::{OpenPgpError, SignatureVerifier};
use super::keyring::Keyring;
use super::{CLOCK_SKEW, self_signed, system_time};

/// Maximum length of a signature in bytes: one has less than a kilobyte.
const MAX_LEN: usize = 1 << 20;

/// The trusted signers of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSignature {
    /// Fingerprints of the trusted primary keys with a good signature, upper-case hexadecimal, sorted.
    pub signers: Vec<String>,
    /// The time of the last signature.
    pub signed: Timestamp,
}

impl FileSignature {
    /// Verifies an armored or binary signature over `file` with the keys of `keyring` as of `now`.
    pub fn verify(
        signature: &[u8],
        file: impl Read + Send + Sync,
        keyring: &Keyring,
        now: Timestamp,
    ) -> Result<Self, OpenPgpError> {
        if signature.len() > MAX_LEN {
            return Err(OpenPgpError::TooLarge { found: signature.len() });
        }
        let policy = self_signed(now);
        let corrupt = |source: sequoia_openpgp::anyhow::Error| OpenPgpError::Corrupt { source: source.into() };
        let latest = now.saturating_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        let helper = SignatureVerifier::new(keyring, now, Some(SignatureType::Binary));
        let mut verifier = DetachedVerifierBuilder::from_bytes(signature)
            .map_err(corrupt)?
            .with_policy(&policy, system_time(latest), helper)
            .map_err(corrupt)?;
        verifier.verify_reader(file).map_err(corrupt)?;
        let (signers, signed) = verifier.into_helper().signers()?;
        Ok(Self { signers, signed })
    }
}
