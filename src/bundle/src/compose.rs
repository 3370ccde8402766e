//! Adds bundles to an image: locations and trusted publishers in; layers, sources and artifacts for a bake out.
//!
//! Steps: read the index and find the publisher; verify the signature; read description and layers; check rules, grants, lock and
//! conflicts; only then download artifacts into the store. A bake verifies them again, with the user's trust anchors.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::conflicts::conflicts;
use super::contents::{BundleContents, LAYERS, SOURCES};
use super::document::{BundleDocument, Need};
use super::error::BundleError;
use super::lock::{BundleLock, LockRules, TakenFrom};
use super::packed::{PackedContents, publisher_of, require_signed};
use super::pins::{Pins, content};
use super::place::BundlePlace;
use super::publisher::Publisher;
use super::upgrade::BundleUpgrade;
use vmbake_bake::BakeRequest;
use vmbake_common::catalog::Catalog;
use vmbake_common::message::FileError;
use vmbake_layer::Layers;
use vmbake_layer::real_path::real;
use vmbake_manifest::{Additions, Content, ImageNeed, LayerGrants, NeedKind, PinnedBundle, Target};
use vmbake_pin::anchors::Anchors;
use vmbake_pin::prove::Prover;
use vmbake_pin::sources::Sources;
use vmbake_proof::sigstore::SigstoreRoot;
use vmbake_store::store::Store;

/// Whom to believe, and what was taken before.
pub struct ComposeRequest<'a> {
    /// Folder with what is known of publishers.
    pub publishers: &'a Path,
    /// Folder of the manifests, where the lock is.
    pub manifests: &'a Path,
    pub lock: BundleLock,
    /// What may change of the bundle of that name in the lock.
    pub rules: &'a dyn Fn(&str) -> LockRules,
    /// Where the layers of the image are.
    pub layers: &'a Catalog,
    /// Authorities and logs of sigstore.
    pub root: &'a SigstoreRoot,
    /// Time of the check.
    pub now: Timestamp,
}

/// Bundles that go together with an image. Their layers are in folders that are removed with this value.
pub struct Composition {
    bundles: Vec<PackedContents>,
    /// Who has signed each of them.
    signers: Vec<String>,
    lock: BundleLock,
    manifests: PathBuf,
}

impl Composition {
    /// Reads the bundles at these places, of which each must be signed, granted and admitted by the lock.
    pub fn read(places: Vec<BundlePlace>, request: ComposeRequest<'_>) -> Result<Self, BundleError> {
        let before = request.lock.clone();
        let (mut bundles, mut signers, mut lock) = (Vec::new(), Vec::new(), request.lock);
        // Layers of one bundle may require those of another, so all of them are looked for everywhere.
        let mut catalog = request.layers.clone();
        for place in places {
            let name = publisher_of(&place)?;
            let (publisher, path) =
                (Publisher::load(request.publishers, &name)?, Publisher::path(request.publishers, &name));
            let signed_by = publisher.signer(&path)?;
            let signer = signed_by.name.clone();
            let (digest, _) = require_signed(&place, &[signed_by], request.root, request.now)?;
            let packed = PackedContents::read(place, &catalog, Some(digest))?;
            publisher.check_grant(&packed.place, &packed.contents.document)?;
            packed.require_sound()?;
            let from = TakenFrom { digest, signer, repository: packed.place.repository() };
            lock.take(&packed.contents, from, (request.rules)(&packed.contents.document.title()))?;
            catalog = catalog.with(packed.folder.path().join(LAYERS));
            bundles.push(packed);
            signers.push(publisher.signed_by(&path)?);
        }
        require_known(&bundles, &before)?;
        Ok(Self { bundles, signers, lock, manifests: request.manifests.to_owned() })
    }

    pub fn bundles(&self) -> impl Iterator<Item = &PackedContents> {
        self.bundles.iter()
    }

    /// What is locked with these bundles, written down or not.
    pub fn lock(&self) -> &BundleLock {
        &self.lock
    }

