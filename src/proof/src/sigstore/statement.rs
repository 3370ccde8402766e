//! The claims of a bundle, before verification: the file that it covers and the statement about it.
//!
//! in-toto attestation framework, `spec/v1/statement.md`. A subject with digests of two different files is refused,
//! which the specification leaves open.

use sigstore_verify::types::{
    ArtifactDigest, Bundle, DsseEnvelope, HashAlgorithm, MessageSignature, Sha256Hash, Sha512Hash, SignatureContent,
    Statement, Subject,
};
use vmbake_common::message;

use super::{BundlePolicy, SigstoreError, json};
use vmbake_common::digest::Digest;

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const STATEMENT_TYPES: [&str; 2] = ["https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1"];

/// The claims of a bundle.
pub(super) struct Stated {
    /// The digest of the artifact that the bundle contains.
    pub(super) digest: ArtifactDigest,
    /// Type of the statement, if there is one.
    pub(super) predicate_type: Option<String>,
    pub(super) statement: Option<Vec<u8>>,
}

/// Checks the claims of a bundle against the policy.
pub(super) fn check(bundle: &Bundle, artifact: &[Digest], policy: &BundlePolicy<'_>) -> Result<Stated, SigstoreError> {
    match &bundle.content {
        SignatureContent::MessageSignature(_) if policy.predicate_type.or(policy.subject_name).is_some() => {
            Err(SigstoreError::NoStatement)
        }
        SignatureContent::MessageSignature(message) => check_message(message, artifact),
        SignatureContent::DsseEnvelope(envelope) => check_statement(envelope, artifact, policy),
        _ => Err(SigstoreError::Unsupported { what: "neither a message signature nor a DSSE envelope".to_owned() }),
    }
}

fn check_message(message: &MessageSignature, artifact: &[Digest]) -> Result<Stated, SigstoreError> {
    let (digest, sha256) = sha256(artifact)?;
    let stated = message.message_digest.as_ref().filter(|stated| stated.algorithm == HashAlgorithm::Sha2256);
    if stated.is_some_and(|stated| stated.digest != sha256) {
        return Err(SigstoreError::OtherFile { digest });
    }
    Ok(Stated { digest: sha256.into(), predicate_type: None, statement: None })
}

fn check_statement(
    envelope: &DsseEnvelope,
    artifact: &[Digest],
    policy: &BundlePolicy<'_>,
) -> Result<Stated, SigstoreError> {
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(SigstoreError::Unsupported { what: format!("payload of type {:?}", envelope.payload_type) });
    }
    let corrupt = |error: serde_json::Error| SigstoreError::Corrupt { reason: format!("statement: {error}") };
    let value = json::parse(envelope.payload.as_bytes()).map_err(corrupt)?;
    let statement: Statement = serde_json::from_value(value).map_err(corrupt)?;
    if !STATEMENT_TYPES.contains(&statement.type_.as_str()) {
        return Err(SigstoreError::Unsupported { what: format!("statement of type {:?}", statement.type_) });
    }
    let digest = check_subjects(&statement.subject, artifact, policy.subject_name)?;
    let found = statement.predicate_type;
    if !found.bytes().all(|byte| byte.is_ascii_graphic()) || found.is_empty() {
        return Err(SigstoreError::Corrupt { reason: format!("predicate type {found:?} is not a URI") });
    }
    match policy.predicate_type {
        Some(expected) if expected != found => {
            Err(SigstoreError::PredicateType { expected: expected.to_owned(), found })
        }
        _ => Ok(Stated { digest, predicate_type: Some(found), statement: Some(envelope.payload.as_bytes().to_vec()) }),
    }
}

fn check_subjects(
    subjects: &[Subject],
    artifact: &[Digest],
    name: Option<&str>,
) -> Result<ArtifactDigest, SigstoreError> {
    let mut names = Vec::new();
    for subject in subjects {
        let Some(digest) = agreed(subject, artifact)? else { continue };
        if name.is_none_or(|name| name == subject.name) {
            return Ok(digest);
        }
        names.push(subject.name.clone());
    }
    match name {
        Some(name) if !names.is_empty() => Err(SigstoreError::Message(message!(
            "the subject with the artifact's digest is named {names:?}, expected {name:?}"
        ))),
        _ => Err(SigstoreError::OtherFile { digest: artifact.first().copied().ok_or(SigstoreError::NoDigest)? }),
    }
}

/// The digest that identifies the artifact in a subject, if any.
fn agreed(subject: &Subject, artifact: &[Digest]) -> Result<Option<ArtifactDigest>, SigstoreError> {
    let (mut agreed, mut contradicted) = (None, false);
    for digest in artifact {
        let equal = match digest {
            Digest::Sha256(bytes) => subject.digest.sha256.map(|stated| stated == Sha256Hash::new(*bytes)),
            Digest::Sha512(bytes) => subject.digest.sha512.map(|stated| stated == Sha512Hash::new(*bytes)),
        };
        match equal {
            Some(true) => agreed = agreed.or(Some(typed(*digest)?)),
            Some(false) => contradicted = true,
            None => {}
        }
    }
    if agreed.is_some() && contradicted {
        let reason = format!("statement: subject {:?} has digests of two different files", subject.name);
        return Err(SigstoreError::Corrupt { reason });
    }
    Ok(agreed)
}

fn typed(digest: Digest) -> Result<ArtifactDigest, SigstoreError> {
    let typed = match digest {
        Digest::Sha256(bytes) => return Ok(Sha256Hash::new(bytes).into()),
        Digest::Sha512(bytes) => ArtifactDigest::new(HashAlgorithm::Sha2512, bytes.to_vec()),
    };
    typed.map_err(|error| SigstoreError::Corrupt { reason: error.to_string() })
}

/// The artifact's SHA-256, which signatures over files and log entries use.
pub(in super::super) fn sha256(artifact: &[Digest]) -> Result<(Digest, Sha256Hash), SigstoreError> {
    let found = artifact.iter().find_map(|digest| match digest {
        Digest::Sha256(bytes) => Some((*digest, Sha256Hash::new(*bytes))),
        Digest::Sha512(_) => None,
    });
    found.ok_or(SigstoreError::NoDigest)
}
