//! Signatures without a log entry: the signer can be proven, the time cannot.
//!
//! Sigstore certificates are valid for minutes, and only the log proves that a signature was made within them. Without
//! it, a key leaked later goes unnoticed; accepting such signatures is the user's decision. Everything else is checked
//! as of the start of the certificate's validity: chain, signed certificate timestamp, identity, issuer, signature.
//!
//! The library verifies a certificate only at a signed time. The time is provided by a log with a single-use key, the
//! only log in a copy of the trusted root: it attests the certificate's `notBefore`, and its signatures do not leave
//! this module.

use serde_json::{Value, json};
use sigstore_verify::crypto::{KeyPair, parse_certificate_info};
use sigstore_verify::rekor::HashedRekord;
use sigstore_verify::types::bundle::X509Certificate;
use sigstore_verify::types::{
    Bundle, CanonicalizedBody, DerCertificate, InclusionPromise, KindVersion, LogId, LogIndex, LogKeyId, MediaType,
    MessageSignature, Sha256Hash, SignatureBytes, SignatureContent, SignedTimestamp, TransparencyLogEntry,
    VerificationMaterial, VerificationMaterialContent,
};
use sigstore_verify::{VerificationPolicy, VerificationResult};

use super::{SigstoreError, SigstoreRoot};

/// Checks everything that does not require a log.
pub(in super::super) fn verify(
    sha256: &Sha256Hash,
    signature: &SignatureBytes,
    certificate: &DerCertificate,
    policy: &VerificationPolicy,
    root: &SigstoreRoot,
) -> Result<VerificationResult, SigstoreError> {
    let invalid = |error: &dyn std::fmt::Display| SigstoreError::Certificate { reason: error.to_string() };
    let info = parse_certificate_info(certificate).map_err(|error| invalid(&error))?;
    let log = Log::new().map_err(|error| invalid(&error))?;
    let record = serde_json::to_vec(&HashedRekord::new(sha256, signature, certificate));
    let body = CanonicalizedBody::new(record.map_err(|error| invalid(&error))?);
    let entry = log.entry(body, info.not_before).map_err(|error| invalid(&error))?;
    let chain = VerificationMaterialContent::X509CertificateChain {
        certificates: vec![X509Certificate::new(certificate.clone())],
    };
    let bundle = Bundle::new(
        MediaType::Bundle0_1,
        VerificationMaterial::new(chain).with_tlog_entries(vec![entry]),
        SignatureContent::MessageSignature(MessageSignature::new(signature.clone())),
    );
    let root = log.replaces_those_of(root)?;
    root.verifier.verify(sha256, &bundle, &policy.clone().skip_tlog_unsafe()).map_err(super::refused)
}

/// A log with one entry.
struct Log {
    key: KeyPair,
    public: Vec<u8>,
    id: Sha256Hash,
}

impl Log {
    fn new() -> Result<Self, sigstore_verify::crypto::Error> {
        let key = KeyPair::generate_ecdsa_p256()?;
        let public = key.public_key_der()?.into_bytes();
        let id = sigstore_verify::crypto::sha256(&public);
        Ok(Self { key, public, id })
    }

    /// The entry, with an inclusion promise for that time (Rekor's `signedEntryTimestamp`).
    fn entry(
        &self,
        body: CanonicalizedBody,
        time: jiff::Timestamp,
    ) -> Result<TransparencyLogEntry, sigstore_verify::crypto::Error> {
        let (text, seconds, id) = (body.to_base64(), time.as_second(), self.id.to_hex());
        let payload = format!(r#"{{"body":"{text}","integratedTime":{seconds},"logID":"{id}","logIndex":0}}"#);
        let promise = SignedTimestamp::new(self.key.sign(payload.as_bytes())?.into_bytes());
        let id = LogId::new(LogKeyId::from_bytes(self.id.as_slice()));
        let entry = TransparencyLogEntry::new(LogIndex::default(), id, KindVersion::HashedRekordV001, body);
        Ok(entry.with_integrated_time(time).with_inclusion_promise(InclusionPromise::new(promise)))
    }

    /// A trusted root with this log as its only one.
    fn replaces_those_of(&self, root: &SigstoreRoot) -> Result<SigstoreRoot, SigstoreError> {
        let invalid = |error: serde_json::Error| SigstoreError::Root { reason: error.to_string() };
        let mut json: Value = serde_json::from_str(&root.json).map_err(invalid)?;
        let public = SignatureBytes::from_bytes(&self.public).to_base64();
        json["tlogs"] = json!([{
            "baseUrl": "",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {"rawBytes": public, "keyDetails": "PKIX_ECDSA_P256_SHA_256"},
            "logId": {"keyId": self.id.to_base64()},
        }]);
        SigstoreRoot::parse(&serde_json::to_vec(&json).map_err(invalid)?)
    }
}
