//! The documents of an archive: an OCI image layout whose index lists a manifest for the inputs of each image, and one
//! for each set of image files (OCI image specification 1.1, "Guidelines for Artifact Usage").

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_proof::sigstore::json;

/// Maximum size of a document.
pub const MAX_DOCUMENT: u64 = 16 << 20;

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Annotation with a file name.
const TITLE: &str = "org.opencontainers.image.title";
/// Annotation of a blob that is left out, as an earlier archive contains it.
const HELD: &str = "vmbake.held";
/// Annotation of the index: digest of the index of the earlier archive.
pub const SINCE: &str = "vmbake.since";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BlobRole {
    /// The inputs of one image, as layers of the manifest.
    #[serde(rename = "application/vnd.vmbake.inputs.v1")]
    Inputs,
    /// An image and its documents.
    #[serde(rename = "application/vnd.vmbake.images.v1")]
    Images,
    /// The parameters of a bake.
    #[serde(rename = "application/vnd.vmbake.inputs.config.v1+json")]
    InputsConfig,
    #[serde(rename = "application/vnd.vmbake.manifest.v1+json")]
    Manifest,
    /// A file of sources.
    #[serde(rename = "application/vnd.vmbake.sources.v1+json")]
    Sources,
    /// A directory of trust anchors.
    #[serde(rename = "application/vnd.vmbake.trust.v1.tar")]
    Trust,
    /// A directory of layers.
    #[serde(rename = "application/vnd.vmbake.layers.v1.tar")]
    Layers,
    /// A blob of the store: an artifact, the base image, evidence, or a part of a container image.
    #[serde(rename = "application/vnd.vmbake.blob.v1")]
    Blob,
    #[serde(rename = "application/vnd.vmbake.image.v1.qcow2")]
    Image,
    /// A document next to an image.
    #[serde(rename = "application/vnd.vmbake.sidecar.v1")]
    Sidecar,
    /// An empty object.
    #[serde(rename = "application/vnd.oci.empty.v1+json")]
    Nothing,
    /// A manifest in the index.
    #[serde(rename = "application/vnd.oci.image.manifest.v1+json")]
    OciManifest,
}

/// A blob listed in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlobReference {
    /// Its file name, and whether it is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    /// The role of a manifest in the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<BlobRole>,
    pub digest: Digest,
    #[serde(rename = "mediaType")]
    pub role: BlobRole,
    /// Its length in bytes.
    pub size: u64,
}

impl BlobReference {
    /// A blob called `title`.
    pub fn new(role: BlobRole, title: &str, digest: Digest, size: u64) -> Self {
        let titled = || (TITLE.to_owned(), title.to_owned());
        let annotations = (!title.is_empty()).then(titled).into_iter().collect();
        Self { annotations, artifact_type: None, digest, role, size }
    }

    /// Its file name.
    pub fn title(&self) -> &str {
        self.annotations.get(TITLE).map(String::as_str).unwrap_or_default()
    }

    /// Marks it as left out.
    pub fn leave_out(&mut self) {
        self.annotations.insert(HELD.to_owned(), "true".to_owned());
    }

    /// Whether it is left out.
    pub fn is_held(&self) -> bool {
        self.annotations.contains_key(HELD)
    }
}

/// `index.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveIndex {
    /// [`SINCE`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    pub manifests: Vec<BlobReference>,
    media_type: String,
    schema_version: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveManifest {
    /// Its role.
    pub artifact_type: BlobRole,
    /// The parameters.
    pub config: BlobReference,
    /// All blobs that belong to it.
    pub layers: Vec<BlobReference>,
    media_type: String,
    schema_version: u32,
}

/// The parameters of a bake in addition to the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputsConfig {
    /// Digest of a base image that is a local file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Digest>,
    /// Number of its root partition, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// Length of the disk in bytes, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Time of files created by the bake, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_date_epoch: Option<u32>,
    /// Compression of a qcow2 image, if it was given.
    #[serde(default, skip_serializing_if = "Qcow2Compression::is_usual")]
    pub compression: Qcow2Compression,
    /// Names of overridden layers, sources and trust anchors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

impl ArchiveIndex {
    /// An index of these manifests.
    pub fn of(manifests: Vec<BlobReference>, annotations: BTreeMap<String, String>) -> Self {
        Self { annotations, manifests, media_type: OCI_INDEX.to_owned(), schema_version: 2 }
    }

    /// Whether it is marked as an index.
    pub fn is_sound(&self) -> bool {
        let is_manifest = |blob: &BlobReference| blob.role == BlobRole::OciManifest && !blob.is_held();
        (self.schema_version, self.media_type.as_str()) == (2, OCI_INDEX) && self.manifests.iter().all(is_manifest)
    }
}

impl ArchiveManifest {
    /// A manifest of these blobs.
    pub fn of(artifact_type: BlobRole, config: BlobReference, layers: Vec<BlobReference>) -> Self {
        Self { artifact_type, config, layers, media_type: OCI_MANIFEST.to_owned(), schema_version: 2 }
    }

    /// Whether it is marked as a manifest, with unique file names.
    pub fn is_sound(&self) -> bool {
        let names: Vec<&str> = self.layers.iter().map(BlobReference::title).filter(|title| !title.is_empty()).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        let is_known = matches!(self.artifact_type, BlobRole::Inputs | BlobRole::Images);
        (self.schema_version, self.media_type.as_str()) == (2, OCI_MANIFEST) && is_known && once.len() == names.len()
    }
}

/// Parses a document without duplicate keys.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_value(json::parse(bytes)?)
}
