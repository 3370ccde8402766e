//! What a site has already: the blobs that an earlier archive names, or a release or an archive in a registry.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::CarryError;
use super::contents::Contents;
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_oci::{Descriptor, RemoteName};
use vmbake_store::registry::{RemoteManifest, Repository};

/// As many manifests of an index are read.
const MAX_MANIFESTS: usize = 256;

/// What need not be carried to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Digest of the index or manifest that names it.
    pub digest: Digest,
    /// The blobs, with their lengths in bytes.
    pub blobs: BTreeMap<Digest, u64>,
}

/// An index or a manifest, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Listed {
    /// Of an index.
    #[serde(default)]
    manifests: Vec<Descriptor>,
    /// Of a manifest.
    #[serde(default)]
    layers: Vec<Descriptor>,
}

impl Earlier {
    /// What the archive at `path` has, and what it left out.
    pub fn archive(path: &Path) -> Result<Self, CarryError> {
        let contents = Contents::open(path)?;
        let blobs = contents.listed.into_iter().map(|(digest, blob)| (digest, blob.size)).collect();
        Ok(Self { digest: contents.index_digest, blobs })
    }

    /// What an index or a manifest of a repository names. Nobody need have signed it: a site that lacks something says so.
    pub fn remote(repository: &Repository, reference: &RemoteName) -> Result<Self, CarryError> {
        let name = reference.digest.map(|digest| digest.to_string()).or_else(|| reference.tag.clone());
        let name =
            name.ok_or_else(|| CarryError::Message(message!("{reference}: names neither a tag nor a digest")))?;
        let first = repository.manifest(&name)?;
        let Listed { manifests, mut layers } = read(&first)?;
        if manifests.len() > MAX_MANIFESTS {
            return Err(CarryError::Message(message!("{}: lists more than {} manifests", first.digest, MAX_MANIFESTS)));
        }
        for manifest in manifests {
            layers.extend(read(&repository.manifest(&manifest.digest.to_string())?)?.layers);
        }
        let blobs = layers.into_iter().map(|layer| (layer.digest, layer.size)).collect();
        Ok(Self { digest: first.digest, blobs })
    }
}

fn read(document: &RemoteManifest) -> Result<Listed, CarryError> {
    let unreadable =
        |source| CarryError::Message(message!("{}: not a valid index or manifest", document.digest).by(source));
    serde_json::from_slice(&document.bytes).map_err(unreadable)
}
