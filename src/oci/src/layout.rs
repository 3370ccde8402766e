//! The files of an image layout beside its blobs (OCI image specification 1.1, "OCI Image Layout Specification").

use serde::{Deserialize, Serialize};

use super::Descriptor;

/// Name of the file that says that a folder is a layout.
pub const MARKER_FILE: &str = "oci-layout";
/// What that file holds.
pub const MARKER: &str = "{\"imageLayoutVersion\":\"1.0.0\"}";
/// Name of the file that lists the images.
pub const INDEX: &str = "index.json";
/// Annotation with the reference of an image.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The file that lists the images.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    pub manifests: Vec<Descriptor>,
    schema_version: u32,
}

impl Index {
    /// An index of these images.
    pub fn of(manifests: Vec<Descriptor>) -> Self {
        Self { manifests, schema_version: 2 }
    }
}
