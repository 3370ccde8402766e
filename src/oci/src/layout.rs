//! The files of an image layout other than blobs (OCI image specification 1.1, "OCI Image Layout Specification").

use serde::{Deserialize, Serialize};

use super::Descriptor;

/// Name of the file that marks a directory as a layout.
pub const MARKER_FILE: &str = "oci-layout";
/// Content of that file.
pub const MARKER: &str = "{\"imageLayoutVersion\":\"1.0.0\"}";
/// Name of the file that lists the images.
pub const INDEX: &str = "index.json";
/// Annotation with the reference of an image.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// The list of images.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    pub manifests: Vec<Descriptor>,
    schema_version: u32,
}

impl Index {
    pub fn of(manifests: Vec<Descriptor>) -> Self {
        Self { manifests, schema_version: 2 }
    }
}
