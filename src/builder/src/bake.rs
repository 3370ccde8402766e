//! The whole path of an image, as numbered steps.

mod all;
mod error;
pub mod inputs;
mod outputs;
mod recipe;

pub use all::bake_all;
pub use error::BakeError;
pub use recipe::source_date_epoch;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use vmbake_disk::disk::{self, Arch, BaseDisk, Disk};
use vmbake_disk::ext4::{self, VolumeOptions};
use vmbake_disk::image::Format;
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Origin, Timestamp, Tree};

use crate::atomic_file::Pending;
use crate::bake::inputs::prepare;
use crate::catalog::Catalog;
use crate::compose::merge::{DeferredPackage, merge};
use crate::compose::origin::{self, Ingredients};
use crate::compose::stage::Plan;
use crate::digest::Digest;
use crate::fetch::images::lay_out;
use crate::fetch::verify::{Verified, check};
use crate::fetch::{FetchError, FetchedBase, Supply, fetch, fetch_base, open_base_file};
use crate::incremental::checksums::Checksum;
use crate::incremental::previous_bake::PreviousBake;
use crate::incremental::published::Sidecar;
use crate::layer::Layers;
use crate::manifest::Manifest;
use crate::pin::anchors::Anchors;
use crate::pin::sources::Sources;
use crate::progress::{Event, PackageVersion, Progress};
use crate::query::lint::lint;
use crate::supply::http::Client;
use crate::supply::store::Store;
use outputs::Unchanged;

/// What to bake, from what, and where to.
#[derive(Clone, Debug)]
pub struct BakeRequest {
    /// Kind of image: the name of its top layer.
    pub kind: String,
    /// Operating system, such as `debian-13`.
    pub os: String,
    /// Architecture as Debian names it.
    pub arch: String,
    /// The manifest's file.
    pub manifest: PathBuf,
    /// The base disk image; `None` takes the one that the manifest pins, from the store.
    pub base: Option<PathBuf>,
    /// Number of the base's root partition; `None` where that is obvious.
    pub partition: Option<u32>,
    /// Where layers are.
    pub layers: Catalog,
    /// Where the artifacts are.
    pub store: Store,
    /// What proof the artifacts must have.
    pub sources: Sources,
    /// Whom to believe.
    pub anchors: Anchors,
    /// Downloads what is missing in the store; `None` offline.
    pub client: Option<Client>,
    /// Length of the disk in bytes; `None` keeps the base's.
    pub size: Option<u64>,
    /// Time of the files that the bake makes, in seconds since 1970; `None` takes that of the base's newest file.
    pub epoch: Option<u32>,
    /// Formats to write, without repetition.
    pub formats: Vec<Format>,
    /// Output directory.
    pub out: PathBuf,
    /// Whether existing outputs are replaced.
    pub force: bool,
    /// Threads for hashing, copying and compressing.
    pub threads: NonZeroUsize,
}

/// What a bake made.
#[derive(Debug, Serialize)]
pub struct Baked {
    /// `<kind>.<os-name>.<arch>`.
    pub name: String,
    /// SHA-256 of what is beside the images.
    #[serde(flatten)]
    pub sidecars: BTreeMap<Sidecar, Digest>,
    /// The written images.
    pub outputs: Vec<BakedFile>,
    /// What was wrong with the base and did not stop the bake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One written image.
#[derive(Debug, Serialize)]
pub struct BakedFile {
    /// Where it is.
    pub path: PathBuf,
    /// `raw` or `qcow2`.
    pub format: String,
    /// Length of the file in bytes.
    pub size: u64,
    /// Its checksum: `digest` of a qcow2 file, `fsverity` of a raw one.
    #[serde(flatten)]
    pub checksum: Checksum,
}

/// An image that only has to be written.
struct Authored<'a> {
    request: &'a BakeRequest,
    /// `<kind>.<os-name>.<arch>`.
    name: String,
    /// What is to be beside the images.
    sidecars: BTreeMap<Sidecar, Vec<u8>>,
    disk: Disk,
    previous: PreviousBake<'a>,
    pending: BTreeMap<Format, Pending>,
    notes: Vec<String>,
}

