//! Why a signature is not believed.

use jiff::Timestamp;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

use vmbake_common::digest::Digest;

/// Why a signature is not believed.
#[derive(Debug, thiserror::Error)]
pub enum SigstoreError {
    #[error("trusted root: {reason}")]
    Root { reason: String },
    #[error("public key: {reason}")]
    Key { reason: String },
    #[error("no SHA-256 of the artifact is known")]
    NoDigest,
    #[error("bundle is corrupt: {reason}")]
    Corrupt {
        /// What its parser says, or what is wrong with the statement.
        reason: String,
    },
    #[error("bundle is not supported: {what}")]
    Unsupported { what: String },
    #[error("there is no bundle in the file")]
    Empty,
    #[error("the bundle speaks of other files, not of {digest}")]
    OtherFile { digest: Digest },
    #[error("predicate type is {found:?}, expected {expected:?}")]
    PredicateType {
        /// The type that is asked for.
        expected: String,
        found: String,
    },
    #[error("the bundle is a signature without a statement, and one is asked for")]
    NoStatement,
    #[error("signed by {:?}, expected {expected:?}", .found.as_deref().unwrap_or("nobody"))]
    Identity {
        expected: String,
        /// Who has, where the certificate says so.
        found: Option<String>,
    },
    #[error("signed by the key {found:?}, expected {expected:?}")]
    OtherKey {
        /// The hint of the key that is asked for.
        expected: String,
        /// The hint that the bundle has.
        found: String,
    },
    #[error("certificate: {reason}")]
    Certificate {
        /// What its parser says, or what is wrong with it.
        reason: String,
    },
    #[error("signed at {signed}, which is after the time of the check, {now}")]
    Future {
        /// When the log says that it was signed.
        signed: Timestamp,
        now: Timestamp,
    },
    #[error("the signature is not proven")]
    Refused {
        /// What the library of sigstore says.
        source: Box<sigstore_verify::Error>,
    },
    #[error("none of {count} bundles proves the artifact; line {line} comes closest")]
    NoneOf {
        count: usize,
        /// The line of the one that comes closest.
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
    /// How much this says about the bundle that was meant, among those of several bundles of one file.
    pub(super) fn telling(&self) -> u8 {
        match self {
            Self::Corrupt { .. } | Self::Unsupported { .. } | Self::Empty => 0,
            Self::OtherFile { .. } => 1,
            Self::PredicateType { .. } | Self::NoStatement => 2,
            _ => 3,
        }
    }
}
