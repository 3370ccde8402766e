//! Why a registry was not asked, or did not answer as it should.

use crate::download::DownloadError;
use crate::http::HttpError;
use crate::store::StoreError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_oci::{InvalidPlatform, InvalidReference, OciError};

use super::credentials::CredentialError;

/// Why nothing was pulled or pushed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Its name is none.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// The name of its platform is none.
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
    /// A document or layer could not be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The registry contradicts itself.
    #[error("{url}: the answer has digest {found}, its header says {stated}")]
    Header {
        url: String,
        /// `Docker-Content-Digest`.
        stated: String,
        found: Box<Digest>,
    },
    /// Neither a bearer token nor anything else that is known is asked for.
    #[error("{url}: asks for credentials in a way that is not understood: {challenge:?}")]
    Challenge {
        url: String,
        /// `WWW-Authenticate`.
        challenge: String,
    },
    /// A token that would be had without TLS is refused to a registry that is asked over TLS.
    #[error("{url}: wants a token that is not to be had over HTTPS: {challenge:?}")]
    PlainToken {
        url: String,
        /// `WWW-Authenticate`.
        challenge: String,
    },
    /// The credentials of the user cannot be had.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The registry wants to know who asks.
    #[error("{url}: wants credentials, and there are none for {host}")]
    NoCredentials { url: String, host: String },
    /// The registry does not take the credentials, or they do not suffice.
    #[error("{url}: the credentials for {host} do not suffice")]
    Denied { url: String, host: String },
    /// An answer lacks what has to be in it.
    #[error("{url}: the answer has no usable {what}")]
    Answer { url: String, what: &'static str },
    /// What came is not what its digest names.
    #[error("{url}: has digest {found}, not {expected}")]
    Digest {
        url: String,
        /// The digest that it should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    /// Others change the list of what is attached at the same time.
    #[error("{url}: others change it at the same time, and what was added does not stay")]
    Contended { url: String },
    /// A descriptor promises more than is read.
    #[error("{image}: {digest} has {size} bytes, more than the {limit} that it may have")]
    TooLarge {
        image: String,
        digest: Box<Digest>,
        /// Its length in bytes, as its descriptor says.
        size: u64,
        /// The most that it may have.
        limit: u64,
    },
    /// Its documents are not those of an image of that platform.
    #[error("{reference}: not a usable image")]
    Image { reference: String, source: Box<OciError> },
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

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Download(error) => Some(error),
            Self::Credentials(error) => Some(error),
            _ => None,
        }
    }
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
