//! The statement about a delta, in a file next to it: the disk that it applies to, and the resulting disk. The
//! statement is signed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vmbake_common::message;
use vmbake_disk::image::Format;

use super::DeltaError;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_proof::sigstore::json;

/// The only version of the schema.
pub const SCHEMA: &str = "vmbake.delta.v1";
/// Maximum size of a statement: one has less than 2 KB.
const MAX_LEN: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeltaStatement {
    /// [`SCHEMA`].
    pub schema: String,
    /// The old image.
    pub base: StatedImage,
    /// The new image.
    pub result: StatedImage,
    /// The file with the difference.
    pub delta: StatedFile,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedImage {
    /// File name.
    pub name: String,
    pub format: Format,
    /// Length of the disk in bytes.
    pub disk_length: u64,
    /// fs-verity digest of the disk as a raw file, for any format.
    pub disk_fsverity: Digest,
    /// Compression of a qcow2 image; absent means `zstd`.
    #[serde(default, skip_serializing_if = "Qcow2Compression::is_usual")]
    pub compression: Qcow2Compression,
    /// SHA-256 of a qcow2 file; for a raw file it would take too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// The delta itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedFile {
    /// File name.
    pub name: String,
    pub length: u64,
    pub sha256: Digest,
}

impl DeltaStatement {
    /// Reads the statement of `delta`; also returns its bytes, which are signed.
    pub fn read(delta: &Path) -> Result<(Self, Vec<u8>), DeltaError> {
        let path = statement_path(delta);
        let text = vmbake_bake::release::read(&path, MAX_LEN);
        let text = text.map_err(|source| DeltaError::Read { path: path.clone(), source })?;
        let wrong = |source| DeltaError::Statement { path: path.clone(), source };
        let value = json::parse(&text).map_err(wrong)?;
        // Another schema may have other fields, so its name is checked first.
        match value.get("schema").and_then(serde_json::Value::as_str) {
            Some(found) if found != SCHEMA => Err(DeltaError::Message(message!(
                "{}: unsupported schema {found:?}, expected {:?}",
                path.display(),
                SCHEMA
            ))),
            _ => Ok((serde_json::from_value(value).map_err(wrong)?, text)),
        }
    }

    pub fn text(&self) -> Result<String, serde_json::Error> {
        escape::json(self)
    }
}

/// The path of the statement about `delta`.
pub fn statement_path(delta: &Path) -> PathBuf {
    let mut name = delta.as_os_str().to_owned();
    name.push(".json");
    name.into()
}
