//! Why nobody can say where a path came from.

use std::path::PathBuf;

use vmbake_common::message::{FileError, Message};
use vmbake_disk::tree::TreeError;

use crate::packages::PackageError;
use vmbake_common::hint::Hint;
use vmbake_compose::origin::{MAX_LEN, RecordError};
use vmbake_image::disk::InspectError;

/// Why a path cannot be explained.
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
    #[error("{path}: more than the {MAX_LEN} bytes that a record of origins may have")]
    LargeRecord { path: PathBuf },
    #[error("{beside}: is not the record of origins that is inside {image}")]
    Beside { beside: PathBuf, image: PathBuf },
    #[error("artifact {name}: in the record of origins, but not in the manifest inside the image")]
    UnknownArtifact { name: String },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ExplainError {
    fn hint(&self) -> Option<String> {
        let text = "--record FILE goes by a record that you trust: after the bake one of the two was changed, or both are \
                    not of one bake";
        matches!(self, Self::Beside { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Inspect, Tree, Record, Package, File, Message);
}
