//! Errors of archives.

use std::path::PathBuf;

use vmbake_bake::BakeError;
use vmbake_bake::incremental::build_inputs::BuildInputsError;
use vmbake_bake::release::sign::SignError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::{FileError, Message};
use vmbake_manifest::ManifestError;
use vmbake_pin::anchors::AnchorError;
use vmbake_pin::sources::SourcesError;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why an archive could not be written or read. Offsets are bytes of the archive, all parts together.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{name:?}: not a valid member name")]
    Name { name: String },
    #[error("{path}: archives do not support bundles, found {}", bundles.join(", "))]
    Bundles {
        path: PathBuf,
        /// Their names or references.
        bundles: Vec<String>,
    },
    #[error("{title}: {digest} is not in the store")]
    NoBlob { title: String, digest: Box<Digest> },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("{title}: expected digest {expected}, found {found}")]
    Changed { title: String, found: Box<Digest>, expected: Box<Digest> },
    #[error("{path}: only qcow2 images can be archived")]
    NotQcow2 { path: PathBuf },
    #[error("{path}: truncated at offset {at:#x}, before {what}")]
    Truncated { path: PathBuf, at: u64, what: String },
    #[error("{path}: trailing data at offset {at:#x}")]
    Trailing { path: PathBuf, at: u64 },
    #[error("{path}: member {name:?} at offset {at:#x} {what}")]
    Member { path: PathBuf, name: String, at: u64, what: String },
    #[error("{path}: {name} is not a valid document of an archive")]
    Document { path: PathBuf, name: String, source: serde_json::Error },
    #[error("{path}: {name} {what}")]
    Meaning { path: PathBuf, name: String, what: String },
    #[error("{path}: incomplete: {first}{}", more(*.others))]
    Incomplete {
        path: PathBuf,
        /// The first problem.
        first: String,
        others: usize,
    },
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned { path: PathBuf, signer: String, reason: String },
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("{path}: already exists with different content")]
    Exists { path: PathBuf },
    #[error("{path}: another vmbake process is writing this directory")]
    Busy { path: PathBuf },
    #[error("{inputs} and {out}: one contains the other")]
    Nested { inputs: PathBuf, out: PathBuf },
    #[error("{path}: cannot be replaced atomically: it {reason}")]
    Fixed { path: PathBuf, reason: String },
    #[error("cannot serialize a document as JSON")]
    Json(#[source] serde_json::Error),
    #[error("{path}: contains neither images nor inputs")]
    Empty { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Inputs(#[from] BuildInputsError),
    #[error(transparent)]
    Sources(#[from] SourcesError),
    #[error(transparent)]
    Anchors(#[from] AnchorError),
    #[error(transparent)]
    Bake(#[from] BakeError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(", and {others} more") }
}

impl Hint for ArchiveError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoBlob { .. } => {
                "use `vmbake fetch` to download what manifests pin into the store, and --base for a local base image"
            }
            Self::Bundles { .. } => {
                "use --images to include image files only; or archive the kind without bundles, transfer the bundles as files, and bake with both"
            }
            Self::Truncated { .. } | Self::Incomplete { .. } => {
                "`vmbake archive verify` lists all problems; a split archive needs all parts"
            }
            Self::NotQcow2 { .. } => "use the qcow2 file of the same bake, which contains the same disk",
            Self::NotSigned { .. } => {
                "use --key with the public key; the signature must be next to the archive, as NAME.sigstore.json"
            }
            Self::Nested { .. } | Self::Exists { .. } => "choose another directory with --inputs-to or --out",
            Self::Busy { .. } => "run the command again when the other process has finished",
            Self::Fixed { .. } => "choose another directory with --out",
            Self::Read { source, .. }
                if matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidInput) =>
            {
                "use the name given to `vmbake archive create`: without .000 for a split archive"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Registry, Sign, Store, Publish, Manifest, Inputs, Sources, Anchors, Bake, File, Message; Read);
}
