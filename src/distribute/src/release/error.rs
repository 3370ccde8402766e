//! Why files are not a release.

use std::path::PathBuf;

use vmbake_bake::incremental::build_inputs::BuildInputsError;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::release::key::KeyError;
use vmbake_bake::release::sums::SumsError;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_manifest::ManifestError;

/// Why files are not a release.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: not called NAME.raw or NAME.qcow2")]
    Name { path: PathBuf },
    #[error("{path}: not in {}, where the first image is", .folder.display())]
    Folder {
        path: PathBuf,
        /// The folder of the first one.
        folder: PathBuf,
    },
    #[error("{path}: {} is of the same architecture and format", .other.display())]
    Twice { path: PathBuf, other: PathBuf },
    #[error("{path}: neither SHA256SUMS nor FSVERITYSUMS beside it has it")]
    Unlisted { path: PathBuf },
    #[error("{path}: has {found}, the list says {expected}")]
    Checksum { path: PathBuf, expected: Box<Checksum>, found: Box<Checksum> },
    #[error(transparent)]
    Sums(#[from] SumsError),
    #[error(transparent)]
    Inputs(#[from] BuildInputsError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("the key cannot be used")]
    Key(#[from] KeyError),
    #[error("cannot write a document as JSON")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for DocumentError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, .. } if path.extension().is_some_and(|end| end == "json") => {
                Some("a release is what `vmbake bake` wrote: the images with all that lies beside them".to_owned())
            }
            Self::Name { .. } | Self::Unlisted { .. } => {
                Some("name images that `vmbake bake` wrote, where it wrote them".to_owned())
            }
            Self::Checksum { .. } => Some("`vmbake verify image DIR` says what has changed since the bake".to_owned()),
            _ => None,
        }
    }

    vmbake_common::causes!(Sums, Inputs, Manifest, Key, Message; Read);
}
