//! Reads a packed bundle: first index, signatures, description and layers, which are small; artifacts only when they are needed.
//!
//! Only the output of `pack` is accepted. An index or a manifest with other entries is refused, and so is a tar file of layers with
//! anything but regular files below the layers that `bundle.json` lists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tempfile::TempDir;
use vmbake_common::message::FileError;
use vmbake_disk::source::ReadAt;

use super::contents::{BundleContents, LAYERS, SOURCES};
use super::document::{BundleDocument, MAX_DOCUMENT};
use super::error::BundleError;
use super::listing::is_index;
use super::pack::{BLOB, BUNDLE, CONFIG, LAYERS_TAR, SOURCES_JSON};
use super::place::BundlePlace;
use vmbake_archive::folder;
use vmbake_archive::tar::{TarMember, folder_members};
use vmbake_bake::release::verify::NamedSigner;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_manifest::{Dependency, Proof};
use vmbake_oci::Descriptor;
use vmbake_proof::sigstore::{self, BundlePolicy, SigstoreRoot, json};
use vmbake_release::document::{ArtifactManifest, MANIFEST, ReleaseIndex, TITLE};
use vmbake_release::signature::SIGNATURE;
use vmbake_store::store::Store;

/// Longest tar file of layers.
const MAX_LAYERS: u64 = 64 << 20;
/// Most files of all layers.
const MAX_FILES: usize = 10_000;
/// Most blobs of a manifest.
const MAX_BLOBS: usize = 4096;

/// A packed bundle without its artifacts.
pub struct PackedContents {
    /// Where it is.
    pub place: BundlePlace,
    /// Digest of its index, which leads to all that is in it.
    pub digest: Digest,
    /// Its document and layers.
    pub contents: BundleContents,
    /// Its artifacts and the documents of proofs, by digest.
    pub blobs: BTreeMap<Digest, Descriptor>,
    /// The folder that its layers and sources were unpacked to; removed with this value.
    pub folder: TempDir,
}

/// The publisher that the index of a bundle names. It is not verified yet, and only selects the signature to verify.
pub fn publisher_of(place: &BundlePlace) -> Result<String, BundleError> {
    let title = title_of(place)?;
    Ok(title.split_once('.').map_or(title.as_str(), |(publisher, _)| publisher).to_owned())
}

/// The name that the index gives the bundle, `PUBLISHER.NAME`, not verified yet.
pub fn title_of(place: &BundlePlace) -> Result<String, BundleError> {
    let (digest, bytes) = place.index()?;
    let index: ReleaseIndex = parse(&place.path(), &bytes)?;
    let title = index.annotations.get(TITLE).filter(|title| title.contains('.')).cloned();
    title.ok_or_else(|| layout(&place.path(), &digest, "is not the index of a bundle"))
}

/// Whether all of these have signed the index of the bundle at `place`; else why not.
pub fn require_signed(
    place: &BundlePlace,
    signers: &[NamedSigner],
    root: &SigstoreRoot,
    now: Timestamp,
) -> Result<(Digest, Vec<String>), BundleError> {
    let (digest, _) = place.index()?;
    let bundles = place.signatures(&digest)?;
    for NamedSigner { name, signer } in signers {
        let mut reason = "no attached document is a valid signature".to_owned();
        let holds = bundles.iter().any(|bundle| {
            let policy =
                BundlePolicy { signer: signer.clone(), predicate_type: Some(SIGNATURE), subject_name: None, now };
            match sigstore::verify(bundle, &[digest], &policy, root) {
                Ok(_) => true,
                Err(error) => {
                    reason = escape::chain(&error);
                    false
                }
            }
        });
        if !holds {
            return Err(BundleError::NotSigned { path: place.path(), signer: name.clone(), reason });
        }
    }
    Ok((digest, signers.iter().map(|signer| signer.name.clone()).collect()))
}

