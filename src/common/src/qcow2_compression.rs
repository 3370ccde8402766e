//! The compression of qcow2 clusters, as arguments and documents name it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmbake_disk::image::ClusterCompression;

/// A compression of qcow2. Documents omit the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Qcow2Compression {
    /// Deflate, supported by every reader of qcow2.
    Zlib,
    #[default]
    Zstd,
}

impl Qcow2Compression {
    /// Whether it is the default, which documents omit.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Qcow2Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        })
    }
}

impl From<Qcow2Compression> for ClusterCompression {
    fn from(compression: Qcow2Compression) -> Self {
        match compression {
            Qcow2Compression::Zlib => Self::Zlib,
            Qcow2Compression::Zstd => Self::Zstd,
        }
    }
}

impl From<ClusterCompression> for Qcow2Compression {
    fn from(compression: ClusterCompression) -> Self {
        match compression {
            ClusterCompression::Zlib => Self::Zlib,
            ClusterCompression::Zstd => Self::Zstd,
        }
    }
}
