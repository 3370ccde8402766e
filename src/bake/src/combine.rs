//! Combines the inputs of an image: fetches, verifies and decodes what is pinned, and merges the layers onto the base.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::disk::{self, Arch, BaseDisk};
use vmbake_disk::ext4;
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use super::inputs::{DecodedBase, prepare};
use super::{BakeError, BakeRequest};
use vmbake_common::digest::Digest;
use vmbake_common::progress::{Event, PackageVersion, Progress};
use vmbake_compose::merge::{DeferredPackage, Merged, Pins, merge};
use vmbake_compose::origin::{self, Ingredients};
use vmbake_compose::stage::Plan;
use vmbake_fetch::images::lay_out;
use vmbake_fetch::verify::{self, Verified, check};
use vmbake_fetch::{FetchError, FetchedBase, Supply, fetch, fetch_base, open_base_file};
use vmbake_image::identity::{self, BaseIdentity, IdentityError};
use vmbake_layer::{Layer, LayerError, Layers};
use vmbake_manifest::{ArtifactType, Content, Dependency, Manifest, PinnedAccounts, Proof};
use vmbake_pin::root_base::{self, RootBase};

/// All inputs of an image as one tree, with the data needed to create a disk.
pub(super) struct Combined {
    pub(super) layers: Vec<Layer>,
    /// None if there is no base image with a disk.
    pub(super) base: Option<BaseImage>,
    /// Digest of the base, if there is one.
    pub(super) base_digest: Option<Digest>,
    pub(super) epoch: Timestamp,
    pub(super) ingredients: Ingredients,
    pub(super) merged: Merged,
}

/// A decoded base image.
pub(super) struct BaseImage {
    pub(super) disk: BaseDisk,
    /// Digest of its file.
    pub(super) digest: Digest,
    /// Length of its disk in bytes.
    pub(super) len: u64,
    pub(super) file_system: ext4::FileSystem,
    /// Problems that do not stop a bake.
    pub(super) notes: Vec<String>,
}

/// Evaluates the scripts of all packages and assigns IDs to the accounts that they create: those in the manifest,
/// unless they belong to other accounts by now, otherwise unused ones. Writes nothing.
pub fn plan_accounts(request: &BakeRequest, progress: &Progress) -> Result<PinnedAccounts, BakeError> {
    let manifest = Manifest::load_with(&request.manifest, &request.more)?;
    let layers = request.layers_of(&manifest, &Layers::load(&request.layers)?)?;
    Ok(combine(request, &manifest, layers, Pins::Preferred, progress)?.merged.accounts)
}

/// Whether a layer gives an ID to one account that the manifest pins for another one.
pub fn has_taken_accounts(request: &BakeRequest, manifest: &Manifest) -> Result<bool, BakeError> {
    let Some(PinnedAccounts { users, groups }) = &manifest.content().accounts else { return Ok(false) };
    let layers = request.layers_of(manifest, &Layers::load(&request.layers)?)?;
    let takes = |pinned: &BTreeMap<String, u32>, name: &String, id: u32| {
        pinned.iter().any(|(other, pinned)| *pinned == id && other != name)
    };
    Ok(layers.iter().map(|layer| &layer.schema).any(|schema| {
        let mut of_users = schema.users.iter().map(|(name, user)| (name, user.id));
        of_users.any(|(name, id)| takes(users, name, id) || takes(groups, name, id))
            || schema.groups.iter().any(|(name, id)| takes(groups, name, *id))
    }))
}

