//! A repository of a registry as the store that a fleet shares: blobs, and nothing that was made of them.
//!
//! A blob is there under its own digest. A manifest with the tag `sha256-<hex>` names it, so that garbage collection of the registry keeps it; a
//! SHA-512, which registries need not know, has the tag `sha512-` and the first 120 digits, and its manifest leads to the SHA-256. Everything is hashed on
//! arrival: whoever can write there can waste time, and nothing else.
//!
//! What is not there is a miss. A registry that does not answer, or answers wrongly, is told of once and left alone; so is one that takes nothing.

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

/// What an address starts with.
const SCHEME: &str = "oci://";
/// Type of the manifest of a blob.
const ARTIFACT: &str = "application/vnd.vmbake.blob.v1";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Type and content of a config that says nothing (image specification 1.1, "Guidance for an Empty Descriptor").
const EMPTY: (&str, &[u8]) = ("application/vnd.oci.empty.v1+json", b"{}");
/// Type of a blob.
const BYTES: &str = "application/octet-stream";
/// Digits of a SHA-512 in a tag, which has at most 128 characters.
const DIGITS: usize = 120;

/// A store that is worth asking is near: one that is slower than this is slower than most upstreams.
const LIMITS: Limits = Limits {
    silence: Duration::from_secs(10),
    window: Duration::from_secs(10),
    least_rate: 128 << 10,
    document: Duration::from_secs(60),
    artifact: Duration::from_secs(60 * 60),
    retry: Retry { attempts: 3, first_pause: Duration::from_millis(250), max_pause: Duration::from_secs(2) },
};

/// How often an upload is tried while other machines upload the same blob, and the pause before the second try, which doubles each time.
const ATTEMPTS: usize = 5;
const CONTENTION_PAUSE: Duration = Duration::from_millis(300);

/// Where a shared store is: `oci://HOST/REPOSITORY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedName(RepositoryName);

/// A text that names no shared store.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSharedName {
    #[error("{0:?} does not start with oci://")]
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
    /// Whether what upstreams gave is offered to it.
    writes: bool,
    /// Called with what the user should know.
    warn: fn(String),
    /// Whether it was found out that asking, or offering, is in vain.
    mute: AtomicBool,
    full: AtomicBool,
}

impl SharedStore {
    /// The store at `name`; `mirrors` may say that it is elsewhere, and `warn` is told what goes wrong.
    pub fn new(name: SharedName, mirrors: Mirrors, credentials: &Credentials, writes: bool, warn: fn(String)) -> Self {
        let client = Client::with_limits(mirrors, LIMITS);
        let access = if writes { Access::Push } else { Access::Pull };
        let repository = Repository::new(&client, credentials, name.0, access);
        Self { repository, writes, warn, mute: AtomicBool::new(false), full: AtomicBool::new(false) }
    }

    /// Where the blob stands in the registry, by its SHA-256.
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
        // What comes is not offered to where it comes from.
        self.repository.obtain_at(&store.alone(), &blob, &place, limit).map(drop)
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
    fn bring(&self, store: &Store, digest: &Digest, size: Option<u64>, limit: u64) -> bool {
        if self.mute.load(Ordering::Relaxed) {
            return false;
        }
        match self.get(store, digest, size, limit) {
            Ok(()) => return true,
            // What fails on disk here is told by whoever tries next.
            Err(error) if error.is_absent() || matches!(error, RegistryError::Download(DownloadError::Store(_))) => {}
            // Another blob may be right.
            Err(error) if is_other_file(&error) => {
                (self.warn)(format!("the shared store gave something else: {}", escape::chain(&error)));
            }
            Err(error) if !self.mute.swap(true, Ordering::Relaxed) => {
                (self.warn)(format!("the shared store is left out: {}", escape::chain(&error)));
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
        for attempt in 1..ATTEMPTS {
            if !put.as_ref().is_err_and(is_contended) {
                break;
            }
            std::thread::sleep(CONTENTION_PAUSE * (1 << (attempt - 1)));
            put = self.put(digest, file, size);
        }
        if let Err(error) = put
            && !self.full.swap(true, Ordering::Relaxed)
        {
            (self.warn)(format!("the shared store takes nothing more: {}", escape::chain(&error)));
        }
    }
}

/// Whether the registry has something else under that name.
fn is_other_file(error: &RegistryError) -> bool {
    match error {
        RegistryError::Digest { .. } | RegistryError::Header { .. } | RegistryError::TooLarge { .. } => true,
        RegistryError::Download(error) => error.is_other_file(),
        _ => false,
    }
}

/// Whether another machine may be uploading the same blob: the registry of the distribution project then finds a blob half linked, or, with status
/// 500, a link that is still empty.
fn is_contended(error: &RegistryError) -> bool {
    let RegistryError::Download(DownloadError::Http(error)) = error else { return false };
    matches!(error, HttpError::Status { status: 400 | 404 | 409 | 500, .. })
}

/// The tag of the manifest that keeps a blob.
fn tag(digest: &Digest) -> String {
    let hex = digest.hex();
    format!("{}-{}", digest.algorithm(), hex.get(..DIGITS).unwrap_or(&hex))
}

/// The SHA-256 of a file of `len` bytes, whose position stays.
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
