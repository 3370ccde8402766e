//! Why a registry was not asked, or did not answer as it should.

use crate::download::DownloadError;
use crate::http::HttpError;
use crate::store::StoreError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_oci::{InvalidPlatform, InvalidReference};

use super::credentials::CredentialError;

/// Why nothing was pulled or pushed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("{url}: the answer has digest {found}, its header says {stated}")]
    Header {
        url: String,
        /// `Docker-Content-Digest`.
        stated: String,
        found: Box<Digest>,
    },
    #[error("{url}: asks for credentials in a way that is not understood: {challenge:?}")]
    Challenge {
        url: String,
        /// `WWW-Authenticate`.
        challenge: String,
    },
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    #[error("{url}: wants credentials, and there are none for {host}")]
    NoCredentials { url: String, host: String },
    #[error("{url}: the credentials for {host} do not suffice")]
    Denied { url: String, host: String },
    #[error("{url}: the answer has no usable {what}")]
    Answer { url: String, what: &'static str },
    #[error("{url}: has digest {found}, not {expected}")]
    Digest {
        url: String,
        /// The digest that it should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    #[error("{image}: {digest} has {size} bytes, more than the {limit} that it may have")]
    TooLarge {
        image: String,
        digest: Box<Digest>,
        /// Its length in bytes, as its descriptor says.
        size: u64,
        /// The most that it may have.
        limit: u64,
    },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for RegistryError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoCredentials { host, .. } | Self::Denied { host, .. } => Some(format!(
                "`docker login {host}`, `podman login {host}` and `oras login {host}` keep credentials where vmbake finds them"
            )),
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
    /// Whether the registry says that there is no such thing.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Download(error) if error.is_absent())
    }
}
