//! Downloads the artifacts and container images of a manifest into the store: [`Manifest`] in, [`Fetched`] out.
//!
//! Intact files in the store are not downloaded again. Offline, nothing is downloaded, and an artifact missing from the
//! store is an error with its name and URL.

pub mod images;
pub mod local;
pub mod verify;
mod error;

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::message;
use vmbake_common::parallel::for_each;
use vmbake_common::progress::{Event, Progress};
use vmbake_manifest::{ContainerImage, Content, Dependency, Manifest, Proof};
use vmbake_pin::anchors::Anchors;
use vmbake_pin::prove::{LOCAL, Prover, VerificationResult, VerifiedProof};
use vmbake_pin::sources::{Sources, Upstream};
use vmbake_proof::program::{self, ProgramError};
use vmbake_store::download::{DownloadRequest, ensure_blob};
use vmbake_store::http::Client;
use vmbake_store::registry;
use vmbake_store::store::Store;

pub use error::FetchError;

/// Name of the base image in messages.
const BASE: &str = "the base image";

/// Where artifacts come from, and the required proofs.
pub struct Supply<'a> {
    pub store: &'a Store,
    /// The required proofs, and mirrors for artifacts that have left their original URL.
    pub sources: &'a Sources,
    /// The trust anchors.
    pub anchors: &'a Anchors,
    /// The HTTP client; `None` when offline.
    pub client: Option<&'a Client>,
    /// Number of concurrent downloads.
    pub threads: NonZeroUsize,
}

#[derive(Debug)]
pub(crate) struct FetchedArtifact {
    pub(crate) name: String,
    pub(crate) dependency: Dependency,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Whether this process has hashed it, so that hashing it again is unnecessary.
    pub(crate) hashed: bool,
    /// Whether it was downloaded now.
    pub(crate) is_new: bool,
    /// Its source, if known, and architecture: the program must match them.
    pub(crate) program: Option<(Upstream, String)>,
}

impl FetchedArtifact {
    /// Fails unless a verified file is the program that its source requires.
    pub(crate) fn check_program(&self) -> Result<(), ProgramError> {
        match &self.program {
            Some((upstream, arch)) => program::check(upstream, &self.dependency.version, arch, &self.file),
            None => Ok(()),
        }
    }
}

/// Everything that a manifest pins except the base image, in the store; created only by [`fetch`].
#[derive(Debug)]
pub struct Fetched {
    /// The opened artifacts.
    pub(crate) artifacts: Vec<FetchedArtifact>,
    pub(crate) images: Vec<ContainerImage>,
    /// The proofs of all artifacts, and of the pinned base image.
    pub proofs: VerificationResult,
}

impl<'a> Supply<'a> {
    /// A prover that uses stored evidence and can download more.
    pub fn prover(&self) -> Prover<'a> {
        Prover::new(self.store, self.sources, self.anchors, self.client)
    }
}

/// A pinned entry to fetch.
enum Entry<'a> {
    Artifact(&'a str, &'a Dependency),
    Image(&'a ContainerImage),
}

enum Done {
    Artifact(Box<FetchedArtifact>),
    /// An image is verified by its documents, which are fetched first.
    Image(Box<ContainerImage>, VerifiedProof),
}

/// Verifies the digests that `manifest` pins, opens every artifact and locates every container image, after downloading
/// what is missing.
pub fn fetch(manifest: &Manifest, supply: &Supply<'_>, progress: &Progress) -> Result<Fetched, FetchError> {
    let prover = supply.prover();
    let mut proofs = prover.all(manifest)?;
    let content = manifest.content();
    let entries = content.dependencies.iter().map(|(name, dependency)| Entry::Artifact(name, dependency));
    let entries = entries.chain(content.images.iter().map(Entry::Image)).collect();
    let bar = progress.bar("fetching", content.dependencies.values().map(|dependency| dependency.size).sum());
    let results = for_each(entries, supply.threads, |entry| {
        let (done, event) = fetch_entry(entry, content, supply, &prover, &|bytes| bar.inc(bytes))?;
        if let Some(event) = event {
            bar.suspend(|| progress.emit(event));
        }
        Ok(done)
    });
    bar.finish_and_clear();
    let (mut artifacts, mut images) = (Vec::new(), Vec::new());
    for done in results.into_iter().collect::<Result<Vec<_>, FetchError>>()? {
        match done {
            Done::Artifact(artifact) => artifacts.push(*artifact),
            Done::Image(image, proof) => {
                proofs.add(image.image.clone(), proof);
                images.push(*image);
            }
        }
    }
    packages(&artifacts).for_each(|event| progress.emit(event));
    Ok(Fetched { artifacts, images, proofs })
}

