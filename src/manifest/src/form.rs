//! The file format of manifests, in which common proofs are stored once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    ArtifactType, ClosureRecord, ContainerImage, Digest, Document, Os, PackageReason, PinnedAccounts, PinnedBundle,
    Proof,
};
use crate::upstream::UpstreamRequest;
use recorded::Recorded;
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;

mod recorded;
mod stub;

/// All keys of a manifest.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    version: String,
    kind: String,
    os: Os,
    #[serde(default, deserialize_with = "stub::without_stub")]
    dependencies: BTreeMap<String, Dependency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closure: Option<ClosureRecord>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    requests: BTreeMap<String, UpstreamRequest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accounts: Option<PinnedAccounts>,
    /// Proofs of packages, referred to by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    indexes: BTreeMap<String, Proof>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    images: Vec<ContainerImage>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bundles: BTreeMap<String, PinnedBundle>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    evidence: BTreeMap<Digest, Document>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    seen: BTreeMap<String, BTreeMap<String, Timestamp>>,
}

/// All keys of an entry.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dependency {
    version: String,
    url: String,
    #[serde(rename = "type")]
    kind: ArtifactType,
    digest: Digest,
    size: u64,
    /// Clouds that use the artifact. Ignored, since an image is for all clouds.
    #[serde(default, rename = "providers", skip_serializing)]
    _providers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Recorded>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upgrades: Option<String>,
}

/// An inconsistent manifest.
#[derive(Debug, thiserror::Error)]
pub(super) enum FormError {
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for FormError {
    vmbake_common::causes!(Message);
}

impl TryFrom<Content> for super::Content {
    type Error = FormError;

    fn try_from(form: Content) -> Result<Self, FormError> {
        let Content {
            version,
            kind,
            os,
            dependencies,
            closure,
            requests,
            accounts,
            indexes,
            images,
            bundles,
            evidence,
            seen,
        } = form;
        let mut unused: Vec<&String> = indexes.keys().collect();
        let mut complete = BTreeMap::new();
        for (name, entry) in dependencies {
            if let Some(Recorded::Index(index)) = &entry.proof {
                unused.retain(|unused| *unused != index);
            }
            let entry = entry.complete(&name, &indexes)?;
            let knows = |layer: &String| closure.as_ref().is_some_and(|closure| closure.layers.contains_key(layer));
            if let Some(PackageReason { layer, .. }) = entry.chosen.as_ref().filter(|chosen| !knows(&chosen.layer)) {
                return Err(FormError::Message(message!(
                    "{name}: chosen for layer {layer}, which is missing in `closure`"
                )));
            }
            complete.insert(name, entry);
        }
        match unused.first() {
            Some(index) => Err(FormError::Message(message!("`indexes`: {} is not used by any entry", (*index)))),
            None => {
                let dependencies = complete;
                Ok(Self {
                    version,
                    kind,
                    os,
                    dependencies,
                    closure,
                    requests,
                    accounts,
                    images,
                    bundles,
                    evidence,
                    seen,
                })
            }
        }
    }
}

impl From<super::Content> for Content {
    fn from(content: super::Content) -> Self {
        let super::Content {
            version,
            kind,
            os,
            dependencies,
            closure,
            requests,
            accounts,
            images,
            bundles,
            evidence,
            seen,
        } = content;
        let mut indexes = BTreeMap::new();
        let short = |(name, entry)| (name, Dependency::short(entry, &mut indexes));
        let dependencies = dependencies.into_iter().map(short).collect();
        Self { version, kind, os, dependencies, closure, requests, accounts, indexes, images, bundles, evidence, seen }
    }
}

impl Dependency {
    /// Converts the entry, resolving its proof.
    fn complete(self, name: &str, indexes: &BTreeMap<String, Proof>) -> Result<super::Dependency, FormError> {
        let Self { version, url, kind, digest, size, proof, layer, reason, upgrades, .. } = self;
        let name = || name.to_owned();
        let proof = match proof {
            Some(Recorded::Index(index)) => match indexes.get(&index) {
                Some(proof) => Some(proof.clone()),
                None => {
                    return Err(FormError::Message(message!(
                        "{}: proof {index:?} is not defined in `indexes`",
                        name()
                    )));
                }
            },
            Some(Recorded::Own(proof)) => Some(*proof),
            None => None,
        };
        let chosen = match (layer, reason) {
            (Some(layer), Some(reason)) => Some(PackageReason { layer, reason, upgrades }),
            (None, None) if upgrades.is_none() => None,
            _ => {
                return Err(FormError::Message(message!(
                    "{}: `layer` and `reason` require each other, `upgrades` requires both",
                    name()
                )));
            }
        };
        let is_package = kind == ArtifactType::Deb && matches!(proof, Some(Proof::Apt { .. }));
        if chosen.is_some() && !is_package {
            return Err(FormError::Message(message!(
                "{}: has a `layer`, but its proof is not from an archive",
                name()
            )));
        }
        Ok(super::Dependency { version, url, kind, digest, size, proof, chosen })
    }

    /// Converts the entry, moving the proof of a chosen package to `indexes`: there may be hundreds of them.
    fn short(entry: super::Dependency, indexes: &mut BTreeMap<String, Proof>) -> Self {
        let super::Dependency { version, url, kind, digest, size, proof, chosen } = entry;
        let proof = proof.map(|proof| match &proof {
            Proof::Apt { archive, .. } if chosen.is_some() => {
                let is_free = |name: &String| indexes.get(name).is_none_or(|known| *known == proof);
                // If an archive proves them by two indexes, both get a name.
                let names =
                    std::iter::once(archive.clone()).chain((2_u32..).map(|number| format!("{archive}-{number}")));
                let name = names.into_iter().find(is_free).unwrap_or_default();
                indexes.insert(name.clone(), proof);
                Recorded::Index(name)
            }
            _ => Recorded::Own(Box::new(proof)),
        });
        let (layer, reason, upgrades) = match chosen {
            Some(PackageReason { layer, reason, upgrades }) => (Some(layer), Some(reason), upgrades),
            None => (None, None, None),
        };
        Self { version, url, kind, digest, size, _providers: Vec::new(), proof, layer, reason, upgrades }
    }
}

/// The base image does not refer to `indexes`.
impl TryFrom<Dependency> for super::Dependency {
    type Error = FormError;

    fn try_from(form: Dependency) -> Result<Self, FormError> {
        form.complete(super::OS_IMAGE, &BTreeMap::new())
    }
}

impl From<super::Dependency> for Dependency {
    fn from(entry: super::Dependency) -> Self {
        let entry = super::Dependency { chosen: None, ..entry };
        Self::short(entry, &mut BTreeMap::new())
    }
}