/// What came of the first steps of a bake. Nothing of the output directory that other bakes use was changed.
enum Prepared<'a> {
    /// Nothing is left to be done, but that these checksums must be listed.
    Unchanged(&'a BakeRequest, Box<Unchanged>),
    Authored(Box<Authored<'a>>),
}

/// Does all but writing the disk.
fn author<'a>(request: &'a BakeRequest, progress: &Progress) -> Result<Prepared<'a>, BakeError> {
    // 1. What the last bake made of the same inputs stays. Else the outputs get their place first: a bake that could not be
    //    published must not run.
    let manifest = Manifest::load(&request.manifest)?;
    manifest.require(&request.manifest, &request.kind, &request.os, &request.arch)?;
    let layers = Layers::load(&request.layers)?;
    layers.overridden().iter().for_each(|one| progress.tell(Event::Override(one.clone())));
    let layers = layers.resolve(&request.kind, &request.os)?;
    let targets = request.targets(&manifest.name());
    let program = request.store.running_program().ok_or(BakeError::Program)?;
    let previous = PreviousBake::look(&request.store, program, &targets);
    if let Some(unchanged) = request.unchanged(&manifest, &layers, &previous, progress)? {
        return Ok(Prepared::Unchanged(request, Box::new(unchanged)));
    }
    let pending = request.outputs(&targets)?;

    // 2. Who installs what is known before anything is read.
    let supply = request.supply();
    let fetched = fetch(&manifest, &supply, progress)?;
    let base = request.base(&manifest, &supply, progress)?;
    let names = layers.iter().map(|layer| layer.schema.name.clone()).collect();
    let wants_images = layers.iter().any(|layer| layer.schema.images.is_some());
    let plan = Plan::new(layers, &manifest)?;

    // 3. Every input is proven, and decoded where no earlier bake has; then the layers are merged into one tree.
    let verified = fetched.verdict.event();
    let Verified { artifacts, images, base } = check(fetched, base, &request.store, request.threads)?;
    let images = wants_images.then(|| lay_out(images)).transpose()?;
    if let Some(exposed) = base.copied() {
        progress.tell(Event::Copied { path: base.path().to_owned(), reason: exposed.to_string() });
    }
    // A wrong one is refused before it is decoded; its partitions are read again then.
    open_base(base.path(), base.image(), request)?;
    let (staged, base) = prepare(plan, artifacts, base, images, &request.store, request.threads)?;
    progress.tell(verified);
    let inputs = request.inputs(&manifest, staged.layers(), program, base.digest);
    let (path, base_len) = (base.path, base.disk.len());
    let base = open_base(&path, base.disk, request)?;
    let notes = base.notes();
    notes.iter().for_each(|note| progress.tell(Event::Note { path: Some(path.clone()), note: note.clone() }));
    let (file_system, base_tree) = read_root(&path, &base)?;
    origin::check_base(&base_tree, staged.layers())?;
    progress.tell(Event::Read { path, files: base_tree.walk().count() });
    progress.tell(Event::Layers { layers: names });
    let epoch = epoch(&base_tree, request.epoch);
    let ingredients = Ingredients::note(&manifest, &staged, &base_tree)?;
    let mut merged = merge(base_tree, staged, &manifest, epoch)?;
    if !merged.kept.is_empty() {
        let kept = merged.kept.iter().map(|kept| (kept.package.clone(), kept.version.clone()));
        progress.tell(Event::Kept { packages: kept.map(|(name, version)| PackageVersion { name, version }).collect() });
    }
    for DeferredPackage { package, reason } in merged.deferred.iter().cloned() {
        progress.tell(Event::Deferred { package, reason });
    }
    let origins = origin::record(&ingredients, &mut merged, epoch)?;
    let tree = merged.tree;
    if let Some(finding) = lint(&tree).into_iter().find(|finding| !finding.ok) {
        return Err(BakeError::Unclean(Box::new(finding)));
    }
    progress.tell(Event::Merged { files: tree.walk().count() });

    // 4. The tree becomes a file system, the file system a disk.
    let disk_len = request.size.unwrap_or(base_len);
    let options = VolumeOptions {
        size: ext4::Size::Exact(disk::root_len(&base, disk_len).map_err(BakeError::Assemble)?),
        uuid: file_system.uuid,
        label: file_system.label,
        // The base's: another manifest must not give the names of large directories another order.
        hash_seed: file_system.hash_seed,
        epoch: u32::try_from(epoch.secs).unwrap_or(u32::MAX),
    };
    let volume = ext4::author(&tree, &options)?;
    let disk = disk::assemble(&base, disk_len, volume.map(), volume.sources()).map_err(BakeError::Assemble)?;
    progress.tell(Event::Authored { bytes: disk.map().data_len(), disk_bytes: disk_len });

    let sidecars = [
        (Sidecar::Manifest, manifest.text().to_vec()),
        (Sidecar::Origins, origins),
        (Sidecar::Inputs, inputs.to_text().map_err(BakeError::Json)?),
    ];
    let (name, sidecars) = (manifest.name(), sidecars.into());
    Ok(Prepared::Authored(Box::new(Authored { request, name, sidecars, disk, previous, pending, notes })))
}

