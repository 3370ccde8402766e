//! Why artifacts cannot be staged.

use super::archive::ZIP;
use super::{ArchiveError, DebError};
use vmbake_common::hint::Hint;
use vmbake_embedded::MissingProgram;
use vmbake_layer::LayerError;
use vmbake_manifest::ArtifactType;

/// Why artifacts cannot be staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A layer needs what is not pinned.
    #[error("layer {layer} installs artifact {name}, which the manifest does not have")]
    Missing { layer: String, name: String },
    /// The manifest pins what no layer needs.
    #[error("artifact {name} of the manifest is installed by no layer of the kind")]
    Unused { name: String },
    /// Two layers install it.
    #[error("artifact {name} is installed by the layers {first} and {second}")]
    Twice { name: String, first: String, second: String },
    /// The layer is made for another base image.
    #[error("layer {layer} is made for this base image of {arch}: {expected}; the manifest pins {found}")]
    OtherBase {
        layer: String,
        arch: String,
        /// Digest of the image that it is made for.
        expected: String,
        /// Digest of the image that is pinned.
        found: String,
    },
    /// The manifest was made for other packages.
    #[error("layer {layer} asks for other packages than those that the manifest was made for")]
    OtherPackages { layer: String },
    /// The manifest was made for other downloads or container images.
    #[error("layer {layer} asks for other downloads or container images than those that the manifest was made for")]
    OtherUpstreams { layer: String },
    /// A container image that a layer asks for is not pinned.
    #[error("layer {layer} asks for the container image {image}, which the manifest does not have")]
    NoImage { layer: String, image: String },
    /// A layer cannot be used for the architecture.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// A package was chosen for a layer that is not there.
    #[error("package {name} of the manifest was chosen for layer {layer}, which is none of the kind")]
    NoLayer { name: String, layer: String },
    /// Its file is not readable.
    #[error("{name}: cannot read")]
    Read { name: String, source: std::io::Error },
    /// Its archive is refused.
    #[error("{name}: not a usable archive")]
    Archive { name: String, source: ArchiveError },
    /// A single file cannot be decompressed.
    #[error("{name}: cannot be decompressed")]
    Compressed { name: String, source: ArchiveError },
    /// The layer decompresses an artifact of another type.
    #[error("{name}: the layer has `decompress`, but its type in the manifest is {:?}", kind.name())]
    NotCompressed { name: String, kind: ArtifactType },
    /// Its package is refused.
    #[error("{name}: not a usable Debian package")]
    Deb { name: String, source: DebError },
    /// A signed package is another one than the manifest says.
    #[error("{name}: expected the package {expected}, found {found}")]
    OtherPackage {
        name: String,
        /// Name and version that the manifest says.
        expected: String,
        found: String,
    },
    /// The first-boot program is not part of this vmbake.
    #[error(transparent)]
    Program(#[from] MissingProgram),
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

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Program(error) => Some(error),
            Self::Layer(error) => Some(error),
            _ => None,
        }
    }
}
