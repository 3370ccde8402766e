//! Messages in the cleartext signature framework (RFC 9580, section 7).

use std::io::Read as _;

use jiff::Timestamp;
use sequoia_openpgp::parse::Parse as _;
use sequoia_openpgp::parse::stream::{
    GoodChecksum, MessageLayer, MessageStructure, VerificationError, VerificationHelper, VerifierBuilder,
};
use sequoia_openpgp::types::SignatureType;
use sequoia_openpgp::{Cert, KeyHandle};

use super::keyring::{self, KeyState, Keyring};
use super::{CLOCK_SKEW, policy, system_time};
use vmbake_common::hint::Hint;

/// Maximum size of a message in bytes: the largest InRelease of Debian has 0.3 MB. The verifier buffers twice as much
/// until it has checked the signatures, so it never returns unverified text.
const MAX_LEN: usize = 8 << 20;
const BEGIN: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";
const END: &str = "-----END PGP SIGNATURE-----";

/// Why a message was rejected.
#[derive(Debug, thiserror::Error)]
pub enum OpenPgpError {
    #[error("{found} bytes, more than the limit of {MAX_LEN} for a signed message")]
    TooLarge {
        /// Its length in bytes.
        found: usize,
    },
    #[error("line {line}: {fault}")]
    Framing {
        /// The line number, from 1.
        line: usize,
        fault: FramingFault,
    },
    #[error("corrupt message")]
    Corrupt { source: Box<dyn std::error::Error + Send + Sync> },
    #[error("not a clearsigned message with one layer of signatures")]
    Structure,
    #[error("bad signature: {reason}")]
    BadSignature { reason: String },
    #[error("no valid signature of a trusted key: {}", if .found.is_empty() { "not signed".to_owned() } else { .found.join("; ") })]
    Untrusted {
        /// Why each signature was ignored.
        found: Vec<String>,
    },
}

impl Hint for OpenPgpError {}

/// Invalid framing of a signed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingFault {
    #[error("NUL or carriage return")]
    Binary,
    #[error("not the start of a clearsigned message")]
    Begin,
    #[error("a header other than Hash")]
    Header,
    #[error("unescaped dash in the signed text")]
    Dash,
    #[error("a second block among the signatures")]
    SecondBlock,
    #[error("text after the signature")]
    After,
    #[error("truncated before the end of the signature")]
    Truncated,
}

impl Hint for FramingFault {}

/// A text signed by trusted keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clearsigned {
    /// The signed text, with dash escapes removed.
    pub text: String,
    /// Fingerprints of the trusted primary keys with a good signature, upper-case hexadecimal, sorted.
    pub signers: Vec<String>,
    /// The time of the last signature.
    pub signed: Timestamp,
}

impl Clearsigned {
    /// Verifies a message with the keys of `keyring` as of `now`.
    pub fn verify(message: &[u8], keyring: &Keyring, now: Timestamp) -> Result<Self, OpenPgpError> {
        check_framing(message)?;
        let policy = policy(now);
        let helper = SignatureVerifier::new(keyring, now, None);
        let corrupt = |source: sequoia_openpgp::anyhow::Error| OpenPgpError::Corrupt { source: source.into() };
        let latest = now.saturating_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
        let mut verifier = VerifierBuilder::from_bytes(message)
            .map_err(corrupt)?
            .buffer_size(2 * MAX_LEN)
            .with_policy(&policy, system_time(latest), helper)
            .map_err(corrupt)?;
        let mut text = Vec::new();
        verifier.read_to_end(&mut text).map_err(|source| OpenPgpError::Corrupt { source: source.into() })?;
        if verifier.processing_csf_message() != Some(true) || !verifier.message_processed() {
            return Err(OpenPgpError::Structure);
        }
        let (signers, signed) = verifier.into_helper().signers()?;
        let text = String::from_utf8(text).map_err(|source| OpenPgpError::Corrupt { source: source.into() })?;
        Ok(Self { text, signers, signed })
    }
}

/// The result for one signature.
#[derive(Debug)]
enum SignatureResult {
    /// Valid, by this trusted key, made at that time.
    Good(String, Timestamp),
    /// Ignored: the key is unknown or no longer trusted.
    Ignored(String),
    /// Invalid, by a known key.
    Bad(String),
}

/// Collects the results; they are evaluated together at the end.
pub(super) struct SignatureVerifier<'a> {
    keyring: &'a Keyring,
    now: Timestamp,
    /// The only accepted type of signature, if restricted.
    only: Option<SignatureType>,
    one_layer: bool,
    results: Vec<SignatureResult>,
}

impl VerificationHelper for SignatureVerifier<'_> {
    fn get_certs(&mut self, ids: &[KeyHandle]) -> sequoia_openpgp::Result<Vec<Cert>> {
        Ok(self.keyring.with_keys(ids))
    }

    fn check(&mut self, structure: MessageStructure<'_>) -> sequoia_openpgp::Result<()> {
        let mut layers = structure.into_iter();
        if let (Some(MessageLayer::SignatureGroup { results }), None) = (layers.next(), layers.next()) {
            self.one_layer = true;
            self.results = results
                .iter()
                .map(|result| match result {
                    Ok(good) if self.only.is_some_and(|only| good.sig.typ() != only) => SignatureResult::Bad(format!(
                        "a signature of type {}, not over the bytes of a file",
                        good.sig.typ()
                    )),
                    Ok(good) => key_status(good, self.now),
                    Err(error) => refusal(error),
                })
                .collect();
        }
        Ok(())
    }
}

impl<'a> SignatureVerifier<'a> {
    pub(super) fn new(keyring: &'a Keyring, now: Timestamp, only: Option<SignatureType>) -> Self {
        Self { keyring, now, only, one_layer: false, results: Vec::new() }
    }

