//! Signatures by a known key, without log, timestamp or certificate.
//!
//! Such a key proves the signer, but not the time: its owner can sign at any time. The sigstore library rejects bundles
//! without a log or a timestamp, so only its cryptography is used here. Log entries in the bundle are ignored.

use sigstore_verify::crypto::{KeyAlgorithm, SigningScheme, VerificationKey, sha256};
use sigstore_verify::types::bundle::VerificationMaterialContent;
use sigstore_verify::types::{Bundle, DerPublicKey, SignatureContent};
use vmbake_common::message::Message;

use super::{SigstoreError, statement};
use vmbake_common::digest::Digest;

/// Fails unless `key`, an ECDSA P-256 key, has signed the artifact, or the statement in the bundle.
pub(super) fn verify(bundle: &Bundle, artifact: &[Digest], key: &DerPublicKey) -> Result<(), SigstoreError> {
    let unusable = |error: sigstore_verify::crypto::Error| SigstoreError::Key { reason: error.to_string() };
    check_key(key)?;
    let VerificationMaterialContent::PublicKey(named) = &bundle.verification_material.content else {
        return Err(SigstoreError::Unsupported { what: "a certificate instead of a key".to_owned() });
    };
    let expected = sha256(key.as_bytes()).to_base64();
    // The hint is unverified, but tells which key was meant.
    if !named.hint.is_empty() && named.hint != expected {
        return Err(SigstoreError::OtherKey { expected, found: named.hint.clone() });
    }
    let key = VerificationKey::from_spki_with_scheme(key, SigningScheme::EcdsaP256Sha256).map_err(unusable)?;
    let verified = match &bundle.content {
        SignatureContent::MessageSignature(message) => {
            let (_, digest) = statement::sha256(artifact)?;
            key.verify_prehashed(digest.as_slice(), &message.signature)
        }
        SignatureContent::DsseEnvelope(envelope) => key.verify(envelope.pae(), &envelope.signature.sig),
        _ => return Err(SigstoreError::Unsupported { what: "neither a signature nor an envelope".to_owned() }),
    };
    verified.map_err(|_| SigstoreError::Message(Message::new("the signature does not match this key and content")))
}

/// Fails unless it is an ECDSA P-256 key.
pub(super) fn check_key(key: &DerPublicKey) -> Result<(), SigstoreError> {
    let invalid = |reason: String| SigstoreError::Key { reason };
    match KeyAlgorithm::from_spki(key).map_err(|error| invalid(error.to_string()))? {
        KeyAlgorithm::EcdsaP256 => Ok(()),
        other => Err(invalid(format!("unsupported key type {other:?}, expected ECDSA P-256"))),
    }
}
