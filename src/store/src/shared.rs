//! A shared store in a registry repository: blobs only, no caches.
//!
//! A blob is stored under its digest. A manifest with the tag `sha256-<hex>` refers to it, so that the registry does
//! not garbage-collect it. For SHA-512, which registries may not support, the tag is `sha512-` and the first 120
//! digits, and its manifest refers to the SHA-256. Everything is hashed on arrival: a malicious writer can only waste
//! time.
//!
//! Missing blobs are cache misses. If the registry is unreachable, returns invalid data or rejects writes, that is
//! reported once and the registry is no longer used.

use std::fs::File;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::download::DownloadError;
use crate::http::{Client, HttpError, Limits, Mirrors, Payload, Retry};
use crate::registry::{Access, Credentials, RegistryError, Repository};
use crate::store::{SharedBlobs, Store, StoreError};
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_oci::{Descriptor, InvalidReference, RepositoryName};

/// Prefix of the name.
const SCHEME: &str = "oci://";
/// Artifact type of the manifest of a blob.
const ARTIFACT: &str = "application/vnd.vmbake.blob.v1";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type and content of an empty config (image specification 1.1, "Guidance for an Empty Descriptor").
const EMPTY: (&str, &[u8]) = ("application/vnd.oci.empty.v1+json", b"{}");
/// Media type of a blob.
const BYTES: &str = "application/octet-stream";
/// Number of SHA-512 digits in a tag, which has at most 128 characters.
const DIGITS: usize = 120;

/// A useful shared store is close: with less throughput than this, most upstreams are faster.
const LIMITS: Limits = Limits {
    silence: Duration::from_secs(10),
    window: Duration::from_secs(10),
    least_rate: 128 << 10,
    document: Duration::from_secs(60),
    artifact: Duration::from_secs(60 * 60),
    retry: Retry { attempts: 3, first_pause: Duration::from_millis(250), max_pause: Duration::from_secs(2) },
};

/// For a blob that other machines upload at the same time.
const CONTENTION: Retry =
    Retry { attempts: 5, first_pause: Duration::from_millis(300), max_pause: Duration::from_secs(3) };

/// The location of a shared store: `oci://HOST/REPOSITORY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName(RepositoryName);

/// An invalid name of a shared store.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSharedName {
    #[error("invalid shared store {0:?}: expected oci://HOST/REPOSITORY")]
    Scheme(String),
    #[error(transparent)]
    Repository(#[from] InvalidReference),
}

impl Hint for InvalidSharedName {
    vmbake_common::causes!(Repository);
}

impl FromStr for SharedName {
    type Err = InvalidSharedName;

    fn from_str(text: &str) -> Result<Self, InvalidSharedName> {
        let name = text.strip_prefix(SCHEME).ok_or_else(|| InvalidSharedName::Scheme(text.to_owned()))?;
        Ok(Self(name.parse()?))
    }
}

#[derive(Debug)]
pub struct SharedStore {
    repository: Repository,
    /// Whether to offer downloads from upstreams to it.
    writes: bool,
    /// Reports warnings.
    warn: fn(String),
    /// Whether reads or writes are disabled after a failure.
    mute: AtomicBool,
    full: AtomicBool,
}

impl SharedStore {
    /// The store at `name`; `mirrors` apply to it, and `warn` reports failures.
    pub fn new(name: SharedName, mirrors: Mirrors, credentials: &Credentials, writes: bool, warn: fn(String)) -> Self {
        let client = Client::with_limits(mirrors, LIMITS);
        let access = if writes { Access::Push } else { Access::Pull };
        let repository = Repository::new(&client, credentials, name.0, access);
        Self { repository, writes, warn, mute: AtomicBool::new(false), full: AtomicBool::new(false) }
    }

    /// Looks up the SHA-256 under which the registry has the blob.
    fn find(&self, digest: &Digest) -> Result<Digest, RegistryError> {
        if matches!(digest, Digest::Sha256(_)) {
            return Ok(*digest);
        }
        let manifest = self.repository.manifest(&tag(digest))?;
        let parsed: Option<Value> = serde_json::from_slice(&manifest.bytes).ok();
        let found = parsed.as_ref().and_then(|parsed| parsed.pointer("/layers/0/digest")?.as_str()?.parse().ok());
        let url = format!("{}:{}", self.repository.name(), tag(digest));
        found.ok_or(RegistryError::Answer { url, what: "digest of a blob" })
    }

    fn get(&self, store: &Store, digest: &Digest, size: Option<u64>, limit: u64) -> Result<(), RegistryError> {
        let place = self.find(digest)?;
        let blob = Descriptor::new(BYTES, *digest, size.unwrap_or_default());
        // A blob from the shared store is not offered back to it.
        self.repository.ensure_blob_at(&store.alone(), &blob, &place, limit).map(drop)
    }

