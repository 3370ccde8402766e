//! The documents of a release as they are written and read: index and manifests (OCI image specification 1.1). Fields are written in one
//! order, maps sorted, without blanks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;
use vmbake_oci::Descriptor;

/// Media type of an index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Artifact type of the index of a release.
pub const RELEASE: &str = "application/vnd.vmbake.release.v1";
/// Artifact type of the manifest of an image.
pub const DISK: &str = "application/vnd.vmbake.disk.v1";
/// Media type of the config of an image.
pub const DISK_CONFIG: &str = "application/vnd.vmbake.disk.config.v1+json";
/// Media type of a chunk.
pub const CHUNK: &str = "application/vnd.vmbake.disk.chunk.v1.raw+zstd";
/// Media type of a whole qcow2 image.
pub const QCOW2: &str = "application/vnd.vmbake.disk.v1.qcow2";
/// Media type of a config that says nothing.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Annotation with the format of an image, as others who keep disks in registries have it.
pub const DISK_TYPE: &str = "disktype";
/// Annotation with the name of a file.
pub const TITLE: &str = "org.opencontainers.image.title";
/// Annotation with a version.
pub const VERSION: &str = "org.opencontainers.image.version";
/// Annotation with a time, RFC 3339.
pub const CREATED: &str = "org.opencontainers.image.created";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseIndex {
    /// 2.
    pub schema_version: u32,
    /// [`INDEX`].
    pub media_type: String,
    /// [`RELEASE`].
    pub artifact_type: String,
    /// The images.
    pub manifests: Vec<Descriptor>,
    /// Version and time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A manifest: of an image, or of what is attached to the index.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactManifest {
    /// 2.
    pub schema_version: u32,
    /// [`MANIFEST`].
    pub media_type: String,
    /// [`DISK`], or what kind of document is attached.
    pub artifact_type: String,
    pub config: Descriptor,
    /// The chunks in their order, or the file.
    pub layers: Vec<Descriptor>,
    /// What it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// What else is said of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl ArtifactManifest {
    /// A manifest without annotations that is attached to nothing.
    pub fn new(artifact_type: &str, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        let (media_type, artifact_type) = (MANIFEST.to_owned(), artifact_type.to_owned());
        let annotations = BTreeMap::new();
        Self { schema_version: 2, media_type, artifact_type, config, layers, subject: None, annotations }
    }
}

/// A document with its bytes.
#[derive(Clone, Debug)]
pub struct Written {
    /// What leads to it.
    pub descriptor: Descriptor,
    pub bytes: Vec<u8>,
}

impl Written {
    /// Writes a document.
    pub fn new(media_type: &str, document: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self::of(media_type, serde_json::to_vec(document)?))
    }

    /// What is written already.
    pub fn of(media_type: &str, bytes: Vec<u8>) -> Self {
        let descriptor = Descriptor::new(media_type, Digest::of(&bytes), bytes.len() as u64);
        Self { descriptor, bytes }
    }
}

/// A descriptor with the name of a file.
pub fn titled(mut descriptor: Descriptor, title: &str) -> Descriptor {
    descriptor.annotations.insert(TITLE.to_owned(), title.to_owned());
    descriptor
}

/// The config of everything that is attached.
pub fn empty_config() -> Written {
    Written::of(EMPTY, b"{}".to_vec())
}
