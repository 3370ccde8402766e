//! Why the artifacts are not complete.

use std::path::PathBuf;

use super::local::LocalFileError;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::of_path;
use vmbake_pin::prove::{LOCAL, ProveError};
use vmbake_store::download::DownloadError;
use vmbake_store::store::StoreError;

/// Why the artifacts are not complete.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{name} {version} is not in the store: {path} is missing (from {url})")]
    Missing {
        name: String,
        version: String,
        /// Where it would come from.
        url: String,
        path: PathBuf,
    },
    #[error("the manifest of {name} pins no base image")]
    NoBase { name: String },
    #[error("the manifest pins {url} as base image, a file that only the user has")]
    LocalBase {
        /// What the manifest says of it.
        url: String,
    },
    #[error("{path}: cannot open the base image")]
    OpenBase { path: PathBuf, source: std::io::Error },
    #[error("{name}: cannot be downloaded")]
    Download { name: String, source: DownloadError },
    #[error(transparent)]
    Prove(#[from] ProveError),
    #[error(transparent)]
    Local(#[from] LocalFileError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for FetchError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Missing { url, .. } if url.starts_with(LOCAL) => {
                "it is a file of a layer: --layers names the directory of the layer that has it"
            }
            Self::Missing { .. } => {
                "`vmbake fetch` downloads it, and so does a bake that is not --offline; --store names another store"
            }
            Self::LocalBase { .. } => "--base names the file",
            Self::OpenBase { path, source } => {
                let other = "--base takes a disk image, such as debian-13-genericcloud-amd64.qcow2; without it a bake takes the \
                             one that the manifest pins";
                return of_path(path, source, other);
            }
            Self::NoBase { .. } => "--base names a disk image; `vmbake update` pins the published one",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Prove, Local, Store, Message; OpenBase, Download);
}
