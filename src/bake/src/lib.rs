//! Bakes images: the whole pipeline in numbered steps.

pub mod incremental;
pub mod release;
mod additions;
mod all;
mod archives;
mod combine;
mod container;
mod disk_plan;
mod error;
pub mod inputs;
mod outputs;
pub mod packed;
pub mod plan;
mod recipe;
pub mod rebuild;

pub use all::{bake, bake_all};
pub use combine::{has_taken_accounts, plan_accounts};
pub use error::BakeError;
pub use recipe::source_date_epoch;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Serialize;
use vmbake_common::message;
use vmbake_disk::disk::Disk;
use vmbake_disk::source::ReadAt;

use crate::archives::RootArchives;
use crate::incremental::build_inputs::BuildInputs;
use crate::incremental::checksums::Checksum;
use crate::incremental::previous_bake::PreviousBake;
use crate::incremental::published::Sidecar;
use crate::release::provenance::{self, BuilderId};
use combine::{Combined, combine};
use disk_plan::DiskPlan;
use outputs::Unchanged;
use vmbake_common::atomic_file::Pending;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::progress::{Event, Progress};
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_compose::merge::Pins;
use vmbake_compose::origin;
use vmbake_fetch::{FetchError, local};
use vmbake_layer::{Layer, Layers};
use vmbake_manifest::{Additions, Manifest};
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_query::lint::unclean;
use vmbake_query::sbom;
use vmbake_store::http::Client;
use vmbake_store::store::Store;

#[derive(Clone, Debug)]
pub struct BakeRequest {
    /// Kind of image: the name of its top layer.
    pub kind: String,
    /// Operating system, such as `debian-13`.
    pub os: String,
    /// Architecture as Debian names it.
    pub arch: String,
    pub manifest: PathBuf,
    /// The base disk image; `None` for the pinned one in the store.
    pub base: Option<PathBuf>,
    /// Number of the base's root partition; `None` to detect it.
    pub partition: Option<u32>,
    pub layers: Catalog,
    /// Layers and artifacts added to those of the kind.
    pub more: Additions,
    pub store: Store,
    /// The required proofs.
    pub sources: Sources,
    pub anchors: Anchors,
    /// The HTTP client; `None` when offline.
    pub client: Option<Client>,
    /// Length of the disk in bytes; `None` keeps the base's, or is the default of new disks.
    pub size: Option<u64>,
    /// Time of files created by the bake, in seconds since 1970; `None` for that of the base's newest file, or
    /// without a base, of the newest release of an archive that lists a pinned package.
    pub epoch: Option<u32>,
    /// Formats to write, without duplicates.
    pub formats: Vec<OutputFormat>,
    /// Compression of the qcow2 image.
    pub compression: Qcow2Compression,
    /// Output directory.
    pub out: PathBuf,
    /// Whether existing outputs are replaced.
    pub force: bool,
    /// The builder ID for the provenance.
    pub builder: BuilderId,
    /// Threads for hashing, copying and compressing.
    pub threads: NonZeroUsize,
}

/// The result of a bake.
#[derive(Debug, Serialize)]
pub struct Baked {
    /// `<kind>.<os-name>.<arch>`.
    pub name: String,
    /// SHA-256 of the documents next to the images.
    #[serde(flatten)]
    pub sidecars: BTreeMap<Sidecar, Digest>,
    pub outputs: Vec<BakedFile>,
    /// Problems of the base that did not stop the bake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A written image or archive.
#[derive(Debug, Serialize)]
pub struct BakedFile {
    pub path: PathBuf,
    pub format: OutputFormat,
    /// Length of the file in bytes.
    pub size: u64,
    /// Its checksum: `fsverity` of a raw image, `digest` of any other file.
    #[serde(flatten)]
    pub checksum: Checksum,
}

/// An image that is ready to be written.
struct Authored<'a> {
    request: &'a BakeRequest,
    manifest: Manifest,
    inputs: BuildInputs,
    /// The documents next to the images, except for the provenance.
    sidecars: BTreeMap<Sidecar, Vec<u8>>,
    /// None if it has no base image, and only archives are wanted.
    disk: Option<Disk>,
    /// The archives of its root file system, if some are wanted.
    archives: Option<RootArchives>,
    previous: PreviousBake<'a>,
    pending: BTreeMap<OutputFormat, Pending>,
    notes: Vec<String>,
}

/// The result of the first steps of a bake. The shared output directory has not been modified.
enum Prepared<'a> {
    /// The outputs are up to date; only their checksums remain to be listed.
    Unchanged(&'a BakeRequest, Box<Unchanged>),
    Authored(Box<Authored<'a>>),
}

/// A baked image that has not been written.
pub struct BakedDisk {
    /// `<kind>.<os-name>.<arch>`.
    pub name: String,
    /// Its disk, which is read from the base and the artifacts.
    pub disk: Disk,
    /// SHA-256 of its documents, except for the provenance, which describes files.
    pub sidecars: BTreeMap<Sidecar, Digest>,
}

/// Bakes an image without writing it. The formats and the output directory of the request are ignored.
pub fn bake_disk(request: BakeRequest, progress: &Progress) -> Result<BakedDisk, BakeError> {
    let request = BakeRequest { formats: Vec::new(), ..request };
    let Authored { manifest, sidecars, disk, .. } = begin(&request, progress)?.author(progress)?;
    let disk = disk.ok_or_else(|| message!("{}: the image has no disk", manifest.name()))?;
    let sidecars = sidecars.iter().map(|(sidecar, content)| (*sidecar, Digest::of(content))).collect();
    Ok(BakedDisk { name: manifest.name(), disk, sidecars })
}

/// A bake with its manifest and layers.
struct Begun<'a> {
    request: &'a BakeRequest,
    manifest: Manifest,
    layers: Vec<Layer>,
    program: Digest,
    previous: PreviousBake<'a>,
    targets: BTreeMap<OutputFormat, PathBuf>,
}

