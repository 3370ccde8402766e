//! An entry of a manifest as it may be written.

use serde::Deserialize;

use super::{ArtifactType, Digest, Proof};

/// All keys of an entry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dependency {
    version: String,
    url: String,
    #[serde(rename = "type")]
    kind: ArtifactType,
    digest: Digest,
    size: u64,
    /// Clouds that use the artifact. An image is for all clouds, so nothing depends on them.
    #[serde(default, rename = "providers")]
    _providers: Vec<String>,
    #[serde(default)]
    proof: Option<Proof>,
}

impl From<Dependency> for super::Dependency {
    fn from(form: Dependency) -> Self {
        let Dependency { version, url, kind, digest, size, proof, .. } = form;
        Self { version, url, kind, digest, size, proof }
    }
}
