//! What a manifest says of an image, its base and its artifacts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ClosureRecord, Document, File, PackageReason, PinnedAccounts, Proof, Target};
use crate::upstream::{ArtifactType, Upstream, UpstreamRequest};
use vmbake_common::digest::Digest;

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "super::form::Content", into = "super::form::Content")]
pub struct Content {
    /// Version of the image, `dev` until it is released.
    pub version: String,
    /// Kind of image: the name of its top layer.
    pub kind: String,
    /// The operating system that the image is based on.
    pub os: Os,
    /// Artifacts by name.
    pub dependencies: BTreeMap<String, Dependency>,
    /// What the packages among them were chosen for.
    pub closure: Option<ClosureRecord>,
    /// What layers themselves ask of upstreams, by the names of the layers.
    pub requests: BTreeMap<String, UpstreamRequest>,
    /// The ids of the accounts that their scripts make, where the scripts were looked at.
    pub accounts: Option<PinnedAccounts>,
    /// Container images for the runtime.
    pub images: Vec<ContainerImage>,
    /// Bundles whose layers the image has, by name; only of an image that was baked.
    pub bundles: BTreeMap<String, PinnedBundle>,
    /// The documents that the proofs rest on, by their digests.
    pub evidence: BTreeMap<Digest, Document>,
    /// The newest `Date` that was seen of each archive and suite: an older one is a replay.
    pub seen: BTreeMap<String, BTreeMap<String, Timestamp>>,
}

/// A bundle that an image was baked with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedBundle {
    pub version: String,
    /// Digest of its index.
    pub digest: Digest,
    /// Who publishes it.
    pub publisher: String,
    /// Who has signed the index: the digest of a key, or an identity with its issuer.
    pub signer: String,
    /// Its layers, by name.
    pub layers: BTreeSet<String>,
}

/// The operating system of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Os {
    /// Name with release, such as `debian-13`.
    pub name: String,
    /// Architecture as Debian names it.
    pub arch: String,
    /// The base image, where the manifest pins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Dependency>,
    /// How that image boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
}

/// What the first entry of the base image's boot menu starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Command line of the kernel.
    pub cmdline: String,
    pub kernel: BootFile,
    /// The initial RAM disk.
    pub initrd: BootFile,
}

/// A file of the base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootFile {
    /// Number of its partition, from 1.
    pub partition: u32,
    /// Absolute path in that partition's file system.
    pub path: String,
    /// SHA-256 of its content.
    pub digest: Digest,
}

/// A pinned container image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerImage {
    /// Reference with its tag, such as `registry.k8s.io/pause:3.10`.
    pub image: String,
    /// Digest of the platform's manifest.
    pub digest: Digest,
    /// Length of that manifest in bytes, as in a descriptor of the OCI image specification.
    pub size: u64,
    /// `linux/<arch>`.
    pub platform: String,
    /// Digest of the index that lists the platform's manifest.
    pub index: Digest,
    /// How the index was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// One pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "super::form::Dependency", into = "super::form::Dependency")]
pub struct Dependency {
    /// Upstream version.
    pub version: String,
    /// Where it can be fetched.
    pub url: String,
    /// How it is packed.
    pub kind: ArtifactType,
    /// Digest of the file.
    pub digest: Digest,
    /// Length of the file in bytes.
    pub size: u64,
    /// How the digest was proven.
    pub proof: Option<Proof>,
    /// Why it is there, where a layer asked for packages.
    pub chosen: Option<PackageReason>,
}

impl Content {
    /// What it is for.
    pub fn target(&self) -> Target {
        Target { kind: self.kind.clone(), os: self.os.name.clone(), arch: self.os.arch.clone() }
    }

    /// The layer that asks for an artifact as a download, and where it says that is.
    pub fn download(&self, name: &str) -> Option<(&str, &Upstream)> {
        self.requests.iter().find_map(|(layer, asked)| Some((layer.as_str(), asked.downloads.get(name)?)))
    }

    /// Whether a layer asks for a container image.
    pub fn asks_for_image(&self, reference: &str) -> bool {
        self.requests.values().any(|asked| asked.container_images.contains(reference))
    }

    /// Every entry that has a proof of its own: the base image and the artifacts.
    pub fn entries(&self) -> impl Iterator<Item = &Dependency> {
        self.os.image.iter().chain(self.dependencies.values())
    }

    /// Drops documents that no proof rests on any more.
    pub fn drop_unused_evidence(&mut self) {
        let used: BTreeSet<Digest> =
            self.entries().filter_map(|entry| entry.proof.as_ref()).flat_map(Proof::evidence).copied().collect();
        self.evidence.retain(|digest, _| used.contains(digest));
    }

    /// The manifest as text: keys sorted, two spaces a level, one newline at the end.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        // A value's objects are sorted, which those of the struct are not.
        let value = serde_json::to_value(File { vmconfig: self.clone() })?;
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}
