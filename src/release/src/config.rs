//! The config of an image: its properties, and the digests of all its parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_common::digest::Digest;
use vmbake_disk::image::Format;

/// `application/vnd.vmbake.disk.config.v1+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskConfig {
    /// Architecture, as Debian and OCI name it.
    pub architecture: String,
    /// Operating system, as OCI names it: `linux`.
    pub os: String,
    /// `<kind>.<os-name>.<arch>`, the stem of file names.
    pub name: String,
    /// Kind of image.
    pub kind: String,
    /// Operating system, such as `debian-13`.
    pub system: String,
    /// Version of the manifest.
    pub version: String,
    pub format: Format,
    /// Length of the image's file in bytes.
    pub size: u64,
    /// Checksum of the image's file: fs-verity for raw, SHA-256 for qcow2.
    pub checksum: Checksum,
    /// Digest of the manifest that it was baked from.
    pub manifest: Digest,
    /// Digest of the program that baked it.
    pub program: Digest,
    /// Length of each chunk but the last one in bytes, before compression; 0 without chunks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chunk_size: u64,
    /// SHA-256 of each chunk before compression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<Digest>,
    /// The documents of the image except for signatures, each with its SHA-256.
    pub files: BTreeMap<String, Digest>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