    /// The signers, and the time of the last signature.
    pub(super) fn signers(self) -> Result<(Vec<String>, Timestamp), OpenPgpError> {
        if !self.one_layer {
            return Err(OpenPgpError::Structure);
        }
        let (mut signers, mut ignored, mut last) = (Vec::new(), Vec::new(), Timestamp::MIN);
        for result in self.results {
            match result {
                SignatureResult::Good(fingerprint, made) => {
                    signers.push(fingerprint);
                    last = last.max(made);
                }
                SignatureResult::Ignored(reason) => ignored.push(reason),
                SignatureResult::Bad(reason) => return Err(OpenPgpError::BadSignature { reason }),
            }
        }
        signers.sort();
        signers.dedup();
        if signers.is_empty() { Err(OpenPgpError::Untrusted { found: ignored }) } else { Ok((signers, last)) }
    }
}

/// Checks whether the key of a good signature is still valid.
fn key_status(good: &GoodChecksum<'_>, now: Timestamp) -> SignatureResult {
    let cert = good.ka.cert();
    let (fingerprint, key) = (cert.fingerprint().to_hex(), good.ka.key().fingerprint());
    // Every valid signature has a time (RFC 9580, section 5.2.3.11).
    let made = good.sig.signature_creation_time().and_then(|time| Timestamp::try_from(time).ok());
    let Some(made) = made else { return SignatureResult::Bad("signature without a creation time".to_owned()) };
    if keyring::is_withdrawn(cert, &key, now) {
        return SignatureResult::Ignored(format!("key {} of {fingerprint} is revoked", key.to_hex()));
    }
    match keyring::state(cert, now) {
        KeyState::Live if keyring::can_sign(cert, &key, now) => SignatureResult::Good(fingerprint, made),
        KeyState::Live => {
            SignatureResult::Ignored(format!("key {} of {fingerprint} is expired or revoked", key.to_hex()))
        }
        state => SignatureResult::Ignored(format!("key {fingerprint} is {state}")),
    }
}

fn refusal(error: &VerificationError<'_>) -> SignatureResult {
    match error {
        VerificationError::MissingKey { sig } => {
            let issuer = sig.get_issuers().first().map_or_else(|| "unnamed".to_owned(), KeyHandle::to_hex);
            SignatureResult::Ignored(format!("unknown key {issuer}"))
        }
        // The key of a signature of a future version or type cannot be identified.
        VerificationError::UnknownSignature { .. } => {
            SignatureResult::Ignored("a signature of an unknown type".to_owned())
        }
        VerificationError::UnboundKey { cert, error, .. } => {
            SignatureResult::Ignored(format!("key {}: {}", cert.fingerprint().to_hex(), error.root_cause()))
        }
        VerificationError::BadKey { ka, error, .. } => {
            SignatureResult::Ignored(format!("key {}: {}", ka.cert().fingerprint().to_hex(), error.root_cause()))
        }
        VerificationError::BadSignature { ka, error, .. } => {
            SignatureResult::Bad(format!("key {}: {}", ka.cert().fingerprint().to_hex(), error.root_cause()))
        }
        VerificationError::MalformedSignature { error, .. } => {
            SignatureResult::Bad(format!("malformed: {}", error.root_cause()))
        }
        other => SignatureResult::Bad(other.to_string()),
    }
}

/// Checks that the message is a single signed block, so that no parser sees another text than the verifier: BEGIN in
/// the first line, only `Hash` headers, escaped dashes, one block of signatures, nothing after it.
fn check_framing(message: &[u8]) -> Result<(), OpenPgpError> {
    if message.len() > MAX_LEN {
        return Err(OpenPgpError::TooLarge { found: message.len() });
    }
    let mut part = Part::Begin;
    for (index, line) in message.split(|byte| *byte == b'\n').enumerate() {
        let framing = |fault| OpenPgpError::Framing { line: index + 1, fault };
        if line.iter().any(|byte| matches!(byte, 0 | b'\r')) {
            return Err(framing(FramingFault::Binary));
        }
        part = part.next(line).map_err(framing)?;
    }
    let end = message.iter().filter(|byte| **byte == b'\n').count() + 1;
    if part == Part::After { Ok(()) } else { Err(OpenPgpError::Framing { line: end, fault: FramingFault::Truncated }) }
}

/// The part of a message that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Begin,
    Headers,
    Text,
    Signature,
    After,
}

impl Part {
    /// The part of the line after `line`.
    fn next(self, line: &[u8]) -> Result<Self, FramingFault> {
        let is = |text: &str| line == text.as_bytes();
        match self {
            Self::Begin if is(BEGIN) => Ok(Self::Headers),
            Self::Begin => Err(FramingFault::Begin),
            Self::Headers if line.is_empty() => Ok(Self::Text),
            Self::Headers if is_hash_header(line) => Ok(self),
            Self::Headers => Err(FramingFault::Header),
            Self::Text if is(SIGNATURE) => Ok(Self::Signature),
            Self::Text if line.starts_with(b"-") && !line.starts_with(b"- ") => Err(FramingFault::Dash),
            Self::Signature if is(END) => Ok(Self::After),
            Self::Signature if line.starts_with(b"-") => Err(FramingFault::SecondBlock),
            Self::Text | Self::Signature => Ok(self),
            Self::After if line.is_empty() => Ok(self),
            Self::After => Err(FramingFault::After),
        }
    }
}

fn is_hash_header(line: &[u8]) -> bool {
    let names = line.strip_prefix(b"Hash: ").unwrap_or_default();
    !names.is_empty() && names.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b',' | b' ' | b'-'))
}