    fn put(&self, digest: &Digest, file: &File, size: u64) -> Result<(), RegistryError> {
        let tag = tag(digest);
        if self.repository.tag(&tag)?.is_some() {
            return Ok(());
        }
        let own = match digest {
            Digest::Sha256(_) => *digest,
            Digest::Sha512(_) => {
                sha256(file, size).map_err(|source| StoreError::Read { path: tag.clone().into(), source })?
            }
        };
        self.repository.put_blob(&own, Payload::Range { file, offset: 0, len: size }, None)?;
        let (empty_type, empty) = EMPTY;
        let config = Descriptor::new(empty_type, Digest::of(empty), empty.len() as u64);
        self.repository.put_blob(&config.digest, Payload::Bytes(empty), None)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": ARTIFACT,
            "config": config,
            "layers": [Descriptor::new(BYTES, own, size)],
        });
        self.repository.put_manifest(&tag, MANIFEST, manifest.to_string().as_bytes())
    }
}

impl SharedBlobs for SharedStore {
    fn fetch(&self, store: &Store, digest: &Digest, size: Option<u64>, limit: u64) -> bool {
        if self.mute.load(Ordering::Relaxed) {
            return false;
        }
        match self.get(store, digest, size, limit) {
            Ok(()) => return true,
            // Local I/O errors are reported by the next operation.
            Err(error) if error.is_absent() || matches!(error, RegistryError::Download(DownloadError::Store(_))) => {}
            // Other blobs may be correct.
            Err(error) if is_other_file(&error) => {
                (self.warn)(format!("the shared store returned a wrong blob: {}", escape::chain(&error)));
            }
            Err(error) if !self.mute.swap(true, Ordering::Relaxed) => {
                (self.warn)(format!("the shared store is disabled: {}", escape::chain(&error)));
            }
            Err(_) => {}
        }
        false
    }

    fn offer(&self, digest: &Digest, file: &File, size: u64) {
        let is_quiet = |state: &AtomicBool| state.load(Ordering::Relaxed);
        if !self.writes || is_quiet(&self.mute) || is_quiet(&self.full) {
            return;
        }
        let mut put = self.put(digest, file, size);
        for failures in 1..CONTENTION.attempts {
            if !put.as_ref().is_err_and(is_contended) {
                break;
            }
            std::thread::sleep(CONTENTION.pause(failures));
            put = self.put(digest, file, size);
        }
        if let Err(error) = put
            && !self.full.swap(true, Ordering::Relaxed)
        {
            (self.warn)(format!("the shared store is no longer written to: {}", escape::chain(&error)));
        }
    }
}

/// Whether the registry has another file under that digest.
fn is_other_file(error: &RegistryError) -> bool {
    match error {
        RegistryError::Digest { .. } | RegistryError::Header { .. } | RegistryError::TooLarge { .. } => true,
        RegistryError::Download(error) => error.is_other_file(),
        _ => false,
    }
}

/// Whether another machine may be uploading the same blob: the registry of the distribution project then reports a blob
/// that is not linked yet, or status 500 for an empty link.
fn is_contended(error: &RegistryError) -> bool {
    let RegistryError::Download(DownloadError::Http(error)) = error else { return false };
    matches!(error, HttpError::Status { status: 400 | 404 | 409 | 500, .. })
}

/// The tag of the manifest that refers to a blob.
fn tag(digest: &Digest) -> String {
    let hex = digest.hex();
    format!("{}-{}", digest.algorithm(), hex.get(..DIGITS).unwrap_or(&hex))
}

/// The SHA-256 of a file of `len` bytes; its position is unchanged.
fn sha256(file: &File, len: u64) -> io::Result<Digest> {
    let content = Payload::Range { file, offset: 0, len }.reader();
    Ok(Digest::of(b"").of_stream(content.unwrap_or_else(|| Box::new(io::empty())))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_short_enough_and_names_have_a_scheme() {
        assert_eq!(tag(&Digest::Sha256([1; 32])), format!("sha256-{}", "01".repeat(32)));
        assert_eq!(tag(&Digest::Sha512([1; 64])), format!("sha512-{}", "01".repeat(60)));
        assert!("oci://registry.example/store".parse::<SharedName>().is_ok());
        for wrong in
            ["registry.example/store", "https://registry.example/store", "oci://store", "oci://r.example/a:b", "oci://"]
        {
            assert!(wrong.parse::<SharedName>().is_err(), "{wrong}");
        }
    }
}
