//! What others add to the manifest of an image: artifacts of layers that come along, with what proves them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::{Dependency, Document, Manifest, ManifestError, PinnedBundle};
use crate::upstream::UpstreamRequest;
use vmbake_common::digest::Digest;
use vmbake_common::message;

/// Layers and artifacts that come to those of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Additions {
    /// The layers, which come before the top layer of the kind.
    pub layers: Vec<String>,
    /// The bundles that they come from, by name.
    pub bundles: BTreeMap<String, PinnedBundle>,
    /// Where those were taken from, by name, unless they were files.
    pub references: BTreeMap<String, String>,
    /// Artifacts by name.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The documents that their proofs rest on.
    pub evidence: BTreeMap<Digest, Document>,
    /// What the layers ask of upstreams, by their names.
    pub requests: BTreeMap<String, UpstreamRequest>,
    /// Grants by layer; other layers may change anything.
    pub granted: BTreeMap<String, LayerGrants>,
    /// What the image must have.
    pub needs: Vec<ImageNeed>,
}

/// What a layer may change in the tree of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerGrants {
    /// Absolute paths without symbolic links; everything below each is meant as well.
    pub paths: Vec<String>,
    /// Absolute paths of files that may have set-uid, set-gid or sticky bits, or file capabilities.
    pub setuid: Vec<String>,
}

/// Something that an image must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageNeed {
    /// Who needs it, for messages.
    pub by: String,
    /// What it is.
    pub kind: NeedKind,
    pub name: String,
}

/// A sort of thing that an image must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeedKind {
    /// A program of the usual directories.
    Program,
    /// A shared library.
    Library,
    /// A module of the kernel, or one that is part of it.
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
    /// The manifest at `path`, with what comes to it.
    pub fn load_with(path: &Path, more: &Additions) -> Result<Self, ManifestError> {
        Self::load(path)?.with(path, more)
    }

    /// The manifest with what comes to it; without that, the same bytes. No name may be there twice. `path` is for messages.
    pub fn with(self, path: &Path, more: &Additions) -> Result<Self, ManifestError> {
        if more.dependencies.is_empty() && more.requests.is_empty() && more.bundles.is_empty() {
            return Ok(self);
        }
        let mut content = self.content;
        for (name, entry) in &more.dependencies {
            if content.dependencies.insert(name.clone(), entry.clone()).is_some() {
                return Err(ManifestError::Message(message!("{}: has an artifact {name} already", path.display())));
            }
        }
        content.bundles.extend(more.bundles.clone());
        content.evidence.extend(more.evidence.clone());
        content.requests.extend(more.requests.clone());
        let text = content.to_text().map_err(|source| {
            ManifestError::Message(message!("{}: cannot write as JSON", path.display()).by(source))
        })?;
        Self::parse(path, text.into_bytes())
    }
}
