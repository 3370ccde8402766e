//! Why an entry of `sources.json` was not resolved.

use crate::image::grub::BootError;
use crate::pin::anchors::AnchorError;
use crate::pin::proof::apt::AptError;
use crate::pin::proof::checksum::ChecksumError;
use crate::pin::proof::cosign::CosignError;
use crate::pin::proof::openpgp::KeyringError;
use crate::pin::proof::program::ProgramError;
use crate::pin::proof::sigstore::SigstoreError;
use crate::pin::sources::Undefined;
use crate::supply::download::DownloadError;
use crate::supply::http::HttpError;
use crate::supply::registry::RegistryError;
use crate::supply::store::StoreError;

/// Why an entry was not resolved.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum ResolveError {
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("{place}: {source}")]
    Template { place: &'static str, source: Undefined },
    #[error("{url}: is no JSON document with {expected}")]
    Document { url: String, expected: String },
    #[error("{url}: {found:?} is no version")]
    Version { url: String, found: String },
    #[error("needs the version of {name}, which is not in the manifest")]
    Needs { name: String },
    #[error("{url}: does not prove the artifact")]
    Checksum { url: String, source: ChecksumError },
    #[error("{url}: not a trustworthy archive")]
    Archive { url: String, source: Box<AptError> },
    #[error("{file}: not a usable keyring")]
    Keyring { file: String, source: KeyringError },
    #[error("{url}: does not prove the artifact")]
    Sigstore { url: String, source: Box<SigstoreError> },
    #[error("{url}: does not prove the artifact")]
    Cosign { url: String, source: Box<CosignError> },
    #[error("{url}: is not the program that was asked for")]
    Program { url: String, source: ProgramError },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Trust(#[from] AnchorError),
    #[error(transparent)]
    Boot(#[from] BootError),
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