/// Fetches one entry and reports a download.
fn fetch_entry(
    entry: Entry<'_>,
    content: &Content,
    supply: &Supply<'_>,
    prover: &Prover<'_>,
    progress: &dyn Fn(u64),
) -> Result<(Done, Option<Event>), FetchError> {
    Ok(match entry {
        Entry::Artifact(name, dependency) => {
            let fetched = artifact(content, name, dependency, supply, progress)?;
            let (name, version, bytes) = (name.to_owned(), Some(dependency.version.clone()), dependency.size);
            let is_told = fetched.is_new && dependency.chosen.is_none();
            let event = is_told.then_some(Event::Fetched { name, version, path: None, bytes });
            (Done::Artifact(Box::new(fetched)), event)
        }
        Entry::Image(image) => {
            let (proof, pulled) = images::pull(content, image, supply, prover)?;
            let event = |bytes| Event::Fetched { name: image.image.clone(), version: None, path: None, bytes };
            (Done::Image(Box::new(image.clone()), proof), pulled.map(event))
        }
    })
}

/// One event for the downloaded packages of each layer: there may be hundreds of them.
fn packages(artifacts: &[FetchedArtifact]) -> impl Iterator<Item = Event> {
    let mut of: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    let new = artifacts.iter().filter(|artifact| artifact.is_new).map(|artifact| &artifact.dependency);
    for (entry, chosen) in new.filter_map(|entry| Some((entry, entry.chosen.as_ref()?))) {
        let (count, bytes) = of.entry(&chosen.layer).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(entry.size);
    }
    of.into_iter().map(|(layer, (packages, bytes))| Event::FetchedPackages { layer: layer.to_owned(), packages, bytes })
}

/// An available base image.
#[derive(Debug)]
pub struct FetchedBase {
    pub path: PathBuf,
    pub(crate) file: File,
    /// Its entry in the manifest.
    pub(crate) pinned: Option<Dependency>,
    /// Whether this process has hashed it, so that hashing it again is unnecessary.
    pub(crate) hashed: bool,
    /// Whether it was downloaded now.
    pub is_new: bool,
}

