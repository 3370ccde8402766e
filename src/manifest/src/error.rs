//! Why a manifest cannot be used.

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
    #[error("{path}: {len} bytes, more than the {MAX_LEN} a manifest may have")]
    TooLarge {
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    #[error("{path}:{line}:{column}: not a valid manifest")]
    Syntax {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        source: serde_json::Error,
    },
    #[error("{path}: an artifact is called {OS_IMAGE}, as the base image is")]
    Name { path: PathBuf },
    #[error("{path}: {place}: {source}")]
    Address {
        path: PathBuf,
        /// Where in it, as a JSON pointer.
        place: String,
        source: UrlCredentials,
    },
    #[error("{path}: is for {found}, not for {expected}")]
    Mismatch {
        path: PathBuf,
        /// The target that is asked for.
        expected: String,
        found: String,
    },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ManifestError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Read { source, .. } if source.kind() == ErrorKind::IsADirectory => {
                "name a manifest in it, such as node.debian-13.amd64.json"
            }
            Self::Read { path, source } => return of_path(path, source, "`vmbake update KIND` makes manifests"),
            Self::Syntax { .. } => {
                "`vmbake update` writes manifests: use the version of vmbake that wrote this one, undo what was changed at \
                 that place, or name another file"
            }
            Self::Mismatch { .. } => "name the KIND, --os and --arch that the manifest is for",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Message; Read, Address);
}
