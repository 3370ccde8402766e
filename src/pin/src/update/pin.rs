//! Pins without a proof: their version is resolved, and must be the same file.

use std::borrow::Cow;

use super::EntryError;
use crate::resolve::ResolveError;
use crate::sources::{Upstream, VersionSource};
use crate::version::is_version;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_manifest::{ContainerImage, Dependency};
use vmbake_store::store::{Store, StoreError};

/// A pin without a proof.
#[derive(Debug)]
pub(super) enum Pin {
    /// A version of an artifact.
    File {
        version: String,
        /// Digest of the file, perhaps by another algorithm than that of the proof.
        digest: Digest,
    },
    Image(Box<ContainerImage>),
}

impl Pin {
    /// The upstream with the pinned version, if the version can be chosen.
    pub(super) fn of<'a>(&self, upstream: &'a Upstream) -> Result<Cow<'a, Upstream>, EntryError> {
        let is_given =
            matches!(upstream.version, VersionSource::Apt { .. } | VersionSource::Pinned(_) | VersionSource::SameAs(_));
        match self {
            // The version becomes a part of URLs.
            Self::File { version, .. } if !is_given && !is_version(version) => {
                Err(EntryError::Version { found: version.clone() })
            }
            Self::File { version, .. } if !is_given => {
                Ok(Cow::Owned(Upstream { version: VersionSource::Pinned(version.clone()), ..upstream.clone() }))
            }
            _ => Ok(Cow::Borrowed(upstream)),
        }
    }

    /// Whether the resolved file is the pinned one, which is in the store.
    pub(super) fn check(&self, store: &Store, found: &Dependency) -> Result<(), EntryError> {
        let Self::File { version, digest } = self else { return Ok(()) };
        let path = store.path(&found.digest);
        let read = |source| ResolveError::from(StoreError::Read { path: path.clone(), source });
        let (same, _) = digest.of_stream(input::open_regular(&path).map_err(read)?).map_err(read)?;
        if same == *digest {
            return Ok(());
        }
        Err(EntryError::Other { pinned: format!("{version}, {digest}"), found: format!("{}, {same}", found.version) })
    }

    /// Whether a container image is the pinned one.
    pub(super) fn check_image(&self, found: &ContainerImage) -> Result<(), EntryError> {
        let Self::Image(pinned) = self else { return Ok(()) };
        if (&pinned.image, pinned.digest, pinned.index) == (&found.image, found.digest, found.index) {
            return Ok(());
        }
        let shown = |image: &ContainerImage| format!("{}, {}", image.image, image.index);
        Err(EntryError::Other { pinned: shown(pinned), found: shown(found) })
    }
}
