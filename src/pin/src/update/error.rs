//! Why manifests are not brought up to date.

use std::path::PathBuf;

use super::RequestError;
use super::open::Entry;
use jiff::Timestamp;
use vmbake_disk::disk::AssembleError;

use crate::closure::ClosureError;
use crate::prove::LinkError;
use crate::resolve::{ResolveError, Resolver};
use crate::sources::SourcesError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::hint::Hint;
use vmbake_image::identity::IdentityError;
use vmbake_manifest::ManifestError;

/// Why manifests could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Sources(#[from] SourcesError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("nothing is called {name} in the sources of {targets}")]
    UnknownName {
        /// The name that is asked for.
        name: String,
        /// The targets that were looked at.
        targets: String,
    },
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("{target}: cannot be brought in line with its layers")]
    Settle { target: String, source: Box<EntryError> },
    #[error("{target}: the packages of its layers cannot be pinned")]
    Packages { target: String, source: Box<EntryError> },
    #[error("{failed} of {total} entries could not be resolved")]
    Incomplete {
        failed: usize,
        total: usize,
        /// Whether all that failed is the base image of `--image`.
        only_image: bool,
    },
}

impl UpdateError {
    /// Of `total` entries, `failures` were not resolved.
    pub(super) fn incomplete(failures: &[Entry<'_>], total: usize, resolver: &Resolver<'_>) -> Self {
        let is_given = |entry: &Entry<'_>| resolver.image.is_some() && matches!(entry, Entry::OsImage);
        Self::Incomplete { failed: failures.len(), total, only_image: failures.iter().all(is_given) }
    }
}

impl Hint for UpdateError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Incomplete { only_image: true, .. } => {
                "--image takes a raw or qcow2 image of a disk with a GUID partition table and a root file system of --os and --arch; the \
                 entries that were resolved are kept"
            }
            Self::Incomplete { .. } => {
                "what was resolved is kept: run it again for the rest when the reasons above are gone. If a site cannot be \
                 reached, https_proxy names a proxy, and --mirror PREFIX=URL asks another place. An entry that is deleted from \
                 the manifest takes whatever upstream has"
            }
            Self::UnknownName { .. } => {
                "`vmbake manifest show FILE` lists the entries of a manifest; the base image is os.image"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Sources, Manifest, Request; Settle, Packages);
}

/// Why one entry was not resolved or not kept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum EntryError {
    /// The packages that layers ask for cannot be chosen.
    Closure(#[from] ClosureError),
    /// It was not resolved.
    Resolve(#[from] ResolveError),
    /// The manifest cannot be written.
    Publish(#[from] PublishError),
    /// The manifest cannot be written as JSON.
    Text(#[from] serde_json::Error),
    /// The manifest that is there cannot be used.
    Manifest(#[from] ManifestError),
    #[error("{path}: cannot lock the directory of the manifest")]
    Lock { path: PathBuf, source: std::io::Error },
    #[error("what was resolved cannot be proven again")]
    Replay(#[from] LinkError),
    #[error("upstream has {found}, which is older than the pinned {pinned}")]
    Downgrade { pinned: String, found: String },
    #[error("{found:?} is not a valid version")]
    Version { found: String },
    #[error("upstream has {found}, the manifest pins {pinned}")]
    Other {
        /// Version and digest in the manifest.
        pinned: String,
        found: String,
    },
    #[error("its version at {at} is unknown: only the newest one is published")]
    NotPast { at: Timestamp },
    /// The base image is another system than the manifest is for.
    Identity(#[from] IdentityError),
    #[error("{path}: not usable as a base image")]
    Partitions { path: PathBuf, source: AssembleError },
    #[error("{path}: cannot read the base image")]
    Image { path: PathBuf, source: std::io::Error },
}

impl Hint for EntryError {
    fn hint(&self) -> Option<String> {
        let text = "run `vmbake update` without --at first: entries that are pinned are kept. A base image can be given with --image";
        matches!(self, Self::NotPast { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Closure, Resolve, Publish, Manifest, Replay, Identity; Lock, Partitions, Image);
}
