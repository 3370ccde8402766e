//! Errors of verification.

use crate::anchors::AnchorError;
use crate::sources::Undefined;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_oci::{InvalidPlatform, OciError};
use vmbake_proof::apt::AptError;
use vmbake_proof::checksum::ChecksumError;
use vmbake_proof::cosign::CosignError;
use vmbake_proof::openpgp::{KeyringError, OpenPgpError};
use vmbake_proof::sigstore::SigstoreError;
use vmbake_proof::sigstore::rekor::RekorError;
use vmbake_store::download::DownloadError;
use vmbake_store::store::StoreError;

/// An entry that could not be verified.
#[derive(Debug, thiserror::Error)]
#[error("{name}: verification failed")]
pub struct ProveError {
    pub name: String,
    /// The missing link.
    pub source: Box<LinkError>,
}

impl Hint for ProveError {
    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        Some(&*self.source)
    }
}

/// The missing link in the chain from a trust anchor to an entry.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the manifest records {found}, but its source requires {demanded}")]
    Weak { demanded: String, found: String },
    #[error("the manifest records {found}, but no source defines the required proof")]
    Unknown { found: String },
    #[error("the manifest pins no evidence for {proof}")]
    NoEvidence { proof: String },
    #[error("evidence {digest}: no URL in the manifest")]
    Unlisted { digest: Box<Digest> },
    #[error("evidence {digest}: the URL in the manifest is {found}, expected {expected}")]
    Elsewhere {
        digest: Box<Digest>,
        found: String,
        /// The expected URL.
        expected: String,
    },
    #[error("the program and its version can be checked only with the file, which is not in the store")]
    Unseen,
    #[error("evidence {digest} is not in the store (from {url})")]
    Absent {
        digest: Box<Digest>,
        /// Its upstream URL.
        url: String,
    },
    #[error("evidence {digest}: {found} bytes with digest {actual} in the store, expected {expected} bytes")]
    Damaged {
        /// The digest in the manifest.
        digest: Box<Digest>,
        actual: Box<Digest>,
        /// The length in the manifest.
        expected: u64,
        found: u64,
    },
    #[error("evidence {digest}: download failed")]
    Download { digest: Box<Digest>, source: DownloadError },
    #[error("the manifest states {what} {found}, but the proven one is {proven}")]
    Differs { what: &'static str, found: String, proven: String },
    #[error("cannot evaluate its source")]
    Template(#[from] Undefined),
    #[error("{file}: cannot use the keyring")]
    Keyring { file: String, source: KeyringError },
    #[error("the archive does not prove it")]
    Apt(#[from] AptError),
    #[error("the checksum file does not prove it")]
    Checksum(#[from] ChecksumError),
    #[error("the OpenPGP signature does not prove it")]
    OpenPgp(#[from] OpenPgpError),
    #[error("the bundle does not prove it")]
    Sigstore(#[from] SigstoreError),
    #[error("the signature does not prove it")]
    Cosign(#[from] CosignError),
    #[error("cannot use the log entry")]
    Log(#[from] RekorError),
    #[error("the index does not lead to it")]
    Oci(#[from] OciError),
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    #[error("archive {archive} is not in the sources")]
    NoArchive { archive: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for LinkError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Absent { .. } | Self::Damaged { .. } | Self::Unseen | Self::Oci(_) => {
                "`vmbake fetch` downloads artifacts and evidence that a manifest pins; use --store to choose another store"
            }
            Self::NoArchive { .. } => "use --sources FILE with the file that lists it, as for `vmbake update`",
            Self::Anchor(_) => crate::anchors::HINT,
            Self::NoEvidence { .. } | Self::Unlisted { .. } => {
                "`vmbake update --refresh` verifies every entry again and pins the evidence"
            }
            Self::Unknown { .. } => {
                "use --sources with a file that defines the source; manually pinned entries have no `proof`"
            }
            Self::Download { .. } => {
                "use `vmbake update --refresh` to pin the current upstream version, or --mirror with a site that still has the evidence"
            }
            _ => {
                "the manifest was modified, or the trust anchors have changed since: use `vmbake update --refresh` \
                to verify every entry from upstream"
            }
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Template, Apt, Checksum, OpenPgp, Sigstore, Cosign, Log, Oci, Platform, Anchor, Store, Message; Download, Keyring);
}
