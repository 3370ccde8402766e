//! Why an entry of a manifest is not proven.

use crate::anchors::AnchorError;
use crate::sources::Undefined;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_oci::{InvalidPlatform, OciError};
use vmbake_proof::apt::AptError;
use vmbake_proof::checksum::ChecksumError;
use vmbake_proof::cosign::CosignError;
use vmbake_proof::openpgp::{KeyringError, OpenPgpError};
use vmbake_proof::program::ProgramError;
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

/// The link that is missing between an entry and who answers for it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The proof is weaker than the source demands.
    #[error("the manifest records {found}, its source demands {demanded}")]
    Weak { demanded: String, found: String },
    /// Nobody says how the entry must be proven.
    #[error("the manifest records {found}, but no source says how that is proven")]
    Unknown { found: String },
    /// The manifest names no documents.
    #[error("the manifest pins no evidence for {proof}")]
    NoEvidence { proof: String },
    /// A proof names a document that the manifest does not list.
    #[error("evidence {digest}: the manifest does not say where it is")]
    Unlisted { digest: Box<Digest> },
    /// The document is from somewhere else.
    #[error("evidence {digest}: the manifest says that it is from {found}, and it must be from {expected}")]
    Elsewhere {
        digest: Box<Digest>,
        found: String,
        /// Where it must be from.
        expected: String,
    },
    /// The version could not be part of an address.
    #[error("{found:?} is no version")]
    Version { found: String },
    /// The digest is proven, and what the file is, is not.
    #[error("which program and version it is, only the file tells, and that is not in the store")]
    Unseen,
    /// The file is another program.
    #[error("it is not the program that its source demands")]
    Program(#[source] ProgramError),
    /// Offline, and the store does not have the document.
    #[error("evidence {digest} is not in the store (from {url})")]
    Absent {
        digest: Box<Digest>,
        /// Where it would come from.
        url: String,
    },
    /// The store has something else in its place.
    #[error("evidence {digest}: {found} bytes with digest {actual} in the store, the manifest says {expected} bytes")]
    Damaged {
        /// The digest that the manifest says.
        digest: Box<Digest>,
        actual: Box<Digest>,
        /// The length that the manifest says.
        expected: u64,
        found: u64,
    },
    /// No document of a proof is that long.
    #[error("evidence {digest}: {size} bytes, more than the {limit} that evidence may have")]
    TooLarge {
        digest: Box<Digest>,
        /// Its size in bytes.
        size: u64,
        limit: u64,
    },
    /// No address had it, or not with its digest.
    #[error("evidence {digest}: cannot be downloaded")]
    Download { digest: Box<Digest>, source: DownloadError },
    /// The entry is not what the proof says.
    #[error("the manifest says {what} {found}, proven is {proven}")]
    Differs { what: &'static str, found: String, proven: String },
    /// The chain of an apt repository breaks.
    #[error("its {what} does not list the index {digest}")]
    Index {
        /// The document that should list it.
        what: &'static str,
        digest: Box<Digest>,
    },
    /// The source has words that mean nothing for this target.
    #[error("its source cannot be applied")]
    Template(#[from] Undefined),
    /// The keys of an archive cannot be used.
    #[error("{file}: not a usable keyring")]
    Keyring { file: String, source: KeyringError },
    /// The chain from the signature to the package breaks.
    #[error("the archive does not prove it")]
    Apt(#[from] AptError),
    /// The list of checksums says something else.
    #[error("the checksum file does not prove it")]
    Checksum(#[from] ChecksumError),
    /// The OpenPGP signature is not believed.
    #[error("the OpenPGP signature does not prove it")]
    OpenPgp(#[from] OpenPgpError),
    /// The bundle is not believed.
    #[error("the bundle does not prove it")]
    Sigstore(#[from] SigstoreError),
    /// The signature is not believed.
    #[error("the signature does not prove it")]
    Cosign(#[from] CosignError),
    /// The log's answer cannot be read.
    #[error("the log entry cannot be used")]
    Log(#[from] RekorError),
    /// The chain from the index to the image breaks.
    #[error("its index does not lead to it")]
    Oci(#[from] OciError),
    /// The architecture is none of an image.
    #[error(transparent)]
    Platform(#[from] InvalidPlatform),
    /// The trust anchor cannot be had.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// The sources lack the archive.
    #[error("archive {archive} is not in the sources")]
    NoArchive { archive: String },
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
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
}
