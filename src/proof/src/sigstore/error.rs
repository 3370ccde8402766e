//! Errors of sigstore verification.

use jiff::Timestamp;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

use vmbake_common::digest::Digest;

/// Why a signature was rejected.
#[derive(Debug, thiserror::Error)]
pub enum SigstoreError {
    #[error("trusted root: {reason}")]
    Root { reason: String },
    #[error("public key: {reason}")]
    Key { reason: String },
    #[error("SHA-256 of the artifact is unknown")]
    NoDigest,
    #[error("corrupt bundle: {reason}")]
    Corrupt {
        /// The message of the parser, or the fault in the statement.
        reason: String,
    },
    #[error("unsupported bundle: {what}")]
    Unsupported { what: String },
    #[error("no bundle in the file")]
    Empty,
    #[error("the bundle is for other files, not for {digest}")]
    OtherFile { digest: Digest },
    #[error("predicate type is {found:?}, expected {expected:?}")]
    PredicateType { expected: String, found: String },
    #[error("the bundle is a signature without the required statement")]
    NoStatement,
    #[error("signed by {:?}, expected {expected:?}", .found.as_deref().unwrap_or("nobody"))]
    Identity {
        expected: String,
        /// The signer, if the certificate names one.
        found: Option<String>,
    },
    #[error("signed by the key {found:?}, expected {expected:?}")]
    OtherKey {
        /// The hint of the expected key.
        expected: String,
        /// The hint in the bundle.
        found: String,
    },
    #[error("certificate: {reason}")]
    Certificate {
        /// The message of the parser, or the fault.
        reason: String,
    },
    #[error("signed at {signed}, after the time of the check, {now}")]
    Future {
        /// The time according to the log.
        signed: Timestamp,
        now: Timestamp,
    },
    #[error("signature verification failed")]
    Refused { source: Box<sigstore_verify::Error> },
    #[error("none of {count} bundles proves the artifact; the best match is in line {line}")]
    NoneOf {
        count: usize,
        /// The line number of the best match.
        line: usize,
        source: Box<SigstoreError>,
    },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for SigstoreError {
    vmbake_common::causes!(Message; NoneOf);
}

impl SigstoreError {
    /// How closely a bundle matches: used to choose which error of several bundles to report.
    pub(super) fn telling(&self) -> u8 {
        match self {
            Self::Corrupt { .. } | Self::Unsupported { .. } | Self::Empty => 0,
            Self::OtherFile { .. } => 1,
            Self::PredicateType { .. } | Self::NoStatement => 2,
            _ => 3,
        }
    }
}
