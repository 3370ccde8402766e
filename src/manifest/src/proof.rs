//! Proofs of artifact digests, as recorded in manifests.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;

/// The proof of a pinned digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Proof {
    /// A file of the user on this machine.
    Local,
    /// None: trust on first download.
    FirstUse,
    /// The digest stated in the layer that requests the artifact.
    Stated,
    /// A checksum file from the same site.
    Checksum {
        /// Its URL.
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Digest>,
    },
    /// The signed index of an apt repository.
    Apt {
        /// Name of the archive in `sources.json`.
        archive: String,
        /// Codename or suite of its `InRelease`.
        suite: String,
        /// `Date` of that `InRelease`.
        date: Timestamp,
        /// Fingerprints of the trusted keys that signed it, upper-case hexadecimal, sorted.
        signers: Vec<String>,
        /// Time of the last signature, or `date` if that is later. Replaying the proof checks the keys as of then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<Timestamp>,
        /// The `InRelease`, or the `Release` and its signature `Release.gpg`; then the index of packages.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        evidence: Vec<Digest>,
        /// The snapshot that it comes from; `None` for the archive itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<ArchiveSnapshot>,
    },
    /// A detached OpenPGP signature over the file.
    Openpgp {
        /// File of `trust/` with the keys.
        keyring: String,
        /// Fingerprints of the trusted keys that signed it, upper-case hexadecimal, sorted.
        signers: Vec<String>,
        /// Time of the last signature. Replaying the proof checks the keys as of then.
        signed: Timestamp,
        evidence: Vec<Digest>,
    },
    Sigstore(Signed),
    /// `.sig` and `.cert` of cosign.
    Cosign(Signed),
}

/// A snapshot of an archive: a copy of a past state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSnapshot {
    /// The requested time.
    pub at: Timestamp,
    /// Time of the copy, which is part of its URL: the last one at or before `at`.
    pub copied: Timestamp,
    /// `Valid-Until` of its `InRelease`, which was not enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
}

impl fmt::Display for ArchiveSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snapshot of {}, requested for {}", self.copied, self.at)?;
        match self.valid_until {
            Some(until) => write!(f, ", Valid-Until {until} not enforced"),
            None => Ok(()),
        }
    }
}

/// A signature with a short-lived sigstore certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The signer: the certificate's subject alternative name.
    pub identity: String,
    /// The OIDC issuer of that identity.
    pub issuer: String,
    /// Index of the entry in the transparency log, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_index: Option<u64>,
    /// When the log or a timestamp authority recorded the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Timestamp>,
    /// The bundle; for cosign: signature, certificate and, if any, log entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_more")]
    pub evidence: Vec<Digest>,
}

/// A document used as evidence: as it is pinned, under its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its URL.
    pub url: String,
    /// Its length in bytes.
    pub size: u64,
    /// The part of the response that is kept.
    #[serde(default, skip_serializing_if = "Form::is_whole")]
    pub form: Form,
}

/// The part of a response that is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// All of it.
    #[default]
    Whole,
    /// The entry of a transparency log, without parts that change as the log grows (see
    /// `vmbake_proof::sigstore::rekor::lasting`).
    LogEntry,
}

impl Form {
    fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// Manifests of earlier versions contain a single digest, of the bundle.
fn one_or_more<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Digest>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        One(Digest),
        More(Vec<Digest>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::One(digest) => vec![digest],
        Either::More(digests) => digests,
    })
}

impl Proof {
    /// The evidence of the proof.
    pub fn evidence(&self) -> &[Digest] {
        match self {
            Self::Local | Self::FirstUse | Self::Stated => &[],
            Self::Checksum { evidence, .. } => evidence.as_slice(),
            Self::Apt { evidence, .. } | Self::Openpgp { evidence, .. } => evidence,
            Self::Sigstore(signed) | Self::Cosign(signed) => &signed.evidence,
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("a local file"),
            Self::FirstUse => f.write_str("the first download"),
            Self::Stated => f.write_str("the SHA-256 stated in its layer"),
            Self::Checksum { url, .. } => write!(f, "checksum file {url}"),
            Self::Apt { archive, suite, date, signers, snapshot, .. } => {
                write!(f, "archive {archive}, {suite} of {date}, signed by {}", signers.join(", "))?;
                snapshot.iter().try_for_each(|snapshot| write!(f, ", {snapshot}"))
            }
            Self::Openpgp { signers, signed, .. } => {
                write!(f, "OpenPGP signature by {}, {signed}", signers.join(", "))
            }
            Self::Sigstore(signed) => write!(f, "sigstore bundle by {signed}"),
            Self::Cosign(signed) => write!(f, "cosign signature by {signed}"),
        }
    }
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.identity, self.issuer)?;
        if let Some(index) = self.log_index {
            write!(f, ", log index {index}")?;
        }
        match self.signed {
            Some(signed) => write!(f, ", {signed}"),
            None => Ok(()),
        }
    }
}
