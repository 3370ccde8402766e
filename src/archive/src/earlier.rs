//! The contents that a site has already: the blobs listed in an earlier archive, or in a release or archive in a
//! registry.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::ArchiveError;
use super::contents::Contents;
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_oci::{Descriptor, RemoteName};
use vmbake_store::registry::{RemoteManifest, Repository};

/// Maximum number of manifests in an index.
const MAX_MANIFESTS: usize = 256;

/// The blobs to leave out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Digest of the index or manifest that lists them.
    pub digest: Digest,
    /// The blobs with their lengths in bytes.
    pub blobs: BTreeMap<Digest, u64>,
}

/// The relevant parts of an index or a manifest.
#[derive(Debug, Deserialize)]
struct Listed {
    /// In an index.
    #[serde(default)]
    manifests: Vec<Descriptor>,
    /// In a manifest.
    #[serde(default)]
    layers: Vec<Descriptor>,
}

impl Earlier {
    /// The blobs of the archive at `path`, including those that it left out.
    pub fn archive(path: &Path) -> Result<Self, ArchiveError> {
        let contents = Contents::open(path)?;
        let blobs = contents.listed.into_iter().map(|(digest, blob)| (digest, blob.size)).collect();
        Ok(Self { digest: contents.index_digest, blobs })
    }

    /// The blobs that an index or a manifest of a repository lists. It need not be signed: a site with missing blobs
    /// reports that.
    pub fn remote(repository: &Repository, reference: &RemoteName) -> Result<Self, ArchiveError> {
        let name = reference.digest.map(|digest| digest.to_string()).or_else(|| reference.tag.clone());
        let name = name.ok_or_else(|| ArchiveError::Message(message!("{reference}: expected a tag or a digest")))?;
        let first = repository.manifest(&name)?;
        let Listed { manifests, mut layers } = read(&first)?;
        if manifests.len() > MAX_MANIFESTS {
            return Err(ArchiveError::Message(message!(
                "{}: index with more than {} manifests",
                first.digest,
                MAX_MANIFESTS
            )));
        }
        for manifest in manifests {
            layers.extend(read(&repository.manifest(&manifest.digest.to_string())?)?.layers);
        }
        let blobs = layers.into_iter().map(|layer| (layer.digest, layer.size)).collect();
        Ok(Self { digest: first.digest, blobs })
    }
}

fn read(document: &RemoteManifest) -> Result<Listed, ArchiveError> {
    let unreadable =
        |source| ArchiveError::Message(message!("{}: invalid index or manifest", document.digest).by(source));
    serde_json::from_slice(&document.bytes).map_err(unreadable)
}
