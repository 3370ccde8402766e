//! Signatures of cosign without a bundle: a `.sig` and a `.cert` file.
//!
//! Verifies both files with the response of a transparency log, the digests of the artifact, a policy, a trusted root
//! and a time; returns the signer and the time of signing. `.sig` is the signature in base64; `.cert` is a single
//! certificate in PEM, or base64 of PEM as on dl.k8s.io.
//!
//! With a log entry, they are converted to a bundle that [`super::sigstore`] verifies; it is the evidence for later
//! offline verification. An invalid entry is an error. Without an entry, the signature is refused unless the policy
//! allows it; then everything except the time is checked, as of the start of the certificate's validity, and the result
//! has neither time nor log index nor bundle: the time of signing is unknown, and the certificate may have expired by
//! then.

use jiff::Timestamp;
use sigstore_verify::VerificationPolicy;
use sigstore_verify::types::bundle::X509Certificate;
use sigstore_verify::types::{
    Bundle, CertificateContent, DerCertificate, HashAlgorithm, MediaType, MessageDigest, MessageSignature, PemContent,
    Sha256Hash, SignatureBytes, SignatureContent, TransparencyLogEntry, VerificationMaterial,
    VerificationMaterialContent,
};
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;

use super::sigstore::rekor::{LoggedEntry, RekorError};
use super::sigstore::{self, Proven, Signer, SigstoreError, SigstoreRoot, certificate, unlogged};
use vmbake_common::digest::Digest;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The requirements for a signature.
#[derive(Clone, Copy, Debug)]
pub struct DetachedPolicy<'a> {
    /// Subject alternative name of the certificate, compared byte by byte.
    pub identity: &'a str,
    /// OIDC issuer of the certificate, compared byte by byte.
    pub issuer: &'a str,
    /// Whether to accept a signature without a log entry, whose time is unproven.
    pub allow_no_log: bool,
    pub now: Timestamp,
}

/// Why a signature was rejected.
#[derive(Debug, thiserror::Error)]
pub enum CosignError {
    #[error("corrupt signature: {reason}")]
    Signature { reason: String },
    #[error("corrupt certificate: {reason}")]
    Certificate { reason: String },
    #[error("invalid log entry")]
    Entry { source: RekorError },
    #[error("the log entry is for another signature or certificate")]
    OtherEntry,
    #[error(transparent)]
    Sigstore(#[from] SigstoreError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for CosignError {
    vmbake_common::causes!(Sigstore, Message; Entry);
}

/// A signature and its certificate.
#[derive(Clone, Debug)]
pub struct Detached {
    signature: SignatureBytes,
    certificate: DerCertificate,
}

impl Detached {
    /// Parses the contents of `.sig` and `.cert`.
    pub fn parse(signature: &[u8], certificate: &[u8]) -> Result<Self, CosignError> {
        let text = std::str::from_utf8(signature.trim_ascii());
        let text = text.map_err(|error| CosignError::Signature { reason: error.to_string() })?;
        let signature = SignatureBytes::from_base64(text);
        let signature = signature.map_err(|error| CosignError::Signature { reason: error.to_string() })?;
        if signature.is_empty() {
            return Err(CosignError::Signature { reason: "empty file".to_owned() });
        }
        let certificate = parse_certificate(certificate).map_err(|reason| CosignError::Certificate { reason })?;
        Ok(Self { signature, certificate })
    }

    /// The entry for this signature and certificate in a response of the log. A response without one is not an error:
    /// the log may contain other entries for the same digest, which anyone can add.
    pub fn find(&self, answer: &[u8]) -> Result<Option<LoggedEntry>, RekorError> {
        Ok(LoggedEntry::parse(answer)?.into_iter().find(|entry| entry.is_of(&self.signature, &self.certificate)))
    }

