//! Splits a file into bundles and parses them unambiguously.

use serde::de::IgnoredAny;
use serde_json::Value;
use sigstore_verify::types::Bundle;

use super::{MAX_BUNDLES, SigstoreError, json};

/// Maximum number of bundles in a file: each that covers the artifact takes a few milliseconds.
const MAX_LINES: usize = 1_000;
/// Maximum number of log entries and of timestamps in a bundle; real ones have one or two.
const MAX_EVIDENCE: usize = 32;

/// Alternatives of a bundle (`oneof` in its protobuf definition): the parent, and the members of which exactly one is
/// required.
const ALTERNATIVES: [(&str, &[&str]); 2] = [
    ("", &["messageSignature", "dsseEnvelope"]),
    ("/verificationMaterial", &["certificate", "x509CertificateChain", "publicKey"]),
];

/// The bundles of a file with their line numbers: a single JSON value, or one per line.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<(usize, &[u8])>, SigstoreError> {
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MAX_BUNDLES) {
        return Err(SigstoreError::Unsupported { what: format!("a file of more than {MAX_BUNDLES} bytes") });
    }
    let whole = bytes.trim_ascii();
    let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).enumerate();
    let lines: Vec<_> = lines.filter(|(_, line)| !line.is_empty()).map(|(index, line)| (index + 1, line)).collect();
    if lines.len() <= 1 || is_object(whole) || !lines.iter().any(|(_, line)| is_object(line)) {
        return Ok(if whole.is_empty() { Vec::new() } else { vec![(1, whole)] });
    }
    if lines.len() > MAX_LINES {
        return Err(SigstoreError::Unsupported { what: format!("a file of {} lines", lines.len()) });
    }
    Ok(lines)
}

fn is_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Parses one bundle.
pub(super) fn parse(bytes: &[u8]) -> Result<Bundle, SigstoreError> {
    // Messages may quote the untrusted file, so control characters are replaced.
    let printable = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let corrupt = |reason: String| SigstoreError::Corrupt { reason: reason.chars().map(printable).collect() };
    let value = json::parse(bytes).map_err(|error| corrupt(error.to_string()))?;
    // The library would treat a bundle without a media type as version 0.1.
    if !value["mediaType"].is_string() {
        return Err(corrupt("missing mediaType".to_owned()));
    }
    for (parent, members) in ALTERNATIVES {
        let there = |name: &&&str| value.pointer(parent).is_some_and(|parent| parent.get(name).is_some());
        let found: Vec<_> = members.iter().filter(there).copied().collect();
        if found.len() != 1 {
            return Err(corrupt(format!("{} has {found:?}, expected exactly one member", members.join(", "))));
        }
    }
    for list in ["tlogEntries", "timestampVerificationData/rfc3161Timestamps"] {
        let count =
            value.pointer(&format!("/verificationMaterial/{list}")).and_then(Value::as_array).map_or(0, Vec::len);
        if count > MAX_EVIDENCE {
            return Err(SigstoreError::Unsupported { what: format!("{count} {list}") });
        }
    }
    let text = std::str::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))?;
    Bundle::from_json(text).map_err(|error| corrupt(error.to_string()))
}