impl Prepared<'_> {
    fn write(self, progress: &Progress) -> Result<Baked, BakeError> {
        let Authored { request, name, sidecars, disk, previous, pending, notes } = match self {
            Self::Unchanged(request, unchanged) => return Ok(unchanged.list(&request.out)?),
            Self::Authored(authored) => *authored,
        };
        // 5. Each byte is read once, and written, compressed and hashed on the way, unless the last bake has done that.
        let id = disk.content_id(0..disk.len()).map(|id| Digest::Sha256(id.0));
        let written = request.write(&disk, id, &previous, &pending, progress)?;
        let (baked, published) = request.publish(name, &sidecars, pending, &written, progress)?;
        if let Some((disk, published)) = id.zip(published) {
            previous.note(disk, &published, written);
        }
        Ok(Baked { notes, ..baked })
    }
}

/// Finds the base's partitions, and whether the disk can have the size that is asked for.
fn open_base(path: &Path, disk: Arc<dyn ReadAt>, request: &BakeRequest) -> Result<BaseDisk, BakeError> {
    let (path, arch) = (|| path.to_owned(), request.arch.as_str());
    let base = disk::open(disk, request.partition);
    let base = base.map_err(|error| BakeError::partitions(path(), error))?;
    if let Some(size) = request.size {
        disk::root_len(&base, size).map_err(|error| BakeError::partitions(path(), error))?;
    }
    // A disk whose root partition is of the plain Linux type does not tell; its packages will.
    match base.arch().map(Arch::name) {
        Some(found) if found != arch => {
            Err(BakeError::Arch { path: path(), expected: arch.to_owned(), found: found.to_owned() })
        }
        _ => Ok(base),
    }
}

fn read_root(path: &Path, base: &BaseDisk) -> Result<(ext4::FileSystem, Tree), BakeError> {
    let path = || path.to_owned();
    let source = base.partition_source(base.root().number);
    let source = source.map_err(|error| BakeError::partitions(path(), error))?;
    let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
    ext4::read_base(source, origin).map_err(|source| BakeError::Root { path: path(), source })
}

/// The time of everything that a bake makes: what was asked for, else that of the base's newest file.
fn epoch(base: &Tree, asked: Option<u32>) -> Timestamp {
    let newest = || base.walk().map(|(.., inode)| inode.meta.mtime.secs).max().unwrap_or(0).clamp(0, u32::MAX.into());
    Timestamp { secs: asked.map_or_else(newest, i64::from), nanos: 0 }
}

impl BakeRequest {
    fn supply(&self) -> Supply<'_> {
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
