//! Why a bake stopped.

use std::path::PathBuf;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::{AuthorError, ReadError};
use vmbake_disk::write::WriteError;

use crate::inputs::InputError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::hint::Hint;
use vmbake_compose::merge::MergeError;
use vmbake_compose::origin::OriginError;
use vmbake_compose::stage::StageError;
use vmbake_fetch::FetchError;
use vmbake_fetch::images::ImagesError;
use vmbake_fetch::verify::VerifyError;
use vmbake_image::identity::IdentityError;
use vmbake_layer::LayerError;
use vmbake_manifest::{ImageNeed, ManifestError};
use vmbake_query::lint::Finding;
use vmbake_query::sbom::SbomError;

/// Why a bake stopped.
#[derive(Debug, thiserror::Error)]
pub enum BakeError {
    /// The manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// An input cannot be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// An input is not what the manifest says.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// An input cannot be prepared.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The base has no partitions that can be carried over.
    #[error("{path}: {error}")]
    Partitions { path: PathBuf, error: Box<AssembleError> },
    /// The base's partitions are not readable.
    #[error("{path}: cannot read the base's partitions")]
    Disk { path: PathBuf, source: AssembleError },
    /// The root file system of the base is not readable.
    #[error("{path}: the root file system is unusable")]
    Root { path: PathBuf, source: ReadError },
    /// The image lacks what came with layers of somebody else.
    #[error("{need}, which the image does not have")]
    Need { need: Box<ImageNeed> },
    /// The base is for another system or architecture than the manifest.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It cannot be told what the image is made of.
    #[error(transparent)]
    Sbom(#[from] SbomError),
    /// A layer cannot be used.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A container image cannot be used.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// An artifact cannot be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The layers do not go onto the base.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The origins of the files cannot be recorded.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// Something in the tree has no place in an image.
    #[error("the image would not be clean: {0}")]
    Unclean(Box<Finding>),
    /// The file system cannot be laid out.
    #[error("cannot author the root file system")]
    Author(#[from] AuthorError),
    /// The disk cannot be laid out.
    #[error("cannot assemble the disk")]
    Assemble(#[source] AssembleError),
    /// The time that outputs are to get is none.
    #[error("SOURCE_DATE_EPOCH={value:?} is not a number of seconds since 1970")]
    Epoch { value: String },
    /// The running program cannot be read.
    #[error("cannot read /proc/self/exe: the running program is one of the inputs of an image")]
    Program,
    /// A document beside the image cannot be written.
    #[error("cannot write the record of inputs or the provenance as JSON")]
    Json(#[source] serde_json::Error),
    /// The disk cannot be written.
    #[error("cannot write the disk")]
    Write(#[from] WriteError),
    /// An output cannot get its name.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl Hint for BakeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Need { .. } => Some("add a layer that brings it, or leave the bundle out".to_owned()),
            _ => None,
        }
    }

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Manifest(error) => Some(error),
            Self::Fetch(error) => Some(error),
            Self::Verify(error) => Some(error),
            Self::Input(error) => Some(error),
            Self::Partitions { error, .. } => Some(&**error),
            Self::Layer(error) => Some(error),
            Self::Images(error) => Some(error),
            Self::Stage(error) => Some(error),
            Self::Merge(error) => Some(error),
            Self::Origin(error) => Some(error),
            Self::Identity(error) => Some(error),
            Self::Sbom(error) => Some(error),
            Self::Publish(error) => Some(error),
            _ => None,
        }
    }
}

impl BakeError {
    /// One sentence, unless the error has a cause of its own.
    pub(super) fn partitions(path: PathBuf, error: AssembleError) -> Self {
        match std::error::Error::source(&error) {
            None => Self::Partitions { path, error: error.into() },
            Some(_) => Self::Disk { path, source: error },
        }
    }
}
