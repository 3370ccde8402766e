//! Combines the inputs of an image: fetches, verifies and decodes what is pinned, and merges the layers onto the base.

use std::path::Path;
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::disk::{self, Arch, BaseDisk};
use vmbake_disk::ext4;
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Origin, Timestamp, Tree};

use super::inputs::prepare;
use super::{BakeError, BakeRequest};
use vmbake_common::digest::Digest;
use vmbake_common::progress::{Event, PackageVersion, Progress};
use vmbake_compose::merge::{DeferredPackage, Merged, merge};
use vmbake_compose::origin::{self, Ingredients};
use vmbake_compose::stage::Plan;
use vmbake_fetch::images::lay_out;
use vmbake_fetch::verify::{Verified, check};
use vmbake_fetch::{FetchError, FetchedBase, Supply, fetch, fetch_base, open_base_file};
use vmbake_image::identity::{self, BaseIdentity, IdentityError};
use vmbake_layer::{Layer, Layers};
use vmbake_manifest::{Manifest, PinnedAccounts};

/// All inputs of an image as one tree, with the data needed to create a disk.
pub(super) struct Combined {
    pub(super) layers: Vec<Layer>,
    pub(super) base: BaseDisk,
    pub(super) base_digest: Digest,
    /// Length of the base's disk in bytes.
    pub(super) base_len: u64,
    pub(super) file_system: ext4::FileSystem,
    /// Problems of the base that do not stop a bake.
    pub(super) notes: Vec<String>,
    pub(super) epoch: Timestamp,
    pub(super) ingredients: Ingredients,
    pub(super) merged: Merged,
}

/// Evaluates the scripts of all packages and assigns IDs to the accounts that they create: those in the manifest,
/// otherwise unused ones. Writes nothing.
pub fn plan_accounts(request: &BakeRequest, progress: &Progress) -> Result<PinnedAccounts, BakeError> {
    let manifest = Manifest::load_with(&request.manifest, &request.more)?;
    let layers = Layers::load(&request.layers)?;
    let layers = layers.resolve_with(&request.kind, &request.os, &request.more.layers)?;
    Ok(combine(request, &manifest, layers, progress)?.merged.accounts)
}

/// Combines what a manifest pins with `layers`.
pub(super) fn combine(
    request: &BakeRequest,
    manifest: &Manifest,
    layers: Vec<Layer>,
    progress: &Progress,
) -> Result<Combined, BakeError> {
    // Whether an artifact is used is known before any input is read.
    let supply = request.supply();
    let fetched = fetch(manifest, &supply, progress)?;
    let base = request.base(manifest, &supply, progress)?;
    let names = layers.iter().map(|layer| layer.schema.name.clone()).collect();
    let wants_images = layers.iter().any(|layer| layer.schema.images.is_some());
    let plan = Plan::new(layers, manifest)?;

    // All inputs are verified, and decoded unless cached; then the layers are merged into one tree.
    let verified = fetched.proofs.event();
    let Verified { artifacts, images, base } = check(fetched, base, &request.store, request.threads)?;
    let images = wants_images.then(|| lay_out(images)).transpose()?;
    if let Some(exposed) = base.copied() {
        progress.emit(Event::Copied { path: base.path().to_owned(), reason: exposed.to_string() });
    }
    // A wrong base is refused before it is decoded; its partitions are read again afterwards.
    open_base(base.path(), base.image(), request)?;
    let (staged, base) = prepare(plan, artifacts, base, images, &request.store, request.threads)?;
    progress.emit(verified);
    let (path, base_len, base_digest) = (base.path, base.disk.len(), base.digest);
    let base = open_base(&path, base.disk, request)?;
    let notes = base.notes();
    notes.iter().for_each(|note| progress.emit(Event::Note { path: Some(path.clone()), note: note.clone() }));
    let (file_system, base_tree) = read_root(&path, &base)?;
    let target = manifest.content().target();
    let codename = request.sources.system(&target).ok().map(|system| system.codename.as_str());
    identity::check(&path, &base_tree, BaseIdentity { os: &target.os, codename, arch: &target.arch })?;
    origin::check_base(&base_tree, staged.layers())?;
    progress.emit(Event::Read { path, files: base_tree.walk().count() });
    progress.emit(Event::Layers { layers: names });
    let epoch = epoch(&base_tree, request.epoch);
    let ingredients = Ingredients::note(manifest, &staged, &base_tree)?;
    let layers = staged.layers().to_vec();
    let merged = merge(base_tree, staged, manifest, &request.more.granted, epoch)?;
    report_merged(&merged, progress);
    Ok(Combined { layers, base, base_digest, base_len, file_system, notes, epoch, ingredients, merged })
}

/// Reports packages whose state differs from the request of the layers.
fn report_merged(merged: &Merged, progress: &Progress) {
    if !merged.kept.is_empty() {
        let kept = merged.kept.iter().map(|kept| (kept.package.clone(), kept.version.clone()));
        progress.emit(Event::Kept { packages: kept.map(|(name, version)| PackageVersion { name, version }).collect() });
    }
    for (path, privilege) in merged.privileged.clone() {
        progress.emit(Event::Privileged { path, privilege });
    }
    for warning in merged.warnings.iter().cloned() {
        progress.emit(Event::Warning { warning });
    }
    for DeferredPackage { package, reason } in merged.deferred.iter().cloned() {
        progress.emit(Event::Deferred { package, reason });
    }
}

/// Locates the base's partitions and checks that the disk can have the requested size.
fn open_base(path: &Path, disk: Arc<dyn ReadAt>, request: &BakeRequest) -> Result<BaseDisk, BakeError> {
    let (path, arch) = (|| path.to_owned(), request.arch.as_str());
    let base = disk::open(disk, request.partition);
    let base = base.map_err(|error| BakeError::partitions(path(), error))?;
    if let Some(size) = request.size {
        disk::root_len(&base, size).map_err(|error| BakeError::partitions(path(), error))?;
    }
    // A root partition with the generic Linux type does not state the architecture; the packages do.
    match base.arch().map(Arch::name) {
        Some(found) if found != arch => {
            let (expected, found) = (arch.to_owned(), found.to_owned());
            Err(BakeError::Identity(IdentityError::Arch { path: path(), expected, found }))
        }
        _ => Ok(base),
    }
}

fn read_root(path: &Path, base: &BaseDisk) -> Result<(ext4::FileSystem, Tree), BakeError> {
    let path = || path.to_owned();
    let source = base.partition_source(base.root().number);
    let source = source.map_err(|error| BakeError::partitions(path(), error))?;
    let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
    ext4::read_base(source, origin).map_err(|source| {
        BakeError::Message(message!("{}: cannot use the root file system", path().display()).by(source))
    })
}

/// The time of all files created by a bake: as requested, otherwise that of the base's newest file.
fn epoch(base: &Tree, asked: Option<u32>) -> Timestamp {
    let newest = || base.walk().map(|(.., inode)| inode.meta.mtime.secs).max().unwrap_or(0).clamp(0, u32::MAX.into());
    Timestamp { secs: asked.map_or_else(newest, i64::from), nanos: 0 }
}

impl BakeRequest {
    pub(super) fn supply(&self) -> Supply<'_> {
        let Self { store, sources, anchors, threads, .. } = self;
        Supply { store, sources, anchors, client: self.client.as_ref(), threads: *threads }
    }

    fn base(&self, manifest: &Manifest, supply: &Supply<'_>, progress: &Progress) -> Result<FetchedBase, FetchError> {
        match &self.base {
            Some(path) => open_base_file(manifest, path),
            None => fetch_base(manifest, supply, progress),
        }
    }
}