    /// Everything that keeps the bundles from an image whose own layers are in `catalog`.
    pub fn conflicts(&self, target: &Target, catalog: &Catalog) -> Result<Vec<String>, BundleError> {
        let bundles: Vec<&BundleContents> = self.bundles.iter().map(|bundle| &bundle.contents).collect();
        let own: Vec<String> = bundles.iter().flat_map(|bundle| bundle.own_names()).collect();
        let mut layers = Layers::load(catalog)?.resolve(&target.kind, &target.os)?;
        // So are those that bundles require of the user.
        let all = Layers::load(&self.layers(catalog))?.order_with(&target.kind, &target.os, &own)?;
        let known: Vec<String> = layers.iter().map(|layer| layer.schema.name.clone()).chain(own).collect();
        layers.extend(all.into_iter().filter(|layer| !known.contains(&layer.schema.name)));
        Ok(conflicts(target, &layers, &bundles))
    }

    /// Fails if anything keeps the bundles from that image.
    pub fn require_compatible(&self, target: &Target, catalog: &Catalog) -> Result<(), BundleError> {
        match self.conflicts(target, catalog)? {
            conflicts if conflicts.is_empty() => Ok(()),
            conflicts => Err(BundleError::Conflicts { conflicts }),
        }
    }

    /// Makes the bundles inputs of a bake: their layers, sources and artifacts. `sources` lists the user's sources.
    ///
    /// Fails if anything keeps them from that image. Their artifacts are not downloaded: see [`Self::fetch`].
    pub fn add_to(&self, request: &mut BakeRequest, sources: &Catalog) -> Result<(), BundleError> {
        let BakeRequest { kind, os, arch, .. } = &*request;
        let target = Target { kind: kind.clone(), os: os.clone(), arch: arch.clone() };
        self.require_compatible(&target, &request.layers)?;
        request.layers = self.layers(&request.layers);
        request.sources = Sources::load(&self.sources(sources))?;
        request.more = self.additions(&target)?;
        Ok(())
    }

    /// Where layers are, with those of the bundles.
    pub fn layers(&self, catalog: &Catalog) -> Catalog {
        let folders = self.bundles.iter().map(|bundle| bundle.folder.path().join(LAYERS));
        folders.fold(catalog.clone(), |catalog, folder| catalog.with(folder))
    }

    /// Where sources are, with those of the bundles.
    pub fn sources(&self, catalog: &Catalog) -> Catalog {
        let with_sources = self.bundles.iter().filter(|bundle| bundle.contents.sources.is_some());
        let files = with_sources.map(|bundle| bundle.folder.path().join(SOURCES));
        files.fold(catalog.clone(), |catalog, file| catalog.with(file))
    }

    /// What the bundles add to the manifest of an image.
    pub fn additions(&self, target: &Target) -> Result<Additions, BundleError> {
        let mut all = Additions::default();
        for (packed, signer) in self.bundles.iter().zip(&self.signers) {
            let PackedContents { place, digest, contents, .. } = packed;
            let document = &contents.document;
            let content = content_of(contents, target)?;
            let layers: Vec<String> = contents.own_names().collect();
            let pinned = PinnedBundle {
                version: document.version.to_string(),
                digest: *digest,
                publisher: document.publisher.clone(),
                signer: signer.clone(),
                layers: layers.iter().cloned().collect(),
            };
            let reference = place.repository().map(|repository| format!("oci://{repository}@{digest}"));
            all.references.extend(reference.map(|reference| (document.title(), reference)));
            all.bundles.insert(document.title(), pinned);
            all.dependencies.extend(content.dependencies);
            all.evidence.extend(content.evidence);
            all.requests.extend(content.requests);
            let [paths, setuid] = [&document.asks.paths, &document.asks.setuid]
                .map(|paths| paths.iter().map(|path| real(path)).collect::<Vec<_>>());
            let variables = document.required_layers().map(str::to_owned).collect();
            let grants = LayerGrants { paths, setuid, variables };
            all.granted.extend(layers.iter().map(|layer| (layer.clone(), grants.clone())));
            all.layers.extend(layers);
            all.needs.extend(document.requires.iter().filter_map(|need| image_need(document, need)));
        }
        Ok(all)
    }

