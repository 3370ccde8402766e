//! Errors of staging artifacts.

use super::ArchiveError;
use super::archive::ZIP;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_embedded::MissingProgram;
use vmbake_layer::LayerError;
use vmbake_manifest::ArtifactType;

/// Why artifacts cannot be staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error("artifact {name} of the manifest is not installed by any layer of the kind")]
    Unused { name: String },
    #[error("artifact {name} is installed by the layers {first} and {second}")]
    Twice { name: String, first: String, second: String },
    #[error("layer {layer} requires the base image {expected} for {arch}, but the manifest pins {found}")]
    OtherBase {
        layer: String,
        arch: String,
        /// Digest of the image that it is made for.
        expected: String,
        /// Digest of the image that is pinned.
        found: String,
    },
    #[error("layer {layer} requests other packages than the manifest pins")]
    OtherPackages { layer: String },
    #[error("layer {layer} requests other downloads or container images than the manifest pins")]
    OtherUpstreams { layer: String },
    #[error("layer {layer} requests the container image {image}, which the manifest does not pin")]
    NoImage { layer: String, image: String },
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error("package {name} of the manifest was resolved for layer {layer}, which is not a layer of the kind")]
    NoLayer { name: String, layer: String },
    #[error("{name}: invalid archive")]
    Archive { name: String, source: ArchiveError },
    #[error("{name}: cannot be decompressed")]
    Compressed { name: String, source: ArchiveError },
    #[error("{name}: the layer has `decompress`, but its type in the manifest is {:?}", kind.name())]
    NotCompressed { name: String, kind: ArtifactType },
    #[error("{name}: expected the package {expected}, found {found}")]
    OtherPackage {
        name: String,
        /// Name and version that the manifest says.
        expected: String,
        found: String,
    },
    #[error(transparent)]
    Program(#[from] MissingProgram),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for StageError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::OtherPackages { .. } | Self::NoLayer { .. } => {
                "run `vmbake update KIND` with the --layers of the bake to resolve the packages again"
            }
            Self::OtherUpstreams { .. } | Self::NoImage { .. } => {
                "run `vmbake update KIND` with the --layers of the bake to pin what the layers request now"
            }
            Self::OtherPackage { .. } => {
                "the signature belongs to another release than that in the URL; the artifact of a signed package must have the package's name"
            }
            Self::OtherBase { .. } => {
                "run `vmbake update KIND --image FILE` to pin that image, or import the profile again with --base for another one"
            }
            Self::NotCompressed { .. } => "set `type` of the source to `compressed`, then run `vmbake update KIND`",
            Self::Compressed { source: ArchiveError::Foreign { .. }, .. } => {
                "`decompress` supports a single file compressed with gzip, xz, Zstandard or bzip2; use `\"type\": \"tar\"` or `\"zip\"` for archives"
            }
            Self::Archive { source: ArchiveError::Present { .. }, .. } => {
                "in an imported profile, a script writes this file before it unpacks the archive, which replaces it on a machine: name the required members in the script"
            }
            Self::Archive { source: ArchiveError::Foreign { found: ZIP }, .. } => {
                "use `\"type\": \"zip\"` in `install`"
            }
            Self::Archive { source: ArchiveError::Foreign { .. }, .. } => {
                "supported are zip files and tar archives, plain or compressed with gzip, xz, Zstandard or bzip2; Debian packages have the type `deb`"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Layer, Program, Message; Archive, Compressed);
}