/// Combines what a manifest pins with `layers`.
pub(super) fn combine(
    request: &BakeRequest,
    manifest: &Manifest,
    layers: Vec<Layer>,
    pins: Pins,
    progress: &Progress,
) -> Result<Combined, BakeError> {
    // Whether an artifact is used is known before any input is read.
    let supply = request.supply();
    let fetched = fetch(manifest, &supply, progress)?;
    let base = request.base(manifest, &supply, progress)?;
    let root = root_base::read(&request.store, supply.client, manifest.content()).map_err(FetchError::from)?;
    let names = layers.iter().map(|layer| layer.schema.name.clone()).collect();
    let wants_images = layers.iter().any(|layer| layer.schema.images.is_some());
    let plan = Plan::new(layers, manifest)?;

    // All inputs are verified, and decoded unless cached; then the layers are merged into one tree.
    let verified = fetched.proofs.event();
    let Verified { artifacts, images, base } = check(fetched, base, &request.store, request.threads)?;
    let images = wants_images.then(|| lay_out(images)).transpose()?;
    if let Some(base) = &base {
        if let Some(exposed) = base.copied() {
            progress.emit(Event::Copied { path: base.path().to_owned(), reason: exposed.to_string() });
        }
        // A wrong base is refused before it is decoded; its partitions are read again afterwards.
        open_base(base.path(), base.image(), request)?;
    }
    let (staged, base) = prepare(plan, artifacts, base, images, &request.store, request.threads)?;
    progress.emit(verified);
    let (base, base_digest, base_tree) = match (base, root) {
        (Some(base), _) => {
            let (base, tree) = read_base(base, request, manifest, staged.layers(), progress)?;
            let digest = base.digest;
            (Some(base), Some(digest), Some(tree))
        }
        (None, Some(RootBase { path, digest, tree })) => {
            let identity = request.identity(manifest.content());
            identity::check_root(&path, &tree, identity)?;
            accept_base(path, &tree, staged.layers(), progress)?;
            (None, Some(digest), Some(tree))
        }
        (None, None) => (None, None, None),
    };
    let epoch = match &base_tree {
        Some(tree) => epoch(tree, request.epoch),
        None => request.epoch.map_or_else(|| newest_release(manifest.content()), time),
    };
    let base_tree = base_tree.unwrap_or_else(|| empty(epoch));
    progress.emit(Event::Layers { layers: names });
    let ingredients = Ingredients::note(manifest, &staged, &base_tree)?;
    let layers = staged.layers().to_vec();
    let merged = merge(base_tree, staged, manifest, &request.more.granted, pins, epoch)?;
    report_merged(&merged, progress);
    if base.is_none() {
        check_deferred(&merged, manifest)?;
    }
    Ok(Combined { layers, base, base_digest, epoch, ingredients, merged })
}

/// Reads the root file system of a base image.
fn read_base(
    base: DecodedBase,
    request: &BakeRequest,
    manifest: &Manifest,
    layers: &[Layer],
    progress: &Progress,
) -> Result<(BaseImage, Tree), BakeError> {
    let (path, len, digest) = (base.path, base.disk.len(), base.digest);
    let disk = open_base(&path, base.disk, request)?;
    let notes = disk.notes();
    notes.iter().for_each(|note| progress.emit(Event::Note { path: Some(path.clone()), note: note.clone() }));
    let (file_system, tree) = read_root(&path, &disk)?;
    identity::check(&path, &tree, request.identity(manifest.content()))?;
    accept_base(path, &tree, layers, progress)?;
    Ok((BaseImage { disk, digest, len, file_system, notes }, tree))
}

/// Checks that layers can be merged onto a base, and reports it.
fn accept_base(path: PathBuf, tree: &Tree, layers: &[Layer], progress: &Progress) -> Result<(), BakeError> {
    origin::check_base(tree, layers)?;
    progress.emit(Event::Read { path, files: tree.walk().count() });
    Ok(())
}

/// The root directory alone.
fn empty(epoch: Timestamp) -> Tree {
    let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
    Tree::new(Metadata::root(0o755, epoch), origin)
}

/// The program that runs the unit of deferred packages.
const SYSTEMD: &str = "/usr/lib/systemd/systemd";

