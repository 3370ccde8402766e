//! Signs a release: writes sigstore bundles next to the outputs of a directory.
//!
//! Checksum lists are signed as files, each provenance as a DSSE envelope (DSSE 1.0, its PAE). Bundles are of version
//! 0.3, with the hint of a public key and without a log entry. Names: `SHA256SUMS.sigstore.json`,
//! `FSVERITYSUMS.sigstore.json`, `NAME.provenance.sigstore.json`; the label of a signer is inserted before
//! `sigstore.json`, so that several can sign one release.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};

use crate::incremental::checksums::Checksum;
use crate::release::key::{KeyError, PrivateKey};
use crate::release::sums::{Sums, SumsError, SumsKind, read_sums};
use vmbake_common::atomic_file::{PublishError, renew_file};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;

/// Suffix of the name of a statement.
pub(super) const PROVENANCE: &str = ".provenance.json";
/// Suffix of the name of a bundle.
pub const BUNDLE: &str = ".sigstore.json";
/// Media type of a bundle.
pub const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Payload type of envelopes.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// Maximum size of a statement: with hundreds of packages it has 300 KB.
pub const MAX_STATEMENT: u64 = 16 << 20;

/// Why a release was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error("{path}: not found, so there is nothing to sign")]
    NoSums { path: PathBuf },
    #[error(transparent)]
    Sums(#[from] SumsError),
    #[error("{path}: no provenance is listed")]
    NoProvenance { path: PathBuf },
    #[error("{path}: has digest {found}, but SHA256SUMS states {expected}")]
    Digest { path: PathBuf, expected: Box<Checksum>, found: Box<Checksum> },
    #[error("cannot use the key")]
    Key(#[from] KeyError),
    #[error("{path}: cannot serialize as JSON")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for SignError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSums { .. } | Self::NoProvenance { .. } => {
                Some("name the directory that `vmbake bake --out` wrote to".to_owned())
            }
            Self::Digest { .. } => Some("`vmbake verify image DIR` reports all changes since the bake".to_owned()),
            _ => None,
        }
    }

    vmbake_common::causes!(Sums, Key, Publish, File);
}

/// Signs the lists and statements in `folder` and returns the bundles. Existing ones are replaced.
pub fn sign(folder: &Path, key: &PrivateKey, label: Option<&str>) -> Result<Vec<PathBuf>, SignError> {
    let (mut signed, mut listed) = (Vec::new(), None);
    for kind in SumsKind::ALL {
        if let Some(Sums { checksums, text }) = read_sums(folder, kind)? {
            signed.push((kind.file_name().to_owned(), blob(key, &text)?));
            listed = listed.or(Some(checksums).filter(|_| kind == SumsKind::Bytes));
        }
    }
    let path = folder.join(SumsKind::Bytes.file_name());
    let Some(listed) = listed else { return Err(SignError::NoSums { path }) };
    let lists = signed.len();
    for (name, expected) in listed.iter().filter(|(name, _)| name.ends_with(PROVENANCE)) {
        let path = folder.join(name);
        let statement = super::read(&path, MAX_STATEMENT);
        let statement = statement.map_err(|source| SignError::File(FileError::new(path.clone(), "read", source)))?;
        let (found, expected) = (Checksum::Bytes(Digest::of(&statement)), *expected);
        if found != expected {
            let (expected, found) = (Box::new(expected), Box::new(found));
            return Err(SignError::Digest { path, expected, found });
        }
        signed.push((name.trim_end_matches(".json").to_owned(), envelope(key, &statement)?));
    }
    if signed.len() == lists {
        return Err(SignError::NoProvenance { path });
    }
    write(folder, label, signed)
}

/// Signs verified lists, by file name, and statements about images, by image name. Returns the bundles.
pub fn attest(
    folder: &Path,
    key: &PrivateKey,
    label: Option<&str>,
    lists: &BTreeMap<&'static str, Sums>,
    statements: &BTreeMap<String, Vec<u8>>,
) -> Result<Vec<PathBuf>, SignError> {
    let mut signed = Vec::new();
    for (name, Sums { text, .. }) in lists {
        signed.push(((*name).to_owned(), blob(key, text)?));
    }
    for (name, statement) in statements {
        signed.push((format!("{name}{PROVENANCE}").trim_end_matches(".json").to_owned(), envelope(key, statement)?));
    }
    write(folder, label, signed)
}

/// Writes bundles, given by the names of the signed files.
fn write(folder: &Path, label: Option<&str>, signed: Vec<(String, Value)>) -> Result<Vec<PathBuf>, SignError> {
    let label = label.map(|label| format!(".{label}")).unwrap_or_default();
    let mut written = Vec::new();
    for (name, bundle) in signed {
        written.push(write_bundle(folder.join(format!("{name}{label}{BUNDLE}")), &bundle)?);
    }
    Ok(written)
}

/// Signs the document at `path` with the bytes `content`, and returns the bundle next to it. An existing one is
/// replaced.
pub fn sign_document(path: &Path, content: &[u8], key: &PrivateKey) -> Result<PathBuf, SignError> {
    let mut bundle = path.as_os_str().to_owned();
    bundle.push(BUNDLE);
    write_bundle(bundle.into(), &blob(key, content)?)
}

fn write_bundle(path: PathBuf, bundle: &Value) -> Result<PathBuf, SignError> {
    let mut text = serde_json::to_vec(bundle).map_err(|source| SignError::Json { path: path.clone(), source })?;
    text.push(b'\n');
    renew_file(&path, &text)?;
    Ok(path)
}

/// The bundle of a signature over `content` itself.
fn blob(key: &PrivateKey, content: &[u8]) -> Result<Value, KeyError> {
    let digest = match Digest::of(content) {
        Digest::Sha256(bytes) => Base64::encode_string(&bytes),
        Digest::Sha512(bytes) => Base64::encode_string(&bytes),
    };
    let signature = Base64::encode_string(&key.sign(content));
    Ok(json!({
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key.hint()?}},
        "messageSignature": {"messageDigest": {"algorithm": "SHA2_256", "digest": digest}, "signature": signature},
    }))
}

/// The bundle of a signed envelope with the statement `payload`.
pub fn envelope(key: &PrivateKey, payload: &[u8]) -> Result<Value, KeyError> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    let signature = Base64::encode_string(&key.sign(&[head.as_bytes(), payload].concat()));
    Ok(json!({
        "mediaType": MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key.hint()?}},
        "dsseEnvelope": {
            "payload": Base64::encode_string(payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": signature}],
        },
    }))
}
