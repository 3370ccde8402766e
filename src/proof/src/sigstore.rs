//! Sigstore bundles: signatures with a short-lived certificate and an entry in a transparency log.
//!
//! [`verify`] takes a file of bundles, the digests of an artifact, a policy, a trusted root and a time; returns the
//! signer and the time of signing ([`Proven`]), or the reason for the rejection. Formats: sigstore protobuf-specs,
//! bundle 0.1 to 0.3 and trusted root 0.1; DSSE 1.0 with in-toto statements 0.1 and 1. A file holds one bundle, or one
//! per line: the first that proves the artifact applies.
//!
//! Guarantees: the certificate chains to an authority of the root and was valid at every signed time; its signed
//! certificate timestamp, the inclusion proof or promise of each log entry, the checkpoint, the timestamps and the
//! signature verify; identity and issuer are exactly those of the policy; the log entry is for this signature,
//! certificate and digest; the signature is over the artifact, or over a statement with its digest as a subject. The
//! crate sigstore-verify does this part.
//!
//! Stricter than that crate, and checked here: no JSON object has duplicate keys, and no bundle contains two
//! alternatives (`bundle`); the certificate has exactly one name and is consistent (`certificate`); type, predicate
//! type, subjects and, if requested, the subject's name match (`statement`).
//!
//! The time of the check is an upper bound: no signed time may be later. The crate also compares them with the
//! machine's clock, so a future time of the check does not relax anything. Nothing expires: certificates are valid for
//! minutes, and signatures made within them stay valid.

use jiff::Timestamp;
use sigstore_verify::trust_root::TrustedRoot;
use sigstore_verify::types::{Bundle, DerPublicKey, KindVersion};
use sigstore_verify::{PublicKeyVerificationPolicy, VerificationPolicy, Verifier};
use vmbake_common::message;

use vmbake_common::digest::Digest;
use vmbake_manifest::Signed;

mod bundle;
mod error;
mod keyed;
pub(super) mod certificate;
pub mod json;
pub mod rekor;
pub(super) mod statement;
pub(super) mod unlogged;

pub use error::SigstoreError;
use statement::Stated;

/// Maximum size of a file of bundles: those of releases with a hundred files have a few hundred KB.
pub const MAX_BUNDLES: u64 = 16 << 20;

/// A trusted root: trusted authorities and logs.
pub struct SigstoreRoot {
    verifier: Verifier,
    pub(super) json: String,
}

impl SigstoreRoot {
    /// Parses `trusted_root.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, SigstoreError> {
        let invalid = |reason: String| SigstoreError::Root { reason };
        let json = std::str::from_utf8(bytes).map_err(|error| invalid(error.to_string()))?;
        let root = TrustedRoot::from_json(json).map_err(|error| invalid(error.to_string()))?;
        let verifier = Verifier::new(&root).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { verifier, json: json.to_owned() })
    }
}

/// File of `trust/` with the authorities and logs of sigstore.
pub const ROOT: &str = "sigstore-root.json";

/// The required signer.
#[derive(Clone, Debug)]
pub enum Signer {
    /// A sigstore certificate for this identity.
    Certificate {
        /// Subject alternative name, compared byte by byte.
        identity: String,
        /// OIDC issuer, compared byte by byte.
        issuer: String,
    },
    /// A known key; the signature must be in a log.
    Key(PublicKey),
    /// A known key; the signature need not be in a log.
    KeyWithoutLog(PublicKey),
}

/// A public key in SubjectPublicKeyInfo form.
#[derive(Clone, Debug)]
pub struct PublicKey(DerPublicKey);

impl PublicKey {
    /// Parses `-----BEGIN PUBLIC KEY-----`.
    pub fn from_pem(bytes: &[u8]) -> Result<Self, SigstoreError> {
        let invalid = |reason: String| SigstoreError::Key { reason };
        let text = std::str::from_utf8(bytes).map_err(|error| invalid(error.to_string()))?;
        DerPublicKey::from_pem(text).map(Self).map_err(|error| invalid(error.to_string()))
    }

    /// Fails unless it is an ECDSA P-256 key: other keys require a log.
    pub fn require_p256(self) -> Result<Self, SigstoreError> {
        keyed::check_key(&self.0).map(|()| self)
    }

