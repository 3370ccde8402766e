//! Why a signature is not believed.

use jiff::Timestamp;

use vmbake_common::digest::Digest;

/// Why a signature is not believed.
#[derive(Debug, thiserror::Error)]
pub enum SigstoreError {
    /// The trusted root cannot be used.
    #[error("trusted root: {reason}")]
    Root { reason: String },
    /// The key cannot be used.
    #[error("public key: {reason}")]
    Key { reason: String },
    /// Bundles know artifacts by SHA-256.
    #[error("no SHA-256 of the artifact is known")]
    NoDigest,
    /// The bundle cannot be parsed.
    #[error("bundle is corrupt: {reason}")]
    Corrupt {
        /// What its parser says, or what is wrong with the statement.
        reason: String,
    },
    /// The bundle is of a kind that is not judged.
    #[error("bundle is not supported: {what}")]
    Unsupported { what: String },
    /// No line of the file is a bundle.
    #[error("there is no bundle in the file")]
    Empty,
    /// The bundle is about something else.
    #[error("the bundle speaks of other files, not of {digest}")]
    OtherFile { digest: Digest },
    /// The statement calls the artifact otherwise.
    #[error("the subject with the artifact's digest is named {found:?}, expected {expected:?}")]
    SubjectName {
        /// The name that is asked for.
        expected: String,
        found: Vec<String>,
    },
    /// The statement says something else of the artifact.
    #[error("predicate type is {found:?}, expected {expected:?}")]
    PredicateType {
        /// The type that is asked for.
        expected: String,
        found: String,
    },
    /// A type or name is asked for, which only statements have.
    #[error("the bundle is a signature without a statement, and one is asked for")]
    NoStatement,
    /// Somebody else has signed.
    #[error("signed by {:?}, expected {expected:?}", .found.as_deref().unwrap_or("nobody"))]
    Identity {
        expected: String,
        /// Who has, where the certificate says so.
        found: Option<String>,
    },
    /// Somebody else says who has signed.
    #[error("identity vouched for by {:?}, expected {expected:?}", .found.as_deref().unwrap_or("nobody"))]
    Issuer {
        expected: String,
        /// Who says it, where the certificate does.
        found: Option<String>,
    },
    /// Another key has signed.
    #[error("signed by the key {found:?}, expected {expected:?}")]
    OtherKey {
        /// The hint of the key that is asked for.
        expected: String,
        /// The hint that the bundle has.
        found: String,
    },
    /// The key did not sign that.
    #[error("the signature is not of this key over these bytes")]
    Signature,
    /// The certificate cannot be used.
    #[error("certificate: {reason}")]
    Certificate {
        /// What its parser says, or what is wrong with it.
        reason: String,
    },
    /// It was signed in the future: a clock is wrong.
    #[error("signed at {signed}, which is after the time of the check, {now}")]
    Future {
        /// When the log says that it was signed.
        signed: Timestamp,
        now: Timestamp,
    },
    /// Signature, certificate or log entry do not hold.
    #[error("the signature is not proven")]
    Refused {
        /// What the library of sigstore says.
        source: Box<sigstore_verify::Error>,
    },
    /// None of several bundles will do.
    #[error("none of {count} bundles proves the artifact; line {line} comes closest")]
    NoneOf {
        count: usize,
        /// The line of the one that comes closest.
        line: usize,
        source: Box<SigstoreError>,
    },
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
