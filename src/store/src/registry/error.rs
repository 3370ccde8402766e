//! Errors of the registry client.

use crate::download::DownloadError;
use crate::http::HttpError;
use crate::store::StoreError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_oci::{InvalidPlatform, InvalidReference};

use super::credentials::CredentialError;

/// Why a pull or push failed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("{url}: the response has digest {found}, but its header states {stated}")]
    Header {
        url: String,
        /// `Docker-Content-Digest`.
        stated: String,
        found: Box<Digest>,
    },
    #[error("{url}: unsupported authentication challenge {challenge:?}")]
    Challenge {
        url: String,
        /// `WWW-Authenticate`.
        challenge: String,
    },
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    #[error("{url}: authentication required, but there are no credentials for {host}")]
    NoCredentials { url: String, host: String },
    #[error("{url}: the credentials for {host} were rejected")]
    Denied { url: String, host: String },
    #[error("{url}: the response has no valid {what}")]
    Answer { url: String, what: &'static str },
    #[error("{url}: expected digest {expected}, found {found}")]
    Digest { url: String, expected: Box<Digest>, found: Box<Digest> },
    #[error("{image}: {digest} has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        image: String,
        digest: Box<Digest>,
        /// The length in its descriptor, in bytes.
        size: u64,
        limit: u64,
    },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for RegistryError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoCredentials { host, .. } | Self::Denied { host, .. } => {
                Some(format!("log in with `docker login {host}`, `podman login {host}` or `oras login {host}`"))
            }
            _ => None,
        }
    }

    vmbake_common::causes!(Reference, Platform, Download, Credentials, Message);
}

impl From<HttpError> for RegistryError {
    fn from(error: HttpError) -> Self {
        Self::Download(error.into())
    }
}

impl From<StoreError> for RegistryError {
    fn from(error: StoreError) -> Self {
        Self::Download(error.into())
    }
}

impl RegistryError {
    /// Whether the registry reports that the object does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Download(error) if error.is_absent())
    }
}