    /// SubjectPublicKeyInfo, DER.
    pub fn der(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The requirements for a bundle.
#[derive(Clone, Debug)]
pub struct BundlePolicy<'a> {
    pub signer: Signer,
    /// Required `predicateType` of the in-toto statement; a bare signature has none and is then refused.
    pub predicate_type: Option<&'a str>,
    /// Required name of the subject with the artifact's digest; a bare signature has none and is then refused.
    pub subject_name: Option<&'a str>,
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// Subject alternative name of the certificate; `None` if a key signed.
    pub identity: Option<String>,
    /// OIDC issuer of the certificate; `None` if a key signed.
    pub issuer: Option<String>,
    /// Index in the transparency log, if the log signed it.
    pub log_index: Option<u64>,
    /// The earliest time at which a log or a timestamp authority recorded the signature.
    pub signed: Option<Timestamp>,
    /// Type of the signed statement; `None` if the artifact itself was signed.
    pub predicate_type: Option<String>,
    /// The bundle that proves it: evidence to keep.
    pub bundle: Option<Vec<u8>>,
    /// The signed statement; `None` if the artifact itself was signed.
    pub statement: Option<Vec<u8>>,
}

impl Proven {
    /// The record for the manifest, with the evidence; `None` if a key signed.
    pub fn record(&self, evidence: Vec<Digest>) -> Option<Signed> {
        Some(Signed {
            identity: self.identity.clone()?,
            issuer: self.issuer.clone()?,
            log_index: self.log_index,
            signed: self.signed,
            evidence,
        })
    }
}

/// Verifies an artifact, given by its digests (SHA-256, and SHA-512 if subjects may have nothing else), with one of the
/// bundles of a file.
pub fn verify(
    bundles: &[u8],
    artifact: &[Digest],
    policy: &BundlePolicy<'_>,
    root: &SigstoreRoot,
) -> Result<Proven, SigstoreError> {
    let bundles = bundle::split(bundles)?;
    let count = bundles.len();
    let mut closest: Option<(usize, SigstoreError)> = None;
    for (line, bytes) in bundles {
        match verify_one(bytes, artifact, policy, root) {
            Ok(proven) => return Ok(proven),
            Err(error) if closest.as_ref().is_some_and(|(_, best)| best.telling() >= error.telling()) => {}
            Err(error) => closest = Some((line, error)),
        }
    }
    match closest {
        None => Err(SigstoreError::Empty),
        Some((_, error)) if count == 1 => Err(error),
        Some((line, error)) => Err(SigstoreError::NoneOf { count, line, source: Box::new(error) }),
    }
}

/// Checks the contents of a bundle before its signatures: that is cheaper, and tells which bundle was meant.
fn verify_one(
    bytes: &[u8],
    artifact: &[Digest],
    policy: &BundlePolicy<'_>,
    root: &SigstoreRoot,
) -> Result<Proven, SigstoreError> {
    let bundle = bundle::parse(bytes)?;
    let content = statement::check(&bundle, artifact, policy)?;
    if let Some(certificate) = bundle.signing_certificate() {
        certificate::check(certificate)?;
    }
    let result = match &policy.signer {
        Signer::Certificate { identity, issuer } => {
            let expected = VerificationPolicy::new(identity.as_str(), issuer.as_str());
            root.verifier.verify(content.digest, &bundle, &expected)
        }
        Signer::Key(key) => {
            let expected = PublicKeyVerificationPolicy::new(key.0.clone());
            root.verifier.verify(content.digest, &bundle, &expected)
        }
        Signer::KeyWithoutLog(key) => {
            keyed::verify(&bundle, artifact, &key.0)?;
            let Stated { predicate_type, statement, .. } = content;
            return Ok(Proven { predicate_type, statement, bundle: Some(bytes.to_owned()), ..Proven::default() });
        }
    };
    let result = result.map_err(refused)?;
    not_after(result.verified_timestamps(), policy.now)?;
    Ok(Proven {
        identity: result.identity().map(|name| name.as_str().to_owned()),
        issuer: result.issuer().map(str::to_owned),
        log_index: log_index(&bundle),
        signed: result.verified_timestamps().iter().min().copied(),
        predicate_type: content.predicate_type,
        bundle: Some(bytes.to_owned()),
        statement: content.statement,
    })
}

pub(super) fn not_after(times: &[Timestamp], now: Timestamp) -> Result<(), SigstoreError> {
    match times.iter().find(|time| **time > now) {
        Some(&signed) => Err(SigstoreError::Future { signed, now }),
        None => Ok(()),
    }
}

pub(super) fn refused(error: sigstore_verify::Error) -> SigstoreError {
    match error {
        sigstore_verify::Error::IdentityMismatch { expected, actual } => SigstoreError::Identity {
            expected: expected.to_string(),
            found: actual.map(|name| name.as_str().to_owned()),
        },
        sigstore_verify::Error::IssuerMismatch { expected, actual } => SigstoreError::Message(message!(
            "identity issued by {:?}, expected {expected:?}",
            actual.as_deref().unwrap_or("nobody")
        )),
        error => SigstoreError::Refused { source: Box::new(error) },
    }
}

/// In Rekor v1 only the promise signs the index of an entry, in Rekor v2 only the checkpoint.
fn log_index(bundle: &Bundle) -> Option<u64> {
    let entries = &bundle.verification_material.tlog_entries;
    let signed_for = entries
        .iter()
        .find(|entry| entry.inclusion_promise.is_some() || entry.kind_version == KindVersion::HashedRekordV002);
    signed_for.map(|entry| entry.log_index.get())
}
