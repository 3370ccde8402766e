//! Errors of fetching.

use std::path::PathBuf;

use super::local::LocalFileError;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::of_path;
use vmbake_pin::prove::{LOCAL, ProveError};
use vmbake_pin::root_base::RootBaseError;
use vmbake_store::download::DownloadError;
use vmbake_store::store::StoreError;

/// Why an artifact or the base image is missing.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{name} {version} is not in the store: {path} is missing (from {url})")]
    Missing {
        name: String,
        version: String,
        /// Its upstream URL.
        url: String,
        path: PathBuf,
    },
    #[error("the manifest of {name} pins no base image")]
    NoBase { name: String },
    #[error("the manifest pins {url} as the base image, which is a local file")]
    LocalBase {
        /// The URL in the manifest.
        url: String,
    },
    #[error("{path}: cannot open the base image")]
    OpenBase { path: PathBuf, source: std::io::Error },
    #[error("{name}: download failed")]
    Download { name: String, source: DownloadError },
    #[error(transparent)]
    Prove(#[from] ProveError),
    #[error(transparent)]
    Local(#[from] LocalFileError),
    #[error(transparent)]
    Root(#[from] RootBaseError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for FetchError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Missing { url, .. } if url.starts_with(LOCAL) => {
                "the file belongs to a layer: use --layers to name the directory that contains the layer"
            }
            Self::Missing { .. } => {
                "download it with `vmbake fetch` or a bake without --offline, or use --store to name another store"
            }
            Self::LocalBase { .. } => "use --base to name the file",
            Self::OpenBase { path, source } => {
                let other = "use --base to name a disk image, such as debian-13-genericcloud-amd64.qcow2; without \
                    it, a bake uses the pinned base image";
                return of_path(path, source, other);
            }
            Self::NoBase { .. } => "use --base to name a disk image; `vmbake update` pins the published one",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Prove, Local, Root, Store, Message; OpenBase, Download);
}
