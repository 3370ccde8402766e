//! Additions to the manifest of an image: artifacts of additional layers with their proofs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::{Dependency, Document, Manifest, ManifestError, PinnedBundle};
use crate::upstream::UpstreamRequest;
use vmbake_common::digest::Digest;
use vmbake_common::message;

/// Layers and artifacts added to those of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// The layers, inserted before the top layer of the kind.
    pub layers: Vec<String>,
    /// Their bundles, by name.
    pub bundles: BTreeMap<String, PinnedBundle>,
    /// The references that the bundles were pulled from, by name; local files have none.
    pub references: BTreeMap<String, String>,
    /// Artifacts by name.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The evidence of their proofs.
    pub evidence: BTreeMap<Digest, Document>,
    /// Downloads and container images requested by layers, by layer name.
    pub requests: BTreeMap<String, UpstreamRequest>,
    /// Grants by layer; layers without grants are not restricted.
    pub granted: BTreeMap<String, LayerGrants>,
    /// The requirements on the image.
    pub needs: Vec<ImageNeed>,
}

/// The changes that a layer may make to the tree of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerGrants {
    /// Absolute paths without symbolic links, including everything below them.
    pub paths: Vec<String>,
    /// Absolute paths of files that may have set-uid, set-gid or sticky bits, or file capabilities.
    pub setuid: Vec<String>,
    /// Layers whose variables of the first boot it may read, in addition to those of its bundle.
    pub variables: BTreeSet<String>,
}

/// A requirement on an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageNeed {
    /// The origin of the requirement, for messages.
    pub by: String,
    pub kind: NeedKind,
    pub name: String,
}

/// A type of requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedKind {
    /// A program in the usual directories.
    Program,
    Library,
    /// A kernel module, loadable or built in.
    Module,
}

impl fmt::Display for ImageNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            NeedKind::Program => "program",
            NeedKind::Library => "library",
            NeedKind::Module => "kernel module",
        };
        write!(f, "{} requires {kind} {}", self.by, self.name)
    }
}

impl Manifest {
    /// Loads the manifest at `path` and applies the additions.
    pub fn load_with(path: &Path, more: &Additions) -> Result<Self, ManifestError> {
        Self::load(path)?.with(path, more)
    }

    /// The manifest with the additions; without any, its bytes are unchanged. Duplicate names are errors. `path` is for
    /// messages.
    pub fn with(self, path: &Path, more: &Additions) -> Result<Self, ManifestError> {
        if more.dependencies.is_empty() && more.requests.is_empty() && more.bundles.is_empty() {
            return Ok(self);
        }
        let mut content = self.content;
        for (name, entry) in &more.dependencies {
            if content.dependencies.insert(name.clone(), entry.clone()).is_some() {
                return Err(ManifestError::Message(message!("{}: duplicate artifact {name}", path.display())));
            }
        }
        content.bundles.extend(more.bundles.clone());
        content.evidence.extend(more.evidence.clone());
        content.requests.extend(more.requests.clone());
        let text = content.to_text().map_err(|source| {
            ManifestError::Message(message!("{}: cannot serialize as JSON", path.display()).by(source))
        })?;
        Self::parse(path, text.into_bytes())
    }
}
