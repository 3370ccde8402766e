//! The documents of a release: index and manifests (OCI image specification 1.1). Fields are written in a fixed order,
//! maps sorted, without white space.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;
use vmbake_disk::image::Format;
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
/// Media type of an empty config.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Annotation with the format of an image, as in other tools that store disks in registries.
pub const DISK_TYPE: &str = "disktype";
/// Annotation with the name of a file.
pub const TITLE: &str = "org.opencontainers.image.title";
/// Annotation with a version.
pub const VERSION: &str = "org.opencontainers.image.version";
/// Annotation with a time, RFC 3339.
pub const CREATED: &str = "org.opencontainers.image.created";

/// Media type of the layers of an image: the chunks of a raw one, or the whole file.
pub fn media_type(format: Format) -> String {
    match format {
        Format::Raw => CHUNK.to_owned(),
        other => format!("{DISK}.{other}"),
    }
}

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

/// A manifest of an image or an attachment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactManifest {
    /// 2.
    pub schema_version: u32,
    /// [`MANIFEST`].
    pub media_type: String,
    /// [`DISK`], or the type of the attached document.
    pub artifact_type: String,
    pub config: Descriptor,
    /// The chunks in order, or the file.
    pub layers: Vec<Descriptor>,
    /// The manifest that it is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl ArtifactManifest {
    /// A manifest without annotations and subject.
    pub fn new(artifact_type: &str, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        let (media_type, artifact_type) = (MANIFEST.to_owned(), artifact_type.to_owned());
        let annotations = BTreeMap::new();
        Self { schema_version: 2, media_type, artifact_type, config, layers, subject: None, annotations }
    }
}

/// A serialized document.
#[derive(Clone, Debug)]
pub struct Written {
    pub descriptor: Descriptor,
    pub bytes: Vec<u8>,
}

impl Written {
    /// Serializes a document.
    pub fn new(media_type: &str, document: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self::of(media_type, serde_json::to_vec(document)?))
    }

    /// Wraps serialized bytes.
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

/// The config of all attachments.
pub fn empty_config() -> Written {
    Written::of(EMPTY, b"{}".to_vec())
}
