//! Errors of a bake.

use std::path::PathBuf;

use vmbake_common::message::Message;
use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::AuthorError;
use vmbake_disk::write::WriteError;

use crate::inputs::InputError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::hint::Hint;
use vmbake_common::output_format::OutputFormat;
use vmbake_compose::merge::MergeError;
use vmbake_compose::origin::OriginError;
use vmbake_compose::stage::StageError;
use vmbake_fetch::FetchError;
use vmbake_fetch::images::ImagesError;
use vmbake_fetch::verify::VerifyError;
use vmbake_grub::GrubError;
use vmbake_image::identity::IdentityError;
use vmbake_layer::LayerError;
use vmbake_manifest::{ImageNeed, ManifestError};
use vmbake_query::sbom::SbomError;

/// Why a bake failed.
#[derive(Debug, thiserror::Error)]
pub enum BakeError {
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{path}: {error}")]
    Partitions { path: PathBuf, error: Box<AssembleError> },
    #[error("{path}: cannot read the base's partitions")]
    Disk { path: PathBuf, source: AssembleError },
    #[error("{name}: cannot bake a {format} image without a disk image as the base: {system}")]
    NoDisk { name: String, format: OutputFormat, system: &'static str, source: Box<GrubError> },
    #[error(
        "{name}: package {package} waits for the first boot, but there is no systemd to configure it then: {reason}"
    )]
    NoSystemd { name: String, package: String, reason: String },
    #[error("{need}, which is missing in the image")]
    Need { need: Box<ImageNeed> },
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Sbom(#[from] SbomError),
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error(transparent)]
    Images(#[from] ImagesError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Origin(#[from] OriginError),
    #[error("cannot author the root file system")]
    Author(#[from] AuthorError),
    #[error("cannot assemble the disk")]
    Assemble(#[source] AssembleError),
    #[error("cannot read /proc/self/exe: the digest of the running program is one of the inputs of an image")]
    Program,
    #[error("cannot serialize the record of inputs or the provenance as JSON")]
    Json(#[source] serde_json::Error),
    #[error("cannot write the disk")]
    Write(#[from] WriteError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for BakeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoDisk { .. } => Some(
                "use --format tar, tar.zst or oci, or a base with a kernel and GRUB; see docs/images.md".to_owned(),
            ),
            Self::NoSystemd { package, .. } => Some(format!(
                "add \"systemd\" to `packages` of a layer, or replace the script of {package} with `scripts`; see docs/maintainer-scripts.md"
            )),
            Self::Need { .. } => Some("add a layer that contains it, or leave the bundle out".to_owned()),
            _ => None,
        }
    }

    vmbake_common::causes!(Manifest, Fetch, Verify, Input, Identity, Sbom, Layer, Images, Stage, Merge, Origin, Author, Assemble, Write, Publish, Message; Disk, NoDisk; Partitions);
}

impl BakeError {
    /// A one-line error, unless the error has a cause.
    pub(super) fn partitions(path: PathBuf, error: AssembleError) -> Self {
        match std::error::Error::source(&error) {
            None => Self::Partitions { path, error: error.into() },
            Some(_) => Self::Disk { path, source: error },
        }
    }
}