    /// Verifies the signature over an artifact with the given SHA-256, and the log entry if there is one.
    pub fn verify(
        &self,
        artifact: &[Digest],
        answer: Option<&[u8]>,
        policy: &DetachedPolicy<'_>,
        root: &SigstoreRoot,
    ) -> Result<Proven, CosignError> {
        let (_, sha256) = sigstore::statement::sha256(artifact)?;
        let Some(answer) = answer else { return self.verify_unlogged(&sha256, policy, root) };
        let entry = self.find(answer).map_err(|source| CosignError::Entry { source })?;
        let entry = entry.ok_or(CosignError::OtherEntry)?.to_bundle_entry();
        let bundle = self.bundle(&sha256, entry.map_err(|source| CosignError::Entry { source })?);
        let bundle = bundle.to_json().map_err(|error| {
            CosignError::Message(message!("cannot create a bundle from log entry and signature: {error}"))
        })?;
        let policy = sigstore::BundlePolicy {
            signer: Signer::Certificate { identity: policy.identity.to_owned(), issuer: policy.issuer.to_owned() },
            predicate_type: None,
            subject_name: None,
            now: policy.now,
        };
        Ok(sigstore::verify(bundle.as_bytes(), artifact, &policy, root)?)
    }

    fn verify_unlogged(
        &self,
        sha256: &Sha256Hash,
        policy: &DetachedPolicy<'_>,
        root: &SigstoreRoot,
    ) -> Result<Proven, CosignError> {
        if !policy.allow_no_log {
            return Err(CosignError::Message(Message::new("no log entry proves the time of signing")));
        }
        certificate::check(&self.certificate)?;
        let expected = VerificationPolicy::new(policy.identity, policy.issuer);
        let result = unlogged::verify(sha256, &self.signature, &self.certificate, &expected, root)?;
        sigstore::not_after(result.verified_timestamps(), policy.now)?;
        Ok(Proven {
            identity: result.identity().map(|name| name.as_str().to_owned()),
            issuer: result.issuer().map(str::to_owned),
            log_index: None,
            signed: None,
            predicate_type: None,
            bundle: None,
            statement: None,
        })
    }

    /// Version 0.3 if the entry has an inclusion proof, as logs provide today; version 0.1 for an inclusion promise
    /// only.
    fn bundle(&self, sha256: &Sha256Hash, entry: TransparencyLogEntry) -> Bundle {
        let (media_type, content) = match entry.inclusion_proof {
            Some(_) => {
                let certificate = CertificateContent::new(self.certificate.clone());
                (MediaType::Bundle0_3, VerificationMaterialContent::Certificate(certificate))
            }
            None => {
                let certificates = vec![X509Certificate::new(self.certificate.clone())];
                (MediaType::Bundle0_1, VerificationMaterialContent::X509CertificateChain { certificates })
            }
        };
        let digest = MessageDigest::new(HashAlgorithm::Sha2256, (*sha256).into());
        Bundle::new(
            media_type,
            VerificationMaterial::new(content).with_tlog_entries(vec![entry]),
            SignatureContent::MessageSignature(
                MessageSignature::new(self.signature.clone()).with_message_digest(digest),
            ),
        )
    }
}

/// Parses a single certificate without surrounding text: parsers could disagree on which of several applies.
fn parse_certificate(bytes: &[u8]) -> Result<DerCertificate, String> {
    let text =
        |bytes: &[u8]| std::str::from_utf8(bytes.trim_ascii()).map(str::to_owned).map_err(|error| error.to_string());
    let mut pem = text(bytes)?;
    if !pem.starts_with(BEGIN) {
        let decoded = PemContent::from_base64(&pem).map_err(|error| format!("neither PEM nor base64: {error}"))?;
        pem = text(decoded.as_bytes())?;
    }
    if !pem.starts_with(BEGIN) || !pem.ends_with(END) || pem.matches("-----BEGIN").count() != 1 {
        return Err("expected exactly one PEM certificate".to_owned());
    }
    DerCertificate::from_pem(&pem).map_err(|error| error.to_string())
}
