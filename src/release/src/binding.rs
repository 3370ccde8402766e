//! Name and version of a release: annotations of the index, so that its signature covers both.
//!
//! The name is that of the repository without the host, so that it is the same on a mirror. Versions are ordered like
//! those of bundles.

use std::collections::BTreeMap;

use crate::version::Version;
use vmbake_common::digest::Digest;
use vmbake_oci::RemoteName;

/// Annotation with the name.
const NAME: &str = "vmbake.release.name";
/// Annotation with the version.
const VERSION: &str = "vmbake.release.version";

/// Name and version of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseBinding {
    /// The name of its repository, without the host.
    pub name: String,
    /// Its version; `None` if the publisher set none.
    pub version: Option<Version>,
}

impl ReleaseBinding {
    /// For a push to `reference`; the version defaults to the tag, if that is a valid version.
    pub fn of(reference: &RemoteName, version: Option<&Version>) -> Self {
        // Tags cannot contain `+`.
        let tagged = || reference.tag.as_ref()?.replace('_', "+").parse().ok();
        Self { name: reference.repository.name().to_owned(), version: version.cloned().or_else(tagged) }
    }

    /// Reads the annotations of an index; `None` if it has none, as in releases of earlier versions.
    pub(crate) fn read(
        index: &Digest,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, (Digest, String)> {
        let version = annotations.get(VERSION).map(|text| text.parse::<Version>());
        let version = version.transpose().map_err(|error| (*index, format!("{VERSION}: {error}")))?;
        match (annotations.get(NAME), version) {
            (Some(name), version) => Ok(Some(Self { name: name.clone(), version })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err((*index, format!("{VERSION} without {NAME}"))),
        }
    }

    pub(super) fn annotations(&self) -> impl Iterator<Item = (String, String)> {
        let version = self.version.as_ref().map(|version| (VERSION.to_owned(), version.to_string()));
        std::iter::once((NAME.to_owned(), self.name.clone())).chain(version)
    }
}
