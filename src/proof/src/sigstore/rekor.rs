//! Responses of a Rekor v1 log, from which bundles are created for signatures without one.
//!
//! Formats: `openapi.yaml` of sigstore/rekor. `POST /api/v1/index/retrieve` with `{"hash": "sha256:<hex>"}` returns
//! identifiers ([`uuids`]); `GET /api/v1/log/entries/<uuid>` returns an entry ([`LoggedEntry::parse`]). Anyone can add
//! entries for the digest of any file, so only the entry for the signature and the certificate at hand applies
//! ([`Detached::find`]). Nothing is verified here: that is done by [`super::verify`].
//!
//! [`Detached::find`]: crate::cosign::Detached::find

use serde_json::Value;
use sigstore_verify::rekor::{LogEntry, RekorEntryBody};
use sigstore_verify::types::{CanonicalizedBody, DerCertificate, KindVersion, SignatureBytes, TransparencyLogEntry};
use vmbake_common::hint::Hint;

use super::json;

/// An invalid response of Rekor.
#[derive(Debug, thiserror::Error)]
#[error("corrupt response of the transparency log: {reason}")]
pub struct RekorError {
    reason: String,
}

impl Hint for RekorError {}

impl RekorError {
    fn new(reason: impl ToString) -> Self {
        Self { reason: reason.to_string() }
    }
}

/// The identifiers in a response of the index, safe for use in a URL: 64 or 80 hexadecimal digits.
pub fn uuids(answer: &[u8]) -> Result<Vec<String>, RekorError> {
    let uuids: Vec<String> = serde_json::from_slice(answer).map_err(RekorError::new)?;
    match uuids.iter().find(|uuid| !is_uuid(uuid)) {
        Some(uuid) => Err(RekorError::new(format!("invalid entry identifier {uuid:?}"))),
        None => Ok(uuids),
    }
}

/// Whether a text is an entry identifier: 64 or 80 hexadecimal digits.
pub fn is_uuid(text: &str) -> bool {
    matches!(text.len(), 64 | 80) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The stable part of a response with one entry: the entry with the log's promise, keys sorted. The inclusion proof,
/// which grows with the log, is left out, so that later requests yield the same bytes.
pub fn lasting(answer: &[u8]) -> Result<Vec<u8>, RekorError> {
    let value = json::parse(answer).map_err(RekorError::new)?;
    let entry = match &value {
        Value::Object(members) if members.len() == 1 && !members.contains_key("body") => members.values().next(),
        _ => Some(&value),
    };
    let Some(entry) = entry.filter(|entry| entry["verification"]["signedEntryTimestamp"].is_string()) else {
        return Err(RekorError::new("expected one entry with a signedEntryTimestamp"));
    };
    let kept =
        ["body", "integratedTime", "logID", "logIndex"].into_iter().map(|key| (key.to_owned(), entry[key].clone()));
    let mut kept: serde_json::Map<String, Value> = kept.collect();
    let promise = &entry["verification"]["signedEntryTimestamp"];
    kept.insert("verification".to_owned(), serde_json::json!({ "signedEntryTimestamp": promise }));
    kept.sort_keys();
    serde_json::to_vec(&kept).map_err(RekorError::new)
}

/// An entry of the log, as returned.
#[derive(Clone, Debug)]
pub struct LoggedEntry(LogEntry);

impl LoggedEntry {
    /// Parses the entries of a response: `{<uuid>: <entry>, …}`, or an entry alone.
    pub fn parse(answer: &[u8]) -> Result<Vec<Self>, RekorError> {
        let value = json::parse(answer).map_err(RekorError::new)?;
        let entries = match value {
            Value::Object(members) if members.contains_key("body") => vec![Value::Object(members)],
            Value::Object(members) => members.into_iter().map(|(_, entry)| entry).collect(),
            _ => return Err(RekorError::new("expected an object")),
        };
        let read = |entry| serde_json::from_value(entry).map(Self).map_err(RekorError::new);
        entries.into_iter().map(read).collect()
    }

    /// Whether this entry is for this signature and certificate.
    pub(in super::super) fn is_of(&self, signature: &SignatureBytes, certificate: &DerCertificate) -> bool {
        let Some(RekorEntryBody::HashedRekordV001(body)) = record(&self.0.body) else { return false };
        let logged = &body.spec.signature;
        logged.content == *signature && logged.public_key.parse_certificate().is_ok_and(|logged| logged == *certificate)
    }

    /// The entry in the form that bundles use.
    pub(in super::super) fn to_bundle_entry(&self) -> Result<TransparencyLogEntry, RekorError> {
        self.0.to_bundle_entry(KindVersion::HashedRekordV001).map_err(RekorError::new)
    }
}

/// The body of an entry for a signature over a digest; the log has other types, too.
fn record(body: &CanonicalizedBody) -> Option<RekorEntryBody> {
    let value = json::parse(body.as_bytes()).ok()?;
    if value["kind"] != "hashedrekord" || value["apiVersion"] != "0.0.1" {
        return None;
    }
    RekorEntryBody::parse(body, KindVersion::HashedRekordV001).ok()
}
