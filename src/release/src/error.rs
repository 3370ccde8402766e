//! Errors in the files of a release.

use std::path::PathBuf;

use vmbake_bake::incremental::build_inputs::BuildInputsError;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::release::key::KeyError;
use vmbake_bake::release::sums::SumsError;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_disk::image::Format;
use vmbake_manifest::ManifestError;

/// Why files are not a valid release.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: file name is not {}", Format::FILE_NAMES)]
    Name { path: PathBuf },
    #[error("{path}: not in {}, the directory of the first image", .folder.display())]
    Folder {
        path: PathBuf,
        /// The directory of the first image.
        folder: PathBuf,
    },
    #[error("{path}: {} has the same architecture and format", .other.display())]
    Twice { path: PathBuf, other: PathBuf },
    #[error("{path}: not listed in SHA256SUMS or FSVERITYSUMS next to it")]
    Unlisted { path: PathBuf },
    #[error("{path}: has {found}, but the list states {expected}")]
    Checksum { path: PathBuf, expected: Box<Checksum>, found: Box<Checksum> },
    #[error(transparent)]
    Sums(#[from] SumsError),
    #[error(transparent)]
    Inputs(#[from] BuildInputsError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("cannot use the key")]
    Key(#[from] KeyError),
    #[error("cannot serialize a document as JSON")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for DocumentError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, .. } if path.extension().is_some_and(|end| end == "json") => Some(
                "a release consists of the outputs of `vmbake bake`: the images with all documents next to them"
                    .to_owned(),
            ),
            Self::Name { .. } | Self::Unlisted { .. } => {
                Some("name images that `vmbake bake` wrote, in the directory that it wrote them to".to_owned())
            }
            Self::Checksum { .. } => Some("`vmbake verify image DIR` reports all changes since the bake".to_owned()),
            _ => None,
        }
    }

    vmbake_common::causes!(Sums, Inputs, Manifest, Key, Message; Read);
}
