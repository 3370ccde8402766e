//! Why a bake stopped.

use std::path::PathBuf;

use vmbake_disk::disk::AssembleError;
use vmbake_disk::ext4::{AuthorError, ReadError};
use vmbake_disk::write::WriteError;

use crate::atomic_file::PublishError;
use crate::bake::inputs::InputError;
use crate::compose::merge::MergeError;
use crate::compose::origin::OriginError;
use crate::compose::stage::StageError;
use crate::fetch::FetchError;
use crate::fetch::images::ImagesError;
use crate::fetch::verify::VerifyError;
use crate::hint::Hint;
use crate::layer::LayerError;
use crate::manifest::ManifestError;
use crate::query::lint::Finding;

/// Why a bake stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
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
    #[error("{path}: the root file system is unusable")]
    Root { path: PathBuf, source: ReadError },
    #[error("{path}: is an image for {found}, not for {expected}")]
    Arch { path: PathBuf, expected: String, found: String },
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
    #[error("the image would not be clean: {0}")]
    Unclean(Box<Finding>),
    #[error("cannot author the root file system")]
    Author(#[from] AuthorError),
    #[error("cannot assemble the disk")]
    Assemble(#[source] AssembleError),
    #[error("SOURCE_DATE_EPOCH={value:?} is not a number of seconds since 1970")]
    Epoch { value: String },
    #[error("cannot read /proc/self/exe: the running program is one of the inputs of an image")]
    Program,
    #[error("cannot write the record of inputs as JSON")]
    Json(#[source] serde_json::Error),
    #[error("cannot write the disk")]
    Write(#[from] WriteError),
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl Hint for BakeError {
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
