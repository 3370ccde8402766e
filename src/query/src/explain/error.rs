//! Errors of [`explain`](super).

use std::path::PathBuf;

use vmbake_common::message::{FileError, Message};
use vmbake_disk::tree::TreeError;

use crate::packages::PackageError;
use vmbake_common::hint::Hint;
use vmbake_compose::origin::{MAX_LEN, RecordError};
use vmbake_image::disk::InspectError;

/// Error while explaining a path.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error("{path}: larger than {MAX_LEN} bytes, the limit for a record of origins")]
    LargeRecord { path: PathBuf },
    #[error("{sidecar}: differs from the record of origins in {image}")]
    Sidecar { sidecar: PathBuf, image: PathBuf },
    #[error("artifact {name}: in the record of origins, but not in the manifest in the image")]
    UnknownArtifact { name: String },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ExplainError {
    fn hint(&self) -> Option<String> {
        let text = "the files are from different bakes, or one was changed after the bake: use --record with a record that you trust";
        matches!(self, Self::Sidecar { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Inspect, Tree, Record, Package, File, Message);
}