impl PackedContents {
    /// Reads the bundle at `place`, whose layers may require those of `catalog`. If `expected` is there, the index must have that digest.
    pub fn read(place: BundlePlace, catalog: &Catalog, expected: Option<Digest>) -> Result<Self, BundleError> {
        let (digest, index) = place.index()?;
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            let (name, expected) = (place.path().display().to_string(), Box::new(expected));
            return Err(BundleError::Moved { name, expected, found: Box::new(digest) });
        }
        let path = place.path();
        let Documents { index, manifests, first, document } = Documents::read(&place, &path, &digest, &index)?;
        let blobs = blobs(&path, &document, &index.manifests, &manifests)?;
        let (layers_tar, sources) = (one(&path, &first, LAYERS_TAR)?, one(&path, &first, SOURCES_JSON)?);
        let no_layers = || layout(&path, &digest, "has no layers");
        let folder = tempfile::tempdir()
            .map_err(|source| BundleError::File(FileError::new(std::env::temp_dir(), "write", source)))?;
        let layers = folder.path().join(LAYERS);
        unpack(&place, &document, layers_tar.ok_or_else(no_layers)?, &layers)?;
        let sources = sources.map(|sources| place.blob(sources, MAX_DOCUMENT)).transpose()?;
        if let Some(sources) = &sources {
            let path = folder.path().join(SOURCES);
            std::fs::write(&path, sources)
                .map_err(|source| BundleError::File(FileError::new(path, "write", source)))?;
        }
        let contents = BundleContents::new(document, &layers, sources, catalog, true)?;
        Ok(Self { place, digest, contents, blobs, folder })
    }

    /// Fails unless everything that it says of itself holds, and a consumer's rules as well.
    pub fn require_sound(&self) -> Result<(), BundleError> {
        self.contents.require_sound(&self.place.path())
    }

    /// Bytes of everything in it but documents.
    pub fn size(&self) -> u64 {
        self.blobs.values().map(|blob| blob.size).sum()
    }

    /// Fetches its artifacts for a system and an architecture, and all documents of proofs, into a store.
    pub fn fetch(&self, place: &str, store: &Store) -> Result<(), BundleError> {
        self.fetch_evidence(place, store)?;
        self.fetch_all(self.entries(place).map(|entry| entry.digest), store)
    }

    /// Fetches the documents of proofs for a system and an architecture into a store.
    pub fn fetch_evidence(&self, place: &str, store: &Store) -> Result<(), BundleError> {
        self.fetch_all(self.entries(place).flat_map(|entry| &entry.proof).flat_map(Proof::evidence).copied(), store)
    }

    fn entries(&self, place: &str) -> impl Iterator<Item = &Dependency> {
        self.contents.document.artifacts.get(place).into_iter().flat_map(BTreeMap::values)
    }

    fn fetch_all(&self, wanted: impl Iterator<Item = Digest>, store: &Store) -> Result<(), BundleError> {
        let wanted: BTreeSet<Digest> = wanted.collect();
        wanted
            .iter()
            .filter_map(|digest| self.blobs.get(digest))
            .try_for_each(|blob| self.place.ensure_blob(blob, store))
    }
}

/// The documents of a bundle, which agree with each other.
struct Documents {
    index: ReleaseIndex,
    /// A manifest for each entry of the index.
    manifests: Vec<ArtifactManifest>,
    first: ArtifactManifest,
    document: BundleDocument,
}

impl Documents {
    fn read(place: &BundlePlace, path: &Path, digest: &Digest, index: &[u8]) -> Result<Self, BundleError> {
        let wrong = |what: &str| layout(path, digest, what);
        let index: ReleaseIndex = parse(path, index)?;
        if index.schema_version != 2 || !is_index(&index.media_type, &index.artifact_type) {
            return Err(wrong("is not the index of a bundle"));
        }
        let manifests = index.manifests.iter().map(|entry| manifest(place, entry)).collect::<Result<Vec<_>, _>>()?;
        let first = manifests.first().filter(|first| manifests.iter().all(|one| one.config == first.config));
        let first = first.cloned().ok_or_else(|| wrong("has no manifest, or manifests with different configs"))?;
        let document = BundleDocument::parse(path, &place.blob(&first.config, MAX_DOCUMENT)?)?;
        let arches = index.manifests.iter().map(|entry| entry.platform().map_or("", |(_, arch)| arch));
        match arches.eq(document.arch.iter().map(String::as_str)) {
            true => Ok(Self { index, manifests, first, document }),
            false => Err(wrong("expected one manifest for each architecture of bundle.json")),
        }
    }
}

fn layout(path: &Path, name: &Digest, what: &str) -> BundleError {
    BundleError::Layout { path: path.to_owned(), name: name.to_string(), what: what.to_owned() }
}

