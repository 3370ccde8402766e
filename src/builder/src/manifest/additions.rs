//! What others add to the manifest of an image: artifacts of layers that come along, with what proves them.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Dependency, Document, Manifest, ManifestError};
use crate::digest::Digest;
use crate::upstream::UpstreamRequest;

/// Layers and artifacts that come to those of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// The layers, which come before the top layer of the kind.
    pub layers: Vec<String>,
    /// Artifacts by name.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The documents that their proofs rest on.
    pub evidence: BTreeMap<Digest, Document>,
    /// What the layers ask of upstreams, by their names.
    pub requests: BTreeMap<String, UpstreamRequest>,
}

impl Manifest {
    /// The manifest at `path`, with what comes to it.
    pub fn load_with(path: &Path, more: &Additions) -> Result<Self, ManifestError> {
        Self::load(path)?.with(path, more)
    }

    /// The manifest with what comes to it; without that, the same bytes. No name may be there twice. `path` is for messages.
    pub fn with(self, path: &Path, more: &Additions) -> Result<Self, ManifestError> {
        if more.dependencies.is_empty() && more.requests.is_empty() {
            return Ok(self);
        }
        let mut content = self.content;
        for (name, entry) in &more.dependencies {
            if content.dependencies.insert(name.clone(), entry.clone()).is_some() {
                return Err(ManifestError::Twice { path: path.to_owned(), name: name.clone() });
            }
        }
        content.evidence.extend(more.evidence.clone());
        content.requests.extend(more.requests.clone());
        let text = content.to_text().map_err(|source| ManifestError::Text { path: path.to_owned(), source })?;
        Self::parse(path, text.into_bytes())
    }
}
