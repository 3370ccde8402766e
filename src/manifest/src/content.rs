//! The contents of a manifest: the image, its base and its artifacts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ClosureRecord, Document, File, PackageReason, PinnedAccounts, Proof, Target};
use crate::package_request::System;
use crate::upstream::{ArtifactType, Upstream, UpstreamRequest};
use vmbake_common::digest::Digest;

/// Prefix of the URL of a base that is a container image.
pub const OCI: &str = "oci://";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "super::form::Content", into = "super::form::Content")]
pub struct Content {
    /// Version of the image, `dev` until it is released.
    pub version: String,
    /// Kind of image: the name of its top layer.
    pub kind: String,
    /// The operating system of the image.
    pub os: Os,
    /// Artifacts by name.
    pub dependencies: BTreeMap<String, Dependency>,
    /// The inputs of the dependency resolution.
    pub closure: Option<ClosureRecord>,
    /// Downloads and container images that layers request, by layer name.
    pub requests: BTreeMap<String, UpstreamRequest>,
    /// The IDs of users and groups created by package scripts, if the scripts were evaluated.
    pub accounts: Option<PinnedAccounts>,
    /// Container images to preload.
    pub images: Vec<ContainerImage>,
    /// Bundles in the image, by name; only in the manifest of a baked image.
    pub bundles: BTreeMap<String, PinnedBundle>,
    /// The evidence of the proofs, by digest.
    pub evidence: BTreeMap<Digest, Document>,
    /// The newest `Date` seen for each archive and suite: an older one is a replay.
    pub seen: BTreeMap<String, BTreeMap<String, Timestamp>>,
}

/// A bundle used for an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedBundle {
    pub version: String,
    /// Digest of its index.
    pub digest: Digest,
    pub publisher: String,
    /// The signer of the index: the digest of a key, or an identity with its issuer.
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
    /// The pinned base image, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Dependency>,
    /// How that image boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// What the image has in place of a base image, if its layers do not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Foundation>,
}

/// What an image has in place of a base image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Foundation {
    /// The packages of the built-in layer [`Foundation::layer`].
    Packages,
}

impl Foundation {
    /// The layer below those of the kind.
    pub fn layer(self) -> &'static str {
        match self {
            Self::Packages => "debian-minimal",
        }
    }
}

/// The first entry of the base image's boot menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Kernel command line.
    pub cmdline: String,
    pub kernel: BootFile,
    pub initrd: BootFile,
}

/// A file of the base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootFile {
    /// Partition number, from 1.
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
    /// Length of that manifest in bytes, as in its descriptor.
    pub size: u64,
    /// `linux/<arch>`.
    pub platform: String,
    /// Digest of the index that lists the platform's manifest.
    pub index: Digest,
    /// The proof of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// A pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "super::form::Dependency", into = "super::form::Dependency")]
pub struct Dependency {
    /// Upstream version.
    pub version: String,
    /// Download URL.
    pub url: String,
    /// Its file type.
    pub kind: ArtifactType,
    pub digest: Digest,
    /// Length of the file in bytes.
    pub size: u64,
    /// The proof of the digest.
    pub proof: Option<Proof>,
    /// Why the package was chosen, if a layer requests packages.
    pub chosen: Option<PackageReason>,
}

impl Content {
    /// The target of the manifest.
    pub fn target(&self) -> Target {
        Target { kind: self.kind.clone(), os: self.os.name.clone(), arch: self.os.arch.clone() }
    }

    /// The system made of packages that the image has in place of a base image.
    pub fn system(&self) -> Option<&System> {
        self.closure.as_ref()?.layers.values().find_map(|request| request.system.as_ref())
    }

    /// The layer below those of the kind, if it is not one of them.
    pub fn bottom(&self) -> Option<&'static str> {
        self.os.base.map(Foundation::layer)
    }

    /// The base that is a root file system without a disk: an archive or a container image.
    pub fn root_base(&self) -> Option<&Dependency> {
        let is_root = |image: &&Dependency| matches!(image.kind, ArtifactType::Tar | ArtifactType::Oci);
        self.os.image.as_ref().filter(is_root)
    }

    /// The base as a container image, if it is one.
    pub fn base_container(&self) -> Option<ContainerImage> {
        let base = self.root_base().filter(|base| base.kind == ArtifactType::Oci)?;
        Some(ContainerImage {
            image: base.url.strip_prefix(OCI).unwrap_or(&base.url).to_owned(),
            digest: base.digest,
            size: base.size,
            platform: format!("linux/{}", self.os.arch),
            index: base.digest,
            proof: base.proof.clone(),
        })
    }

    /// The packages that layers remove.
    pub fn removed_packages(&self) -> impl Iterator<Item = &str> {
        let requests = self.closure.iter().flat_map(|closure| closure.layers.values());
        requests.flat_map(|request| &request.remove_packages).map(String::as_str)
    }

    /// The layer that requests an artifact as a download, and its source.
    pub fn download(&self, name: &str) -> Option<(&str, &Upstream)> {
        self.requests.iter().find_map(|(layer, asked)| Some((layer.as_str(), asked.downloads.get(name)?)))
    }

    /// Whether a layer requests a container image.
    pub fn asks_for_image(&self, reference: &str) -> bool {
        self.requests.values().any(|asked| asked.container_images.contains(reference))
    }

    /// Every entry with a proof: the base image and the artifacts.
    pub fn entries(&self) -> impl Iterator<Item = &Dependency> {
        self.os.image.iter().chain(self.dependencies.values())
    }

    /// Removes evidence that no proof refers to.
    pub fn drop_unused_evidence(&mut self) {
        let used: BTreeSet<Digest> =
            self.entries().filter_map(|entry| entry.proof.as_ref()).flat_map(Proof::evidence).copied().collect();
        self.evidence.retain(|digest, _| used.contains(digest));
    }

    /// The manifest as text: sorted keys, two spaces of indentation, trailing newline.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        // Objects of a value are sorted, unlike the fields of the struct.
        let value = serde_json::to_value(File { vmconfig: self.clone() })?;
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}