/// A manifest that the index names.
fn manifest(place: &BundlePlace, entry: &Descriptor) -> Result<ArtifactManifest, BundleError> {
    let wrong =
        |what: &str| BundleError::Layout { path: place.path(), name: entry.digest.to_string(), what: what.to_owned() };
    if entry.artifact_type.as_deref() != Some(BUNDLE) || entry.media_type.to_string() != MANIFEST {
        return Err(wrong("is listed in the index, but not the manifest of a bundle"));
    }
    let manifest: ArtifactManifest = parse(&place.path(), &place.document(entry)?)?;
    let is_sound = manifest.schema_version == 2
        && manifest.media_type == MANIFEST
        && manifest.artifact_type == BUNDLE
        && manifest.config.media_type.to_string() == CONFIG
        && manifest.subject.is_none();
    match is_sound && manifest.layers.len() <= MAX_BLOBS {
        true => Ok(manifest),
        false => Err(wrong("is not the manifest of a bundle")),
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, BundleError> {
    let syntax = |error| BundleError::syntax(path, &error);
    serde_json::from_value(json::parse(bytes).map_err(syntax)?).map_err(syntax)
}

/// The only layer of that type, if there is one.
fn one<'a>(path: &Path, manifest: &'a ArtifactManifest, kind: &str) -> Result<Option<&'a Descriptor>, BundleError> {
    let mut found = manifest.layers.iter().filter(|layer| layer.media_type.to_string() == kind);
    match (found.next(), found.next()) {
        (only, None) => Ok(only),
        (_, Some(second)) => {
            let (name, what) = (second.digest.to_string(), format!("duplicate {kind}"));
            Err(BundleError::Layout { path: path.to_owned(), name, what })
        }
    }
}

/// The artifacts and documents of proofs, which must be those that `bundle.json` names for each architecture, and nothing else.
fn blobs(
    path: &Path,
    document: &BundleDocument,
    entries: &[Descriptor],
    manifests: &[ArtifactManifest],
) -> Result<BTreeMap<Digest, Descriptor>, BundleError> {
    let mut blobs = BTreeMap::new();
    for (entry, manifest) in entries.iter().zip(manifests) {
        let arch = entry.platform().map_or("", |(_, arch)| arch);
        let of_arch = document.artifacts.iter().filter(|(place, _)| place.ends_with(&format!(".{arch}")));
        let mut named = BTreeMap::new();
        for artifact in of_arch.flat_map(|(_, entries)| entries.values()) {
            named.insert(artifact.digest, artifact.size);
            for digest in artifact.proof.iter().flat_map(Proof::evidence) {
                named.extend(document.evidence.get(digest).map(|known| (*digest, known.size)));
            }
        }
        for layer in &manifest.layers {
            let kind = layer.media_type.to_string();
            let what = match (kind.as_str(), named.remove(&layer.digest)) {
                (BLOB, Some(size)) if size == layer.size => {
                    blobs.insert(layer.digest, layer.clone());
                    continue;
                }
                // These are the same for all architectures: only those of the first are read.
                (LAYERS_TAR | SOURCES_JSON, None)
                    if manifests.first().is_some_and(|first| first.layers.contains(layer)) =>
                {
                    continue;
                }
                (BLOB, Some(_)) => "length differs from bundle.json",
                _ => "is not listed in bundle.json",
            };
            let name = layer.digest.to_string();
            return Err(BundleError::Layout { path: path.to_owned(), name, what: what.to_owned() });
        }
        if let Some((digest, _)) = named.first_key_value() {
            let (name, what) = (digest.to_string(), "is listed in bundle.json, but not in the manifest".to_owned());
            return Err(BundleError::Layout { path: path.to_owned(), name, what });
        }
    }
    Ok(blobs)
}

/// Writes the layers of a bundle to the new folder `to`.
fn unpack(place: &BundlePlace, document: &BundleDocument, of: &Descriptor, to: &Path) -> Result<(), BundleError> {
    let path = place.path();
    let bytes = place.blob(of, MAX_LAYERS)?;
    let all = folder_members(&bytes, &path)?;
    if all.len() > MAX_FILES {
        return Err(BundleError::Limit { path, what: format!("more than {MAX_FILES} files of layers") });
    }
    for TarMember { name, .. } in &all {
        let inside = name.split_once('/').filter(|(layer, _)| document.layers.contains_key(*layer));
        if !inside
            .is_some_and(|(_, rest)| rest == "layer.json" || rest.starts_with("files/") || rest.starts_with("README"))
        {
            let what = "is in the tar file of layers, but not a file of a layer of bundle.json".to_owned();
            return Err(BundleError::Layout { path, name: name.clone(), what });
        }
    }
    std::fs::create_dir(to).map_err(|source| BundleError::File(FileError::new(to, "write", source)))?;
    let member = TarMember { name: LAYERS.to_owned(), header_at: 0, at: 0, len: of.size, is_executable: false };
    let tar: Arc<dyn ReadAt> = Arc::new(bytes);
    Ok(folder::unpack(&tar, &path, &member, to)?)
}
