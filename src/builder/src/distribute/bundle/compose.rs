//! Bundles for an image: places and what is known of publishers enter; layers, sources and artifacts for a bake leave.
//!
//! The order is: who publishes it, by its index; who has signed that; its description and layers; whether they are sound, granted and
//! locked, and go together with the image and each other; and only then its artifacts, which come into the store. A bake proves them again,
//! by the consumer's own trust anchors.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::conflicts::conflicts;
use super::contents::{BundleContents, LAYERS, SOURCES};
use super::document::{BundleDocument, Need};
use super::error::BundleError;
use super::lock::{BundleLock, LockRules};
use super::packed::{PackedContents, publisher_of, require_signed};
use super::pins::{Pins, content};
use super::place::BundlePlace;
use super::publisher::Publisher;
use super::words::real;
use crate::catalog::Catalog;
use crate::layer::Layers;
use crate::manifest::{Additions, ImageNeed, NeedKind, Target};
use crate::pin::proof::sigstore::SigstoreRoot;
use crate::supply::store::Store;

/// Whom to believe, and what was taken before.
pub struct ComposeRequest<'a> {
    /// Folder with what is known of publishers.
    pub publishers: &'a Path,
    /// Folder of the manifests, where the lock is.
    pub manifests: &'a Path,
    /// What an image before this one has taken, which is not written down yet.
    pub before: Option<&'a Composition>,
    /// What may change in the lock.
    pub rules: LockRules,
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
    lock: BundleLock,
    manifests: PathBuf,
}

impl Composition {
    /// Reads the bundles at these places, of which each must be signed, granted and admitted by the lock.
    pub fn read(places: Vec<BundlePlace>, request: &ComposeRequest<'_>) -> Result<Self, BundleError> {
        let known = request.before.map(|before| Ok(before.lock.clone()));
        let (mut bundles, mut lock) = (Vec::new(), known.unwrap_or_else(|| BundleLock::load(request.manifests))?);
        // Layers of one bundle may require those of another, so all of them are looked for everywhere.
        let mut catalog = request.layers.clone();
        for place in places {
            let name = publisher_of(&place)?;
            let publisher = Publisher::load(request.publishers, &name)?;
            let signer = publisher.signer(&Publisher::path(request.publishers, &name))?;
            let said = signer.name.clone();
            let (digest, _) = require_signed(&place, &[signer], request.root, request.now)?;
            let packed = PackedContents::read(place, &catalog, Some(digest))?;
            publisher.judge(&packed.place, &packed.contents.document)?;
            packed.require_sound()?;
            lock.take(&packed.contents.document, digest, &said, request.rules)?;
            catalog = catalog.with(packed.folder.path().join(LAYERS));
            bundles.push(packed);
        }
        Ok(Self { bundles, lock, manifests: request.manifests.to_owned() })
    }

    /// The bundles.
    pub fn bundles(&self) -> impl Iterator<Item = &PackedContents> {
        self.bundles.iter()
    }

    /// Everything that keeps the bundles from an image whose own layers are in `catalog`.
    pub fn conflicts(&self, target: &Target, catalog: &Catalog) -> Result<Vec<String>, BundleError> {
        let bundles: Vec<&BundleContents> = self.bundles.iter().map(|bundle| &bundle.contents).collect();
        let own: Vec<String> = bundles.iter().flat_map(|bundle| bundle.own_names()).collect();
        let mut layers = Layers::load(catalog)?.resolve(&target.kind, &target.os)?;
        // So are those that bundles require of whoever bakes.
        let all = Layers::load(&self.layers(catalog))?.resolve_with(&target.kind, &target.os, &own)?;
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
        for PackedContents { contents, .. } in &self.bundles {
            let document = &contents.document;
            let pins = Pins { artifacts: document.artifacts.clone(), evidence: document.evidence.clone() };
            let content = content(&pins, &contents.own, target)?;
            all.layers.extend(contents.own_names());
            all.dependencies.extend(content.dependencies);
            all.evidence.extend(content.evidence);
            all.requests.extend(content.requests);
            let paths: Vec<String> = document.asks.paths.iter().map(|path| real(path)).collect();
            all.granted.extend(contents.own.iter().map(|layer| (layer.schema.name.clone(), paths.clone())));
            all.needs.extend(document.requires.iter().filter_map(|need| image_need(document, need)));
        }
        Ok(all)
    }

    /// Brings the artifacts for an image into the store.
    pub fn bring(&self, target: &Target, store: &Store) -> Result<(), BundleError> {
        let place = format!("{}.{}", target.os, target.arch);
        self.bundles.iter().try_for_each(|bundle| bundle.bring(&place, store))
    }

    /// Writes down which bundles were taken, for an image that is there now: what never was in an image may still change.
    pub fn save_lock(&self) -> Result<(), BundleError> {
        self.lock.save(&self.manifests)
    }
}

/// What a finished image must have; layers are looked for before.
fn image_need(document: &BundleDocument, need: &Need) -> Option<ImageNeed> {
    let kinds =
        [(NeedKind::Program, &need.program), (NeedKind::Library, &need.library), (NeedKind::Module, &need.module)];
    let (kind, name) = kinds.into_iter().find_map(|(kind, name)| Some((kind, name.clone()?)))?;
    Some(ImageNeed { by: format!("bundle {}", document.title()), kind, name })
}
