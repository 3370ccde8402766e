//! Why a signature is not believed.

use jiff::Timestamp;

use crate::digest::Digest;

/// Why a signature is not believed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum SigstoreError {
    #[error("trusted root: {reason}")]
    Root { reason: String },
    #[error("public key: {reason}")]
    Key { reason: String },
    #[error("no SHA-256 of the artifact is known")]
    NoDigest,
    #[error("bundle is corrupt: {reason}")]
    Corrupt { reason: String },
    #[error("bundle is not supported: {what}")]
    Unsupported { what: String },
    #[error("there is no bundle in the file")]
    Empty,
    #[error("the bundle speaks of other files, not of {digest}")]
    OtherFile { digest: Digest },
    #[error("the subject with the artifact's digest is named {found:?}, expected {expected:?}")]
    SubjectName { expected: String, found: Vec<String> },
    #[error("predicate type is {found:?}, expected {expected:?}")]
    PredicateType { expected: String, found: String },
    #[error("the bundle is a signature without a statement, and one is asked for")]
    NoStatement,
    #[error("signed by {:?}, expected {expected:?}", .found.as_deref().unwrap_or("nobody"))]
    Identity { expected: String, found: Option<String> },
    #[error("identity vouched for by {:?}, expected {expected:?}", .found.as_deref().unwrap_or("nobody"))]
    Issuer { expected: String, found: Option<String> },
    #[error("certificate: {reason}")]
    Certificate { reason: String },
    #[error("signed at {signed}, which is after the time of the check, {now}")]
    Future { signed: Timestamp, now: Timestamp },
    #[error("the signature is not proven")]
    Refused { source: Box<sigstore_verify::Error> },
    #[error("none of {count} bundles proves the artifact; line {line} comes closest")]
    NoneOf { count: usize, line: usize, source: Box<SigstoreError> },
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