fn begin<'a>(request: &'a BakeRequest, progress: &Progress) -> Result<Begun<'a>, BakeError> {
    let manifest = Manifest::load_with(&request.manifest, &request.more)?;
    manifest.require(&request.manifest, &request.kind, &request.os, &request.arch)?;
    let layers = Layers::load(&request.layers)?;
    layers.overridden().iter().for_each(|one| progress.emit(Event::Override(one.clone())));
    let layers = request.layers_of(&manifest, &layers)?;
    local::keep(layers.iter().flat_map(Layer::local_files), &request.store).map_err(FetchError::from)?;
    let targets = request.targets(&manifest.name());
    let program = request.store.running_program().ok_or(BakeError::Program)?;
    let previous = PreviousBake::look(&request.store, program, &targets);
    Ok(Begun { request, manifest, layers, program, previous, targets })
}

/// Does everything but writing the disk.
fn author<'a>(request: &'a BakeRequest, progress: &Progress) -> Result<Prepared<'a>, BakeError> {
    // 1. Outputs of the last bake with the same inputs are kept. Otherwise the output files are created first, to fail
    //    early if they cannot be published.
    let begun = begin(request, progress)?;
    if let Some(unchanged) = request.unchanged(&begun.manifest, &begun.layers, &begun.previous, progress)? {
        return Ok(Prepared::Unchanged(request, Box::new(unchanged)));
    }
    Ok(Prepared::Authored(Box::new(begun.author(progress)?)))
}

impl<'a> Begun<'a> {
    fn author(self, progress: &Progress) -> Result<Authored<'a>, BakeError> {
        let Self { request, manifest, layers, program, previous, targets } = self;
        let pending = request.outputs(&targets)?;

        // 2 and 3. All inputs become one tree.
        let combined = combine(request, &manifest, layers, Pins::Fixed, progress)?;
        let Combined { layers, base, base_digest, epoch, ingredients, mut merged } = combined;
        let inputs = request.inputs(&manifest, &layers, program, base_digest);
        let origins = origin::record(&ingredients, &mut merged, epoch)?;
        additions::check(&merged.tree, &request.more)?;
        if let Some(finding) = unclean(&merged) {
            return Err(BakeError::Message(message!("unclean image: {finding}")));
        }
        let tree = merged.tree;
        progress.emit(Event::Merged { files: tree.walk().count() });
        let [spdx, cyclonedx] = sbom::sidecars(&tree, &manifest, &origins)?;

        // 4. The tree becomes archives and a file system, and the file system a disk.
        let archives = RootArchives::new(&request.formats, &manifest, &layers, &tree, epoch)?;
        let plan = match &base {
            Some(base) => Some(DiskPlan::of_base(base)),
            None if request.wants_disk() => Some(DiskPlan::new(request, &manifest, &tree)?),
            None => None,
        };
        let disk = plan.map(|plan| plan.author(request, &tree, epoch)).transpose()?;
        if let Some(disk) = &disk {
            progress.emit(Event::Authored { bytes: disk.map().data_len(), disk_bytes: disk.len() });
        }
        let notes = base.map(|base| base.notes).unwrap_or_default();

        let sidecars = [
            (Sidecar::Manifest, manifest.text().to_vec()),
            (Sidecar::Origins, origins),
            (Sidecar::Inputs, inputs.to_text().map_err(BakeError::Json)?),
            (Sidecar::Spdx, spdx),
            (Sidecar::CycloneDx, cyclonedx),
        ];
        let sidecars = sidecars.into();
        Ok(Authored { request, manifest, inputs, sidecars, disk, archives, previous, pending, notes })
    }
}

impl Prepared<'_> {
    fn write(self, progress: &Progress) -> Result<Baked, BakeError> {
        let authored = match self {
            Self::Unchanged(request, unchanged) => return Ok(unchanged.list(&request.out)?),
            Self::Authored(authored) => *authored,
        };
        let Authored { request, manifest, inputs, mut sidecars, disk, archives, previous, pending, notes } = authored;
        // 5. Each byte is read once, and written, compressed and hashed in one pass, unless the last bake has done that.
        let id = disk.as_ref().and_then(|disk| disk.content_id(0..disk.len())).map(|id| Digest::Sha256(id.0));
        let mut written = match &disk {
            Some(disk) => request.write(disk, id, &previous, &pending, progress)?,
            None => Vec::new(),
        };
        let name = manifest.name();
        if let Some(archives) = &archives {
            written.extend(request.write_archives(&name, archives, &pending, progress)?);
        }
        let outputs = outputs::checksums(&name, &sidecars, &written);
        let statement = provenance::statement(&inputs, &manifest, &outputs, &request.builder);
        sidecars.insert(Sidecar::Provenance, statement.map_err(BakeError::Json)?);
        let (baked, published) = request.publish(name, &sidecars, pending, &written, progress)?;
        if let Some((disk, published)) = id.zip(published) {
            previous.note(disk, request.compression, &published, written);
        }
        Ok(Baked { notes, ..baked })
    }
}