/// Locates the base image that `manifest` pins, after downloading it if it is missing.
pub fn fetch_base(manifest: &Manifest, supply: &Supply<'_>, progress: &Progress) -> Result<FetchedBase, FetchError> {
    let Some(image) = &manifest.content().os.image else { return Err(FetchError::NoBase { name: manifest.name() }) };
    if image.url.starts_with(LOCAL) {
        return Err(FetchError::LocalBase { url: image.url.clone() });
    }
    let bar = progress.bar("fetching", image.size);
    let fetched = file(BASE, image, None, supply, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let FetchedArtifact { path, file, hashed, is_new, dependency, .. } = fetched?;
    Ok(FetchedBase { path, file, pinned: Some(dependency), hashed, is_new })
}

/// Opens a base image given by the user, which must match a pinned one.
pub fn open_base_file(manifest: &Manifest, path: &Path) -> Result<FetchedBase, FetchError> {
    let pinned = manifest.content().os.image.clone();
    let path = path.to_owned();
    match input::open_regular(&path) {
        Ok(file) => Ok(FetchedBase { path, file, pinned, hashed: false, is_new: false }),
        Err(source) => Err(FetchError::OpenBase { path, source }),
    }
}

/// Every blob of a manifest known to the store: artifacts, the base image, evidence, and the blobs of container images.
pub fn blobs(manifest: &Manifest, store: &Store) -> Vec<Digest> {
    let content = manifest.content();
    let mut blobs = Vec::new();
    for entry in content.entries() {
        blobs.push(entry.digest);
    }
    blobs.extend(content.evidence.keys());
    for image in content.images.iter().chain(&content.base_container()) {
        blobs.push(image.index);
        blobs.extend(registry::blobs(store, image));
    }
    blobs
}

/// Whether a store has every blob of a container image.
pub fn is_complete(store: &Store, image: &ContainerImage) -> bool {
    let blobs = registry::blobs(store, image);
    !blobs.is_empty() && blobs.iter().all(|digest| store.path(digest).exists())
}

fn artifact(
    content: &Content,
    name: &str,
    dependency: &Dependency,
    supply: &Supply<'_>,
    progress: &dyn Fn(u64),
) -> Result<FetchedArtifact, FetchError> {
    let upstream = supply.sources.upstream(&content.target(), name);
    let upstream = upstream.or_else(|| content.download(name).map(|(_, upstream)| upstream));
    let program = upstream.map(|upstream| (upstream.clone(), content.os.arch.clone()));
    file(name, dependency, program, supply, progress)
}

fn file(
    name: &str,
    dependency: &Dependency,
    program: Option<(Upstream, String)>,
    supply: &Supply<'_>,
    progress: &dyn Fn(u64),
) -> Result<FetchedArtifact, FetchError> {
    let path = supply.store.path(&dependency.digest);
    let fetched = |file, hashed, is_new| FetchedArtifact {
        name: name.to_owned(),
        dependency: dependency.clone(),
        path: path.clone(),
        file,
        hashed,
        is_new,
        program,
    };
    match supply.client.filter(|_| !dependency.url.starts_with(LOCAL)) {
        Some(client) => {
            let wanted = DownloadRequest {
                urls: urls(dependency, supply.sources),
                digest: Some(dependency.digest),
                size: Some(dependency.size),
                limit: dependency.size,
                ..DownloadRequest::default()
            };
            let found = ensure_blob(client, supply.store, &wanted, progress);
            let found = found.map_err(|source| FetchError::Download { name: name.to_owned(), source })?;
            let fetched = fetched(found.file, true, !found.was_there);
            fetched.check_program().map_err(|source| {
                FetchError::Message(message!("{name}: not the program that its source requires").by(source))
            })?;
            Ok(fetched)
        }
        None => match supply.store.blob(&dependency.digest)? {
            Some(file) => Ok(fetched(file, false, false)),
            None => Err(FetchError::Missing {
                name: name.to_owned(),
                version: dependency.version.clone(),
                url: dependency.url.clone(),
                path,
            }),
        },
    }
}

/// The artifact's URL and those of copies: a package that was replaced in its archive is still available in the
/// snapshot from when it was pinned.
fn urls(dependency: &Dependency, sources: &Sources) -> Vec<String> {
    let mut urls = vec![dependency.url.clone()];
    if let Some(Proof::Apt { archive, date, .. }) = &dependency.proof
        && let Some(archive) = sources.schema().archives.get(archive)
    {
        urls.extend(archive.past(&dependency.url, *date));
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_left_the_archive_is_looked_for_in_its_past() {
        let sources = Sources::load(&vmbake_common::catalog::Catalog::built_in()).unwrap();
        let text = r#"{"version": "1", "url": "https://ftp.debian.org/debian/pool/main/r/runc/runc_1_amd64.deb", "type": "deb",
            "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "size": 0, "proof":
            {"type": "apt", "archive": "debian", "suite": "trixie", "date": "2026-09-12T07:55:41Z", "signers": ["A"]}}"#;
        let dependency: Dependency = serde_json::from_str(text).unwrap();
        let past = ["20260912T075541Z", "20260912T195541Z", "20260913T075541Z"]
            .map(|time| format!("https://snapshot.debian.org/archive/debian/{time}/pool/main/r/runc/runc_1_amd64.deb"));
        assert_eq!(urls(&dependency, &sources)[0], dependency.url);
        assert_eq!(urls(&dependency, &sources)[1..], past);
        let other = Dependency { proof: None, ..dependency };
        assert_eq!(urls(&other, &sources).len(), 1);
    }
}
