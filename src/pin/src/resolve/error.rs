//! Errors of resolving entries of `sources.json`.

use vmbake_common::message::Message;

use crate::anchors::AnchorError;
use crate::sources::Undefined;
use vmbake_common::hint::Hint;
use vmbake_image::grub::BootError;
use vmbake_proof::apt::AptError;
use vmbake_proof::openpgp::KeyringError;
use vmbake_proof::sigstore::SigstoreError;
use vmbake_store::download::DownloadError;
use vmbake_store::http::HttpError;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why an entry was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("{place}: {source}")]
    Template { place: &'static str, source: Undefined },
    #[error("requires the version of {name}, which is not in the manifest")]
    Needs { name: String },
    #[error("archive {archive} has no `snapshot`, which --at requires")]
    NoSnapshot { archive: String },
    #[error("{url}: archive verification failed")]
    Archive { url: String, source: Box<AptError> },
    #[error("{file}: cannot use the keyring")]
    Keyring { file: String, source: KeyringError },
    #[error("{url}: does not prove the artifact")]
    Sigstore { url: String, source: Box<SigstoreError> },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Trust(#[from] AnchorError),
    #[error(transparent)]
    Boot(#[from] BootError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ResolveError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSnapshot { .. } => Some(
                "set `snapshot` of the archive to the URL of its snapshots, in a file for --sources".to_owned(),
            ),
            Self::Archive { source, .. } if matches!(**source, AptError::Stale { .. } | AptError::Aged { .. }) => Some(
                "the mirror may be out of date: use --mirror for another one, or --at DATE to pin packages as of a past date"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    vmbake_common::causes!(Download, Registry, Trust, Boot, Message; Template, Archive, Keyring, Sigstore);
}

impl From<HttpError> for ResolveError {
    fn from(error: HttpError) -> Self {
        Self::Download(error.into())
    }
}

impl From<StoreError> for ResolveError {
    fn from(error: StoreError) -> Self {
        Self::Download(error.into())
    }
}