/// Checks that something configures the packages that wait for the first boot.
fn check_deferred(merged: &Merged, manifest: &Manifest) -> Result<(), BakeError> {
    match merged.deferred.first().cloned() {
        Some(DeferredPackage { package, reason }) if merged.tree.lookup(SYSTEMD.as_bytes()).is_none() => {
            Err(BakeError::NoSystemd { name: manifest.name(), package, reason })
        }
        _ => Ok(()),
    }
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
    let newest = || base.walk().map(|(.., inode)| inode.meta.mtime.secs).max().unwrap_or(0);
    asked.map_or_else(|| time(newest()), time)
}

/// The same without a base: the newest `Date` of the releases that list its packages.
fn newest_release(content: &Content) -> Timestamp {
    let date = |entry: &Dependency| match &entry.proof {
        Some(Proof::Apt { date, .. }) => Some(date.as_second()),
        _ => None,
    };
    time(content.dependencies.values().filter_map(date).max().unwrap_or(0))
}

fn time(secs: impl Into<i64>) -> Timestamp {
    Timestamp { secs: secs.into().clamp(0, u32::MAX.into()), nanos: 0 }
}

impl BakeRequest {
    pub(super) fn supply(&self) -> Supply<'_> {
        let Self { store, sources, anchors, threads, .. } = self;
        Supply { store, sources, anchors, client: self.client.as_ref(), threads: *threads }
    }

    /// The layers of the image.
    pub(super) fn layers_of(&self, manifest: &Manifest, all: &Layers) -> Result<Vec<Layer>, LayerError> {
        all.resolve_on(manifest.content().bottom(), &self.kind, &self.os, &self.more.layers)
    }

    /// What a base must be.
    fn identity<'a>(&'a self, content: &'a Content) -> BaseIdentity<'a> {
        let codename = self.sources.system(&content.target()).ok().map(|system| system.codename.as_str());
        BaseIdentity { os: &content.os.name, codename, arch: &content.os.arch }
    }

    /// The base image; none if the system is made of packages, or the base has no disk. A given archive is copied into
    /// the store.
    fn base(
        &self,
        manifest: &Manifest,
        supply: &Supply<'_>,
        progress: &Progress,
    ) -> Result<Option<FetchedBase>, BakeError> {
        self.check_base(manifest)?;
        let fetched = match &self.base {
            _ if manifest.content().system().is_some() => return Ok(None),
            Some(path) if manifest.content().root_base().is_some() => {
                verify::keep_root(manifest, path, &self.store)?;
                return Ok(None);
            }
            None if manifest.content().root_base().is_some() => return Ok(None),
            Some(path) => open_base_file(manifest, path),
            None => fetch_base(manifest, supply, progress),
        };
        Ok(Some(fetched?))
    }

    /// Fails if an image without a base image is wanted with what only a base image provides.
    pub(super) fn check_base(&self, manifest: &Manifest) -> Result<(), BakeError> {
        let content = manifest.content();
        if content.root_base().is_none() && content.system().is_none() {
            return Ok(());
        }
        let is_file = content.root_base().is_some_and(|base| base.kind == ArtifactType::Tar);
        let given = [
            ("--base", self.base.is_some() && !is_file, "a disk image as the base"),
            ("--partition", self.partition.is_some(), "a disk image as the base"),
            ("--size", self.size.is_some() && !self.wants_disk(), "--format raw or qcow2"),
        ];
        match given.into_iter().find(|(_, is_given, _)| *is_given) {
            Some((option, _, needed)) => {
                Err(message!("{}: {option} needs {needed}, but {}", manifest.name(), self.system_of(manifest)).into())
            }
            None => Ok(()),
        }
    }

    /// What the system of an image without a base image is based on, for messages.
    pub(super) fn system_of(&self, manifest: &Manifest) -> &'static str {
        match manifest.content().root_base() {
            None => "its system is made of packages",
            Some(base) if base.kind == ArtifactType::Oci => "its base is a container image",
            Some(_) => "its base is an archive",
        }
    }

    /// Whether a disk is laid out, even if only to be read.
    pub(super) fn wants_disk(&self) -> bool {
        self.formats.is_empty() || self.formats.iter().any(|format| format.disk().is_some())
    }
}
