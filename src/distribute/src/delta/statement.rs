//! What is said of a delta, in a file beside it: which disk it belongs on, and which disk comes of it. That is what is signed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vmbake_common::message;
use vmbake_disk::image::Format;

use super::DeltaError;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_proof::sigstore::json;

/// The only form of statements.
pub const SCHEMA: &str = "vmbake.delta.v1";
/// Longest statement that is read: one has less than 2 KB.
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
    /// Name of its file, without a folder.
    pub name: String,
    /// How the disk is stored in it.
    pub format: Format,
    /// Length of the disk in bytes.
    pub disk_length: u64,
    /// fs-verity digest of the disk as a raw file, whatever the format.
    pub disk_fsverity: Digest,
    /// How a qcow2 one is compressed; without it, with `zstd`.
    #[serde(default, skip_serializing_if = "Qcow2Compression::is_usual")]
    pub compression: Qcow2Compression,
    /// SHA-256 of the file, of a qcow2 one. That of a raw file would take longer than all else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// The delta itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedFile {
    /// Name of the file, without a folder.
    pub name: String,
    /// Length in bytes.
    pub length: u64,
    /// SHA-256 of the file.
    pub sha256: Digest,
}

impl DeltaStatement {
    /// Reads the statement beside `delta`; returns its bytes too, which a signature is over.
    pub fn read(delta: &Path) -> Result<(Self, Vec<u8>), DeltaError> {
        let path = statement_path(delta);
        let text = vmbake_bake::release::read(&path, MAX_LEN);
        let text = text.map_err(|source| DeltaError::Read { path: path.clone(), source })?;
        let wrong = |source| DeltaError::Statement { path: path.clone(), source };
        let value = json::parse(&text).map_err(wrong)?;
        // Another schema may have other fields, so it is told by its name.
        match value.get("schema").and_then(serde_json::Value::as_str) {
            Some(found) if found != SCHEMA => {
                Err(DeltaError::Message(message!("{}: has schema {found:?}, expected {:?}", path.display(), SCHEMA)))
            }
            _ => Ok((serde_json::from_value(value).map_err(wrong)?, text)),
        }
    }

    pub fn text(&self) -> Result<String, serde_json::Error> {
        escape::json(self)
    }
}

/// Where the statement about `delta` is.
pub fn statement_path(delta: &Path) -> PathBuf {
    let mut name = delta.as_os_str().to_owned();
    name.push(".json");
    name.into()
}
