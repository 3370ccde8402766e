//! Resolves entries of `sources.json` to pinned and proven entries of a manifest: [`Sources`] in, [`Dependency`] out.
//!
//! Looks up the version, reads the checksum file, downloads the artifact into the store, and verifies the required
//! proof of its digest. Shared documents are downloaded once.

use std::collections::BTreeMap;
use std::io::Seek;
use std::path::PathBuf;
use std::sync::Arc;

use indicatif::ProgressBar;
use jiff::Timestamp;

use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_common::once_map::OnceMap;
use vmbake_manifest::{Dependency, Document, Form, Proof};
use vmbake_proof::apt::PackageIndex;
use vmbake_proof::checksum;
use vmbake_proof::program;
use vmbake_store::download::{DownloadError, DownloadRequest, Downloaded, ensure_blob};
use vmbake_store::http::Client;

use crate::anchors::Anchors;
use crate::prove::{LOCAL, Prover};
use crate::sources::{Demand, Sources, System, Upstream, VersionSource};
use vmbake_manifest::Target;
use vmbake_oci::RemoteName;
use vmbake_store::store::{Store, StoreError};

mod apt;
mod error;
mod image;
mod signature;
mod snapshot;
mod version;

pub(crate) use apt::Offer;
pub use error::ResolveError;

/// Maximum size of a document that is read into memory: release descriptions, checksum files, signatures, bundles.
const MAX_DOCUMENT: u64 = 16 << 20;
/// Maximum size of an artifact of unknown length.
const MAX_ARTIFACT: u64 = 4 << 30;

/// The context of resolution; shared by all threads.
pub struct Resolver<'a> {
    pub client: &'a Client,
    /// The store for downloads.
    pub store: &'a Store,
    /// The upstreams.
    pub sources: &'a Sources,
    /// The trust anchors.
    pub anchors: &'a Anchors,
    /// The time of the checks.
    pub now: Timestamp,
    /// The newest `Date` of each archive and suite that manifests record: an older one is a replay.
    pub seen: BTreeMap<(String, String), Timestamp>,
    /// Pins packages as of this time; `None` for now.
    pub at: Option<Timestamp>,
    /// The base to pin; `None` for the pinned one, or else the published image.
    pub base: Option<WantedBase>,
    /// Documents and indexes downloaded so far.
    pub cache: Cache,
    /// Counts the received bytes of artifacts.
    pub received: ProgressBar,
}

/// A base that replaces the pinned one.
#[derive(Clone, Debug)]
pub enum WantedBase {
    /// The published image.
    Published,
    /// A disk image.
    Disk {
        path: PathBuf,
        /// Number of its root partition; `None` to detect it.
        partition: Option<u32>,
    },
    /// An archive of a root file system, which is in the store.
    Archive {
        path: PathBuf,
        digest: Digest,
        /// Its length in bytes.
        size: u64,
    },
    /// A container image of a registry.
    Container(RemoteName),
}

impl WantedBase {
    /// The option that names it.
    pub fn option(&self) -> &'static str {
        match self {
            Self::Published | Self::Archive { .. } | Self::Container(_) => "--base",
            Self::Disk { .. } => "--image",
        }
    }
}

/// A proven entry, with its evidence in the store.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub dependency: Dependency,
    /// Documents by digest.
    pub evidence: BTreeMap<Digest, Document>,
}

/// Downloads of this run, by URL.
#[derive(Default)]
pub struct Cache {
    documents: OnceMap<Vec<u8>>,
    indexes: OnceMap<apt::Index>,
    package_indexes: OnceMap<PackageIndex>,
}

/// The manifest that an entry is resolved for.
#[derive(Clone, Copy)]
pub struct ManifestContext<'a> {
    /// The target of the manifest.
    pub target: &'a Target,
    /// Its operating system.
    pub system: &'a System,
    /// Versions of existing entries, by name.
    pub versions: &'a BTreeMap<String, String>,
}

impl ManifestContext<'_> {
    fn values(&self) -> BTreeMap<String, String> {
        self.system.values(self.target, self.versions)
    }
}

impl<'a> Resolver<'a> {
    /// A prover for pinned entries.
    pub fn prover(&self) -> Prover<'a> {
        Prover::new(self.store, self.sources, self.anchors, Some(self.client)).looking_at_files()
    }
}