    /// Proves the artifacts for an image from the documents that the bundles carry, by these sources and trust anchors. No artifact is
    /// fetched, and nothing of the documents stays.
    pub fn prove(&self, target: &Target, sources: &Sources, anchors: &Anchors) -> Result<(), BundleError> {
        let folder = tempfile::tempdir()
            .map_err(|source| BundleError::File(FileError::new(std::env::temp_dir(), "write", source)))?;
        let store = Store::open(Some(folder.path().to_owned()))?;
        let prover = Prover::new(&store, sources, anchors, None);
        let place = format!("{}.{}", target.os, target.arch);
        for bundle in &self.bundles {
            bundle.fetch_evidence(&place, &store)?;
            let contents = &bundle.contents;
            let content = content_of(contents, target)?;
            for (name, entry) in &content.dependencies {
                prover.dependency(&content, name, entry).map_err(|source| BundleError::Unproven {
                    title: contents.document.title(),
                    name: name.clone(),
                    source: Box::new(source),
                })?;
            }
        }
        Ok(())
    }

    /// What becomes of the bundles of this composition in a lock that was `old`, in their order.
    pub fn upgrades(&self, old: &BundleLock) -> Vec<BundleUpgrade> {
        let titles = self.bundles.iter().map(|bundle| bundle.contents.document.title());
        let change = |title: String| Some(BundleUpgrade::between(&title, old.get(&title), self.lock.get(&title)?));
        titles.filter_map(change).collect()
    }

    /// Fetches the artifacts for an image into the store.
    pub fn fetch(&self, target: &Target, store: &Store) -> Result<(), BundleError> {
        let place = format!("{}.{}", target.os, target.arch);
        self.bundles.iter().try_for_each(|bundle| bundle.fetch(&place, store))
    }

    /// Writes down which bundles were taken, for an image that is there now: what never was in an image may still change. Tells whether that was
    /// not there already.
    pub fn save_lock(&self) -> Result<bool, BundleError> {
        self.lock.save(&self.manifests)
    }
}

/// Refuses a new bundle from a repository of a locked bundle, unless that one is present as well: the registry may have substituted it.
fn require_known(bundles: &[PackedContents], before: &BundleLock) -> Result<(), BundleError> {
    let titles: Vec<String> = bundles.iter().map(|bundle| bundle.contents.document.title()).collect();
    for (bundle, title) in bundles.iter().zip(&titles).filter(|(_, title)| before.get(title).is_none()) {
        let Some(repository) = bundle.place.repository() else { continue };
        if let Some((expected, _)) = before.from_repository(&repository)
            && !titles.iter().any(|title| title == expected)
        {
            let (expected, found) = (expected.to_owned(), title.clone());
            return Err(BundleError::OtherBundle { name: repository, expected, found });
        }
    }
    Ok(())
}

/// What a manifest would say of a bundle.
pub fn content_of(contents: &BundleContents, target: &Target) -> Result<Content, BundleError> {
    let BundleDocument { artifacts, evidence, .. } = &contents.document;
    content(&Pins { artifacts: artifacts.clone(), evidence: evidence.clone() }, &contents.own, target)
}

/// What a finished image must have; layers are looked for before.
fn image_need(document: &BundleDocument, need: &Need) -> Option<ImageNeed> {
    let kinds =
        [(NeedKind::Program, &need.program), (NeedKind::Library, &need.library), (NeedKind::Module, &need.module)];
    let (kind, name) = kinds.into_iter().find_map(|(kind, name)| Some((kind, name.clone()?)))?;
    Some(ImageNeed { by: format!("bundle {}", document.title()), kind, name })
}
