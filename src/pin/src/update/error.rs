//! Errors of updates.

use std::path::PathBuf;

use super::RequestError;
use super::open::Entry;
use jiff::Timestamp;
use vmbake_disk::disk::AssembleError;

use crate::closure::ClosureError;
use crate::prove::LinkError;
use crate::resolve::{ResolveError, Resolver, WantedBase};
use crate::root_base::RootBaseError;
use crate::sources::SourcesError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::hint::Hint;
use vmbake_disk::image::Format;
use vmbake_image::identity::IdentityError;
use vmbake_manifest::ManifestError;

/// Why manifests could not be updated.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Sources(#[from] SourcesError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("no entry {name} in the sources of {targets}")]
    UnknownName {
        /// The requested name.
        name: String,
        /// The searched targets.
        targets: String,
    },
    #[error("{target}: {option} is given, but a layer of the kind has `system`, so that it has no base image")]
    NoBase { target: String, option: &'static str },
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("{target}: cannot apply the requests of its layers")]
    Settle { target: String, source: Box<EntryError> },
    #[error("{target}: cannot pin the packages of its layers")]
    Packages { target: String, source: Box<EntryError> },
    #[error("{failed} of {total} entries could not be resolved")]
    Incomplete {
        failed: usize,
        total: usize,
        /// Whether only the disk image of `--image` failed.
        only_image: bool,
    },
}

impl UpdateError {
    /// The error for `failures` among `total` entries.
    pub(super) fn incomplete(failures: &[Entry<'_>], total: usize, resolver: &Resolver<'_>) -> Self {
        let is_given =
            |entry: &Entry<'_>| matches!((entry, &resolver.base), (Entry::OsImage, Some(WantedBase::Disk { .. })));
        Self::Incomplete { failed: failures.len(), total, only_image: failures.iter().all(is_given) }
    }
}

impl Hint for UpdateError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Incomplete { only_image: true, .. } => {
                return Some(format!(
                    "use --image with a {} image of a disk with a GUID partition table and a root file \
                    system of --os and --arch; the resolved entries are kept",
                    Format::NAMES
                ));
            }
            Self::Incomplete { .. } => {
                "the resolved entries are kept: run the command again when the causes above are resolved. If a \
                site is unreachable, use https_proxy for a proxy, or --mirror PREFIX=URL for a mirror. To accept \
                another upstream version, delete the entry from the manifest"
            }
            Self::NoBase { option, .. } => return Some(format!("leave out {option}, or the layer with `system`")),
            Self::UnknownName { .. } => {
                "`vmbake manifest show FILE` lists the entries of a manifest; the base image is os.image"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Sources, Manifest, Request; Settle, Packages);
}

/// Why an entry was not resolved or not kept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum EntryError {
    /// The dependencies of layers cannot be resolved.
    Closure(#[from] ClosureError),
    Resolve(#[from] ResolveError),
    /// The manifest cannot be written.
    Publish(#[from] PublishError),
    /// The manifest cannot be serialized as JSON.
    Text(#[from] serde_json::Error),
    /// The existing manifest cannot be used.
    Manifest(#[from] ManifestError),
    #[error("{path}: cannot lock the directory of the manifest")]
    Lock {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot verify the resolved entry from the stored evidence")]
    Replay(#[from] LinkError),
    #[error("upstream has {found}, which is older than the pinned {pinned}")]
    Downgrade {
        pinned: String,
        found: String,
    },
    #[error("{found:?} is not a valid version")]
    Version {
        found: String,
    },
    #[error("upstream has {found}, but the manifest pins {pinned}")]
    Other {
        /// Version and digest in the manifest.
        pinned: String,
        found: String,
    },
    #[error("unknown version as of {at}: upstream publishes only the newest one")]
    NotPast {
        at: Timestamp,
    },
    Root(#[from] RootBaseError),
    /// The base image is of another system than the manifest.
    Identity(#[from] IdentityError),
    #[error("{path}: cannot be used as a base image")]
    Partitions {
        path: PathBuf,
        source: AssembleError,
    },
    #[error("{path}: cannot read the base image")]
    Image {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl Hint for EntryError {
    fn hint(&self) -> Option<String> {
        let text =
            "run `vmbake update` without --at first: pinned entries are kept. Use --image to provide a base image";
        matches!(self, Self::NotPast { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Closure, Resolve, Publish, Manifest, Replay, Root, Identity; Lock, Partitions, Image);
}
