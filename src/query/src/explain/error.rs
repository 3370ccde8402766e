//! Why nobody can say where a path came from.

use std::path::PathBuf;

use vmbake_disk::tree::TreeError;

use crate::packages::PackageError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_compose::origin::{MAX_LEN, RecordError};
use vmbake_image::disk::InspectError;
use vmbake_manifest::ManifestError;

/// Why a path cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The image cannot be looked into.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The path does not lead to anything.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The record of origins cannot be believed.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// dpkg's database cannot be used.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The record beside the image is not readable.
    #[error("{path}: cannot read the record of origins")]
    ReadRecord { path: PathBuf, source: std::io::Error },
    /// The record beside the image is longer than any record.
    #[error("{path}: more than the {MAX_LEN} bytes that a record of origins may have")]
    LargeRecord { path: PathBuf },
    /// The record beside the image says something else than the one inside.
    #[error("{beside}: is not the record of origins that is inside {image}")]
    Beside { beside: PathBuf, image: PathBuf },
    /// The record speaks of a manifest that cannot be read.
    #[error("the manifest inside the image is not usable")]
    Manifest(#[source] Box<ManifestError>),
    /// The record speaks of another manifest.
    #[error("the record of origins is of manifest {expected}, inside the image is {found}")]
    OtherManifest { expected: Box<Digest>, found: Box<Digest> },
    /// The record has another artifact than the manifest.
    #[error("artifact {name}: the record of origins has {found}, the manifest inside the image {expected}")]
    OtherArtifact { name: String, expected: Box<Digest>, found: Box<Digest> },
    /// The record has an artifact that the manifest lacks.
    #[error("artifact {name}: in the record of origins, but not in the manifest inside the image")]
    UnknownArtifact { name: String },
    /// A file is not the artifact that the record says it is.
    #[error("{path}: has {found}, but artifact {artifact} is {expected}")]
    ContentOrigin {
        path: String,
        artifact: String,
        /// The digest that it should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    /// The path is gone.
    #[error("{path}: not in the image: layer {layer} removed it")]
    Removed { path: String, layer: String },
}

impl Hint for ExplainError {
    fn hint(&self) -> Option<String> {
        let text = "--record FILE goes by a record that you trust: after the bake one of the two was changed, or both are \
                    not of one bake";
        matches!(self, Self::Beside { .. }).then(|| text.to_owned())
    }

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Inspect(error) => Some(error),
            _ => None,
        }
    }
}
