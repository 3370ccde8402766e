//! Why an entry of a manifest is not proven.

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

/// An entry that is not proven.
#[derive(Debug, thiserror::Error)]
#[error("{name}: is not proven")]
pub struct ProveError {
    /// Name of the entry.
    pub name: String,
    /// The missing link.
    pub source: Box<LinkError>,
}

impl Hint for ProveError {
    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        Some(&*self.source)
    }
}

/// The link that is missing between an entry and who answers for it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the manifest records {found}, its source demands {demanded}")]
    Weak { demanded: String, found: String },
    #[error("the manifest records {found}, but no source says how that is proven")]
    Unknown { found: String },
    #[error("the manifest pins no evidence for {proof}")]
    NoEvidence { proof: String },
    #[error("evidence {digest}: the manifest does not say where it is")]
    Unlisted { digest: Box<Digest> },
    #[error("evidence {digest}: the manifest says that it is from {found}, and it must be from {expected}")]
    Elsewhere {
        digest: Box<Digest>,
        found: String,
        /// Where it must be from.
        expected: String,
    },
    #[error("which program and version it is, only the file tells, and that is not in the store")]
    Unseen,
    #[error("evidence {digest} is not in the store (from {url})")]
    Absent {
        digest: Box<Digest>,
        /// Where it would come from.
        url: String,
    },
    #[error("evidence {digest}: {found} bytes with digest {actual} in the store, the manifest says {expected} bytes")]
    Damaged {
        /// The digest that the manifest says.
        digest: Box<Digest>,
        actual: Box<Digest>,
        /// The length that the manifest says.
        expected: u64,
        found: u64,
    },
    #[error("evidence {digest}: cannot be downloaded")]
    Download { digest: Box<Digest>, source: DownloadError },
    #[error("the manifest says {what} {found}, proven is {proven}")]
    Differs { what: &'static str, found: String, proven: String },
    #[error("its source cannot be applied")]
    Template(#[from] Undefined),
    #[error("{file}: not a usable keyring")]
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
    #[error("the log entry cannot be used")]
    Log(#[from] RekorError),
    #[error("its index does not lead to it")]
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
                "`vmbake fetch` brings artifacts and evidence that a manifest pins; --store names another store"
            }
            Self::NoArchive { .. } => "pass --sources FILE with the file that lists it, as for `vmbake update`",
            Self::Anchor(_) => crate::anchors::HINT,
            Self::NoEvidence { .. } | Self::Unlisted { .. } => {
                "`vmbake update --refresh` proves every entry again, and pins what proves it"
            }
            Self::Unknown { .. } => {
                "--sources names what its source demands; without a source an entry is pinned by hand, and has no `proof`"
            }
            Self::Download { .. } => {
                "`vmbake update --refresh` pins what upstream has now; --mirror names a place that still has the evidence"
            }
            _ => {
                "somebody has changed the manifest, or what is trusted has changed since: `vmbake update --refresh` proves every \
                 entry again from upstream"
            }
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Template, Apt, Checksum, OpenPgp, Sigstore, Cosign, Log, Oci, Platform, Anchor, Store, Message; Download, Keyring);
}
