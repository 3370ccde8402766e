//! Why an archive was not written or not read.

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

/// Why an archive was not written or not read. Offsets are bytes of the archive, all parts together.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{name:?}: cannot be the name of a member")]
    Name { name: String },
    #[error("{path}: is of an image with {}, and an archive carries no bundles", bundles.join(", "))]
    Bundles {
        path: PathBuf,
        /// Their names, or where they are.
        bundles: Vec<String>,
    },
    #[error("{title}: {digest} is not in the store")]
    NoBlob { title: String, digest: Box<Digest> },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("{title}: has digest {found}, expected {expected}")]
    Changed {
        title: String,
        found: Box<Digest>,
        /// The digest that it should have.
        expected: Box<Digest>,
    },
    #[error("{path}: only qcow2 images are put into archives")]
    NotQcow2 { path: PathBuf },
    #[error("{path}: ends at offset {at:#x}, before {what}: it is cut off")]
    Truncated { path: PathBuf, at: u64, what: String },
    #[error("{path}: goes on at offset {at:#x}, after its end")]
    Trailing { path: PathBuf, at: u64 },
    #[error("{path}: the member {name:?} at offset {at:#x} {what}")]
    Member { path: PathBuf, name: String, at: u64, what: String },
    #[error("{path}: {name} is not a document of an archive")]
    Document { path: PathBuf, name: String, source: serde_json::Error },
    #[error("{path}: {name} {what}")]
    Meaning { path: PathBuf, name: String, what: String },
    #[error("{path}: not complete: {first}{}", more(*.others))]
    Incomplete {
        path: PathBuf,
        /// The first of what is wrong.
        first: String,
        others: usize,
    },
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned { path: PathBuf, signer: String, reason: String },
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("{path}: already exists with different content")]
    Exists { path: PathBuf },
    #[error("{path}: another vmbake process is writing this folder")]
    Busy { path: PathBuf },
    #[error("{inputs} and {out}: one contains the other")]
    Nested { inputs: PathBuf, out: PathBuf },
    #[error("{path}: cannot be replaced in one step: it {reason}")]
    Fixed { path: PathBuf, reason: String },
    #[error("cannot write a document as JSON")]
    Json(#[source] serde_json::Error),
    #[error("{path}: has neither images nor inputs")]
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

impl Hint for CarryError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoBlob { .. } => {
                "`vmbake fetch` brings what manifests pin into the store; --base names a base image of your own"
            }
            Self::Bundles { .. } => {
                "--images takes the files of the image alone; archive its kind without bundles, carry them as files, and bake with both"
            }
            Self::Truncated { .. } | Self::Incomplete { .. } => {
                "`vmbake archive verify` lists what is wrong; all parts of a split archive must be there"
            }
            Self::NotQcow2 { .. } => "name the qcow2 file of the same bake; it holds the same disk",
            Self::NotSigned { .. } => {
                "--key names the public key; the signature belongs beside the archive, NAME.sigstore.json"
            }
            Self::Nested { .. } | Self::Exists { .. } => "choose another folder with --inputs-to or --out",
            Self::Busy { .. } => "run the command again when the other one has finished",
            Self::Fixed { .. } => "choose another folder with --out",
            Self::Read { source, .. }
                if matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::InvalidInput) =>
            {
                "name the archive as `vmbake archive create` was told to: without .000 where it has parts"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Registry, Sign, Store, Publish, Manifest, Inputs, Sources, Anchors, Bake, File, Message; Read);
}
