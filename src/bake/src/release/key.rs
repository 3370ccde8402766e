//! Signing keys: ECDSA P-256 with SHA-256, in PEM. Messages never contain parts of a key.
//!
//! A private key is PKCS#8 (RFC 5958), or the same encrypted in cosign's format (`cosign`). A public key is
//! SubjectPublicKeyInfo (RFC 5280), and its hint in bundles is the SHA-256 of its DER in Base64, as in cosign.
//! Signatures are deterministic (RFC 6979), in DER: the same key and bytes give the same signature.

mod cosign;
mod error;

use std::fmt;

use base64ct::{Base64, Encoding};
use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::elliptic_curve::rand_core::OsRng;
use p256::pkcs8::der::pem::{decode_label, decode_vec};
use p256::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding, ObjectIdentifier, PrivateKeyInfo};
use zeroize::Zeroizing;

pub use error::KeyError;
use vmbake_common::digest::Digest;

/// Maximum size of a key.
pub const MAX_KEY: u64 = 64 << 10;

const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

/// Names of unsupported key types, for messages.
const NAMES: [(&str, &str); 7] = [
    ("1.2.840.113549.1.1.1", "RSA"),
    ("1.2.840.113549.1.1.10", "RSA-PSS"),
    ("1.3.101.112", "Ed25519"),
    ("1.3.101.113", "Ed448"),
    ("1.3.132.0.34", "ECDSA with P-384"),
    ("1.3.132.0.35", "ECDSA with P-521"),
    ("1.3.132.0.10", "ECDSA with secp256k1"),
];

pub struct PrivateKey(SecretKey);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

impl PrivateKey {
    /// Generates a key from the randomness of the system.
    pub fn generate() -> Self {
        Self(SecretKey::random(&mut OsRng))
    }

    /// Parses PEM; calls `password` if the key is encrypted.
    pub fn from_pem(pem: &[u8], password: impl FnOnce() -> Option<Zeroizing<Vec<u8>>>) -> Result<Self, KeyError> {
        let label = decode_label(pem).map_err(|error| KeyError::Pem { reason: error.to_string() })?;
        let is_encrypted = match label {
            "PRIVATE KEY" => false,
            "ENCRYPTED SIGSTORE PRIVATE KEY" | "ENCRYPTED COSIGN PRIVATE KEY" => true,
            "PUBLIC KEY" => return Err(KeyError::Public),
            "EC PRIVATE KEY" | "RSA PRIVATE KEY" | "ENCRYPTED PRIVATE KEY" => {
                return Err(KeyError::Packing { found: label.to_owned() });
            }
            _ => return Err(KeyError::Label),
        };
        let (_, content) = decode_vec(pem).map_err(|error| KeyError::Pem { reason: error.to_string() })?;
        let content = Zeroizing::new(content);
        match is_encrypted {
            false => Self::from_der(&content),
            true => Self::from_der(&cosign::decrypt(&content, &password().ok_or(KeyError::NoPassword)?)?),
        }
    }

    fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let info = PrivateKeyInfo::try_from(der).map_err(|_| KeyError::Corrupt)?;
        let algorithm = info.algorithm.oid;
        let curve = if algorithm == EC { info.algorithm.parameters_oid().ok() } else { None };
        match curve {
            Some(P256) => SecretKey::try_from(info).map(Self).map_err(|_| KeyError::Corrupt),
            other => {
                let oid = other.unwrap_or(algorithm).to_string();
                let name = NAMES.iter().find(|(known, _)| *known == oid).map(|(_, name)| (*name).to_owned());
                Err(KeyError::Algorithm { found: name.unwrap_or(oid) })
            }
        }
    }

    /// PKCS#8, PEM.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        self.0.to_pkcs8_pem(LineEnding::LF).map_err(|_| KeyError::Corrupt)
    }

    /// The public key, SubjectPublicKeyInfo in PEM.
    pub fn public_pem(&self) -> Result<String, KeyError> {
        self.0.public_key().to_public_key_pem(LineEnding::LF).map_err(|_| KeyError::Corrupt)
    }

    /// The hint for the public key in bundles.
    pub fn hint(&self) -> Result<String, KeyError> {
        let der = self.0.public_key().to_public_key_der().map_err(|_| KeyError::Corrupt)?;
        Ok(hint(der.as_bytes()))
    }

    /// Signs the SHA-256 of `message`.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: DerSignature = SigningKey::from(&self.0).sign(message);
        signature.as_bytes().to_vec()
    }
}

/// The hint for a public key in bundles, given its SubjectPublicKeyInfo.
pub fn hint(der: &[u8]) -> String {
    match Digest::of(der) {
        Digest::Sha256(bytes) => Base64::encode_string(&bytes),
        Digest::Sha512(bytes) => Base64::encode_string(&bytes),
    }
}
