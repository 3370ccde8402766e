//! Why an entry of `sources.json` was not resolved.

use jiff::Timestamp;

use crate::anchors::AnchorError;
use crate::sources::Undefined;
use vmbake_common::hint::Hint;
use vmbake_image::grub::BootError;
use vmbake_proof::apt::AptError;
use vmbake_proof::checksum::ChecksumError;
use vmbake_proof::cosign::CosignError;
use vmbake_proof::openpgp::{KeyringError, OpenPgpError};
use vmbake_proof::program::ProgramError;
use vmbake_proof::sigstore::SigstoreError;
use vmbake_store::download::DownloadError;
use vmbake_store::http::HttpError;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why an entry was not resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It cannot be had.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The source has words that mean nothing for this target.
    #[error("{place}: {source}")]
    Template { place: &'static str, source: Undefined },
    /// The document does not say what it should.
    #[error("{url}: is no JSON document with {expected}")]
    Document {
        /// Address of the document or file.
        url: String,
        expected: String,
    },
    /// What is published as version is none.
    #[error("{url}: {found:?} is no version")]
    Version {
        /// Address of the document or file.
        url: String,
        found: String,
    },
    /// The entry that gives the version has not been resolved.
    #[error("needs the version of {name}, which is not in the manifest")]
    Needs { name: String },
    /// The list of checksums cannot be used.
    #[error("{url}: does not prove the artifact")]
    Checksum {
        /// Address of the document or file.
        url: String,
        source: ChecksumError,
    },
    /// The sources state no snapshots of the archive.
    #[error("archive {archive} has no `snapshot`, which --at needs")]
    NoSnapshot { archive: String },
    /// The server answered with a later snapshot.
    #[error("{url}: the server returned the snapshot of {found}, which is later than {at}")]
    LaterSnapshot { url: String, found: Timestamp, at: Timestamp },
    /// The archive is not proven.
    #[error("{url}: not a trustworthy archive")]
    Archive {
        /// Address of the document or file.
        url: String,
        source: Box<AptError>,
    },
    /// The archive has no signed list of its indexes.
    #[error("{directory}/InRelease does not exist, and neither do both {directory}/Release and Release.gpg")]
    Unsigned { directory: String, source: Box<DownloadError> },
    /// The keys of an archive cannot be used.
    #[error("{file}: not a usable keyring")]
    Keyring { file: String, source: KeyringError },
    /// The OpenPGP signature is not believed.
    #[error("{url}: does not prove the artifact")]
    OpenPgp { url: String, source: Box<OpenPgpError> },
    /// The bundle is not believed.
    #[error("{url}: does not prove the artifact")]
    Sigstore {
        /// Address of the document or file.
        url: String,
        source: Box<SigstoreError>,
    },
    /// The signature is not believed.
    #[error("{url}: does not prove the artifact")]
    Cosign {
        /// Address of the document or file.
        url: String,
        source: Box<CosignError>,
    },
    /// The file is another program.
    #[error("{url}: is not the program that was asked for")]
    Program {
        /// Address of the document or file.
        url: String,
        source: ProgramError,
    },
    /// The registry does not give it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The trust anchor cannot be had.
    #[error(transparent)]
    Trust(#[from] AnchorError),
    /// The base image does not say how it boots.
    #[error(transparent)]
    Boot(#[from] BootError),
}

impl Hint for ResolveError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSnapshot { .. } => Some(
                "set `snapshot` of the archive to the directory with its snapshots, in a file for --sources".to_owned(),
            ),
            Self::Archive { source, .. } if matches!(**source, AptError::Stale { .. } | AptError::Aged { .. }) => Some(
                "the mirror may lag behind: --mirror names another one; --at DATE pins packages as of a past date"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Download(error) => Some(error),
            Self::Registry(error) => Some(error),
            Self::Trust(error) => Some(error),
            _ => None,
        }
    }
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
