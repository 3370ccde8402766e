//! Why artifacts cannot be staged.

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
    #[error("artifact {name} of the manifest is installed by no layer of the kind")]
    Unused { name: String },
    #[error("artifact {name} is installed by the layers {first} and {second}")]
    Twice { name: String, first: String, second: String },
    #[error("layer {layer} is made for this base image of {arch}: {expected}; the manifest pins {found}")]
    OtherBase {
        layer: String,
        arch: String,
        /// Digest of the image that it is made for.
        expected: String,
        /// Digest of the image that is pinned.
        found: String,
    },
    #[error("layer {layer} asks for other packages than those that the manifest was made for")]
    OtherPackages { layer: String },
    #[error("layer {layer} asks for other downloads or container images than those that the manifest was made for")]
    OtherUpstreams { layer: String },
    #[error("layer {layer} asks for the container image {image}, which the manifest does not have")]
    NoImage { layer: String, image: String },
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error("package {name} of the manifest was chosen for layer {layer}, which is none of the kind")]
    NoLayer { name: String, layer: String },
    #[error("{name}: not a usable archive")]
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
                "`vmbake update KIND` chooses the packages again, with the --layers of the bake"
            }
            Self::OtherUpstreams { .. } | Self::NoImage { .. } => {
                "`vmbake update KIND` pins what the layers ask for now, with the --layers of the bake"
            }
            Self::OtherPackage { .. } => {
                "the signature is over another release than the address names; an artifact that is a signed package has the name of that package"
            }
            Self::OtherBase { .. } => {
                "`vmbake update KIND --image FILE` pins that image; for another one, import the profile again with its --base"
            }
            Self::NotCompressed { .. } => "set `type` of the source to `compressed`, then run `vmbake update KIND`",
            Self::Compressed { source: ArchiveError::Foreign { .. }, .. } => {
                "`decompress` takes a single file compressed with gzip, xz, Zstandard or bzip2; `\"type\": \"tar\"` and `\"zip\"` unpack archives"
            }
            Self::Archive { source: ArchiveError::Present { .. }, .. } => {
                "in a layer of `vmbake profile import`, a script makes this file before it unpacks the archive, which replaces it on a machine: let the script name the members that it needs"
            }
            Self::Archive { source: ArchiveError::Foreign { found: ZIP }, .. } => "install it with `\"type\": \"zip\"`",
            Self::Archive { source: ArchiveError::Foreign { .. }, .. } => {
                "supported are zip files and tar archives, plain or compressed with gzip, xz, Zstandard or bzip2; Debian packages have the type `deb`"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Layer, Program, Message; Archive, Compressed);
}