impl Resolver<'_> {
    /// The current version of an artifact.
    pub fn version(&self, place: ManifestContext<'_>, source: &VersionSource) -> Result<String, ResolveError> {
        match source {
            VersionSource::Apt { archive, package } => Ok(self.package(place, archive, package)?.1.version.to_string()),
            other => version::find(self, place, other),
        }
    }

    /// Resolves an artifact.
    pub fn dependency(&self, place: ManifestContext<'_>, upstream: &Upstream) -> Result<Resolved, ResolveError> {
        match &upstream.version {
            VersionSource::Apt { archive, package } => self.deb(place, archive, package),
            _ => Ok(self.file(place, upstream)?.0),
        }
    }

    /// Resolves a single file; also returns it open.
    fn file(&self, place: ManifestContext<'_>, upstream: &Upstream) -> Result<(Resolved, Downloaded), ResolveError> {
        let version = self.version(place, &upstream.version)?;
        let values = upstream.values(place.values(), &version);
        let values = values.map_err(|source| ResolveError::Template { place: "url", source })?;
        let value = |name: &str| values.get(name).cloned().unwrap_or_default();
        let (url, file) = (value("url"), value("file"));

        let mut checksums = None;
        if let Some(template) = &upstream.checksums {
            let place = "checksums";
            let from = template.render(&values).map_err(|source| ResolveError::Template { place, source })?;
            let text = self.document(&from)?;
            let digest = checksum::find(&text, &file, None);
            let digest = digest
                .map_err(|source| ResolveError::Message(message!("{from}: does not prove the artifact").by(source)))?;
            checksums = Some((from, digest));
        }
        let digest = match &upstream.proof {
            Demand::Stated(digest) => Some(*digest),
            _ => checksums.as_ref().map(|(_, digest)| *digest),
        };
        let mut evidence = BTreeMap::new();
        let (proof, downloaded) = match &upstream.proof {
            Demand::Sigstore { .. } | Demand::Cosign { .. } => {
                let downloaded = self.download_sha256(&url, digest)?;
                (self.signed(&upstream.proof, &values, downloaded.digest, &mut evidence)?, downloaded)
            }
            Demand::Openpgp { signature, keyring } => {
                let downloaded = self.download(vec![url.clone()], digest, None)?;
                let template = |source| ResolveError::Template { place: "signature", source };
                let from = signature.render(&values).map_err(template)?;
                (self.signed_file(&from, keyring, &downloaded, &mut evidence)?, downloaded)
            }
            _ => {
                let downloaded = self.download(vec![url.clone()], digest, None)?;
                let proof = match checksums {
                    _ if url.starts_with(LOCAL) => Proof::Local,
                    _ if matches!(upstream.proof, Demand::Stated(_)) => Proof::Stated,
                    Some((url, _)) => {
                        let kept = self.keep(&url, Form::Whole, &self.document(&url)?, &mut evidence)?;
                        Proof::Checksum { url, evidence: Some(kept) }
                    }
                    None => Proof::FirstUse,
                };
                (proof, downloaded)
            }
        };
        program::check(upstream, &version, &place.target.arch, &downloaded.file)
            .map_err(|source| ResolveError::Message(message!("{url}: not the requested program").by(source)))?;
        let (digest, size, kind) = (downloaded.digest, downloaded.size, upstream.kind);
        let dependency = Dependency { version, url, kind, digest, size, proof: Some(proof), chosen: None };
        Ok((Resolved { dependency, evidence }, downloaded))
    }

    /// Downloads a signed file. Signatures are over SHA-256, so that is pinned regardless of the algorithm of a
    /// checksum file.
    fn download_sha256(&self, url: &str, stated: Option<Digest>) -> Result<Downloaded, ResolveError> {
        let sha512 = match stated {
            Some(Digest::Sha512(_)) => stated,
            _ => return self.download(vec![url.to_owned()], stated, None),
        };
        let mut downloaded = self.download(vec![url.to_owned()], None, None)?;
        let read = |source| StoreError::Read { path: self.store.path(&downloaded.digest), source };
        let expected = sha512.unwrap_or(downloaded.digest);
        let (found, _) = expected.of_stream(&mut downloaded.file).map_err(read)?;
        downloaded.file.rewind().map_err(read)?;
        if found != expected {
            let (url, expected, found) = (url.to_owned(), Box::new(expected), Box::new(found));
            return Err(DownloadError::Digest { url, expected, found }.into());
        }
        Ok(downloaded)
    }

    /// Downloads the file of an entry into the store.
    pub fn fetch(&self, entry: &Dependency) -> Result<(), ResolveError> {
        self.download(vec![entry.url.clone()], Some(entry.digest), Some(entry.size)).map(drop)
    }

    /// Stores a document as evidence.
    fn keep(
        &self,
        url: &str,
        form: Form,
        bytes: &[u8],
        evidence: &mut BTreeMap<Digest, Document>,
    ) -> Result<Digest, StoreError> {
        let digest = self.store.insert(bytes)?;
        evidence.insert(digest, Document { url: url.to_owned(), size: bytes.len() as u64, form });
        Ok(digest)
    }

    fn download(
        &self,
        urls: Vec<String>,
        digest: Option<Digest>,
        size: Option<u64>,
    ) -> Result<Downloaded, ResolveError> {
        let wanted = DownloadRequest { urls, digest, size, limit: MAX_ARTIFACT, ..DownloadRequest::default() };
        Ok(ensure_blob(self.client, self.store, &wanted, &|bytes| self.received.inc(bytes))?)
    }

    /// A small document, downloaded once per run.
    fn document(&self, url: &str) -> Result<Arc<Vec<u8>>, ResolveError> {
        Ok(self.cache.documents.get(url, || self.client.get(url, MAX_DOCUMENT))?)
    }
}
