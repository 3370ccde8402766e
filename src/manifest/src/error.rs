//! Errors in manifests.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::{MAX_LEN, OS_IMAGE};
use vmbake_common::address::UrlCredentials;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::of_path;

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{path}: cannot read the manifest")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {len} bytes, more than the limit of {MAX_LEN} for a manifest")]
    TooLarge {
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    #[error("{path}:{line}:{column}: invalid manifest")]
    Syntax {
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The column number, from 1.
        column: usize,
        source: serde_json::Error,
    },
    #[error("{path}: an artifact uses the name {OS_IMAGE}, which is reserved for the base image")]
    Name { path: PathBuf },
    #[error("{path}: {place}: {source}")]
    Address {
        path: PathBuf,
        /// The location as a JSON pointer.
        place: String,
        source: UrlCredentials,
    },
    #[error("{path}: manifest is for {found}, expected {expected}")]
    Mismatch { path: PathBuf, expected: String, found: String },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ManifestError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Read { source, .. } if source.kind() == ErrorKind::IsADirectory => {
                "use the path of a manifest in this directory, such as node.debian-13.amd64.json"
            }
            Self::Read { path, source } => return of_path(path, source, "`vmbake update KIND` creates manifests"),
            Self::Syntax { .. } => {
                "use the version of vmbake that wrote this manifest, undo manual changes at that place, or use another file"
            }
            Self::Mismatch { .. } => "use the KIND, --os and --arch of the manifest",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Message; Read, Address);
}
