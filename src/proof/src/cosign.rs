//! Signatures of cosign that were published without a bundle: `.sig` and `.cert` beside the file.
//!
//! The two files, the answer of a transparency log, the digests of the artifact, a policy, a trusted root and a time
//! enter; who signed it and when leaves. `.sig` is base64 of the signature; `.cert` is PEM, or base64 of PEM as on
//! dl.k8s.io, of one certificate.
//!
//! With an entry of the log the three become a bundle that [`super::sigstore`] verifies; it is the evidence that makes
//! the signature verifiable offline from then on. An entry that is given must hold. Without one the signature is
//! refused, unless the policy allows that; then everything but the time is checked, as of the certificate's first
//! second, and the result has neither time nor log index nor bundle: nothing says when it was signed, so neither that
//! the certificate was still valid then.

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

/// What a signature must prove.
#[derive(Clone, Copy, Debug)]
pub struct DetachedPolicy<'a> {
    /// Subject alternative name of the certificate, compared byte by byte.
    pub identity: &'a str,
    /// OIDC issuer of the certificate, compared byte by byte.
    pub issuer: &'a str,
    /// Whether a signature without an entry of the log is believed, though nothing proves when it was made.
    pub allow_no_log: bool,
    /// Time of the check.
    pub now: Timestamp,
}

/// Why a signature is not believed.
#[derive(Debug, thiserror::Error)]
pub enum CosignError {
    #[error("signature is corrupt: {reason}")]
    Signature { reason: String },
    #[error("certificate is corrupt: {reason}")]
    Certificate { reason: String },
    #[error("log entry cannot be used")]
    Entry { source: RekorError },
    #[error("the log entry is of another signature or certificate")]
    OtherEntry,
    #[error(transparent)]
    Sigstore(#[from] SigstoreError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for CosignError {
    vmbake_common::causes!(Sigstore, Message; Entry);
}

/// A signature and the certificate of its key.
#[derive(Clone, Debug)]
pub struct Detached {
    signature: SignatureBytes,
    certificate: DerCertificate,
}

impl Detached {
    /// Reads the contents of `.sig` and `.cert`.
    pub fn parse(signature: &[u8], certificate: &[u8]) -> Result<Self, CosignError> {
        let text = std::str::from_utf8(signature.trim_ascii());
        let text = text.map_err(|error| CosignError::Signature { reason: error.to_string() })?;
        let signature = SignatureBytes::from_base64(text);
        let signature = signature.map_err(|error| CosignError::Signature { reason: error.to_string() })?;
        if signature.is_empty() {
            return Err(CosignError::Signature { reason: "it is empty".to_owned() });
        }
        let certificate = parse_certificate(certificate).map_err(|reason| CosignError::Certificate { reason })?;
        Ok(Self { signature, certificate })
    }

    /// The entry of this signature and certificate among those of an answer of the log. Others may have logged anything
    /// under the digest of the artifact, so an answer without such an entry is no error.
    pub fn find(&self, answer: &[u8]) -> Result<Option<LoggedEntry>, RekorError> {
        Ok(LoggedEntry::parse(answer)?.into_iter().find(|entry| entry.is_of(&self.signature, &self.certificate)))
    }

    /// Proves an artifact, known by its SHA-256, with the answer of the log for this signature, if there is one.
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
        let bundle = bundle
            .to_json()
            .map_err(|error| CosignError::Message(message!("log entry and signature make no bundle: {error}")))?;
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
            return Err(CosignError::Message(Message::new("no log entry proves when the signature was made")));
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

    /// Version 0.3 where the log has proven inclusion, as it does today; with a mere promise only version 0.1 is valid.
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

/// One certificate and nothing else: of several, or of text around it, a reader may pick what another does not see.
fn parse_certificate(bytes: &[u8]) -> Result<DerCertificate, String> {
    let text =
        |bytes: &[u8]| std::str::from_utf8(bytes.trim_ascii()).map(str::to_owned).map_err(|error| error.to_string());
    let mut pem = text(bytes)?;
    if !pem.starts_with(BEGIN) {
        let decoded = PemContent::from_base64(&pem).map_err(|error| format!("neither PEM nor base64: {error}"))?;
        pem = text(decoded.as_bytes())?;
    }
    if !pem.starts_with(BEGIN) || !pem.ends_with(END) || pem.matches("-----BEGIN").count() != 1 {
        return Err("it is not one PEM certificate alone".to_owned());
    }
    DerCertificate::from_pem(&pem).map_err(|error| error.to_string())
}
