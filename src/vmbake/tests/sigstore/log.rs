//! A signer with a key and a transparency log with one entry, so that a bundle has only the flaws that a test introduces.

use serde_json::{Value, json};
use sigstore_verify::crypto::{KeyPair, sha256};
use sigstore_verify::types::{SignatureBytes, pae};
use vmbake_common::digest::Digest;
use vmbake_proof::sigstore::{BundlePolicy, PublicKey, Signer, SigstoreRoot};

/// When the log saw every signature: 2026-01-02T03:04:05Z.
pub const TIME: i64 = 1_767_323_045;

pub struct World {
    signer: KeyPair,
    log: KeyPair,
}

impl World {
    pub fn new() -> Self {
        let key = || KeyPair::generate_ecdsa_p256().unwrap();
        Self { signer: key(), log: key() }
    }

    pub fn root(&self) -> SigstoreRoot {
        let public = self.log.public_key_der().unwrap();
        let root = json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [{
                "baseUrl": "https://log.test.invalid",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": public.to_base64(), "keyDetails": "PKIX_ECDSA_P256_SHA_256"},
                "logId": {"keyId": sha256(public.as_bytes()).to_base64()},
            }],
        });
        SigstoreRoot::parse(root.to_string().as_bytes()).unwrap()
    }

    /// What accepts every good bundle of this signer.
    pub fn policy(&self) -> BundlePolicy<'static> {
        let pem = self.signer.public_key_der().unwrap().to_pem();
        BundlePolicy {
            signer: Signer::Key(PublicKey::from_pem(pem.as_bytes()).unwrap()),
            predicate_type: None,
            subject_name: None,
            now: jiff::Timestamp::from_second(TIME).unwrap(),
        }
    }

    /// A signature over a file.
    pub fn message(&self, file: &[u8]) -> Value {
        let (digest, signature) = (sha256(file), self.signer.sign(file).unwrap());
        let record = json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": digest.to_hex()}},
                "signature": {"content": signature.to_base64(), "publicKey": {"content": self.pem()}},
            },
        });
        let content = json!({
            "messageDigest": {"algorithm": "SHA2_256", "digest": digest.to_base64()},
            "signature": signature.to_base64(),
        });
        self.bundle("hashedrekord", &record, "messageSignature", &content)
    }

    /// A signed statement.
    pub fn statement(&self, payload_type: &str, payload: &str) -> Value {
        let signature = self.signer.sign(&pae(payload_type, payload.as_bytes())).unwrap();
        let record = json!({
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": sha256(b"").to_hex()},
                "payloadHash": {"algorithm": "sha256", "value": sha256(payload.as_bytes()).to_hex()},
                "signatures": [{"signature": signature.to_base64(), "verifier": self.pem()}],
            },
        });
        let content = json!({
            "payloadType": payload_type,
            "payload": base64(payload.as_bytes()),
            "signatures": [{"sig": signature.to_base64()}],
        });
        self.bundle("dsse", &record, "dsseEnvelope", &content)
    }

    fn pem(&self) -> String {
        base64(self.signer.public_key_der().unwrap().to_pem().as_bytes())
    }

    /// Version 0.1, which may have the log's promise alone.
    fn bundle(&self, kind: &str, record: &Value, name: &str, content: &Value) -> Value {
        let body = base64(record.to_string().as_bytes());
        let id = sha256(self.log.public_key_der().unwrap().as_bytes());
        let hex = id.to_hex();
        let promised = format!(r#"{{"body":"{body}","integratedTime":{TIME},"logID":"{hex}","logIndex":7}}"#);
        let promise = self.log.sign(promised.as_bytes()).unwrap().to_base64();
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1",
            "verificationMaterial": {
                "publicKey": {"hint": ""},
                "tlogEntries": [{
                    "logIndex": "7",
                    "logId": {"keyId": id.to_base64()},
                    "kindVersion": {"kind": kind, "version": "0.0.1"},
                    "integratedTime": TIME.to_string(),
                    "inclusionPromise": {"signedEntryTimestamp": promise},
                    "canonicalizedBody": body,
                }],
            },
            name: content,
        })
    }
}

pub fn digests(file: &[u8]) -> [Digest; 2] {
    [Digest::of(file), Digest::Sha512([0; 64]).of_stream(file).unwrap().0]
}

pub fn base64(bytes: &[u8]) -> String {
    SignatureBytes::from_bytes(bytes).to_base64()
}
