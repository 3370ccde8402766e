//! Files that are delivered to a machine, and their destinations.

use serde::{Deserialize, Serialize};

/// Delivery of files to this machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Receive {
    /// Delivery directory.
    pub directory: String,
    /// Name of the file in it that is written last.
    pub trigger: String,
    /// Name of the file in it that has mutable variables.
    pub mutable: String,
    /// Directory of private keys that were generated on the machine.
    pub keys: String,
    /// File whose modification time is the start of the last run.
    pub stamp: String,
}

/// Destination of a delivered file, which keeps its name and gets mode 0640.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileDestination {
    /// Absolute path of the directory.
    pub directory: String,
    /// Group, by name; the user is root.
    pub group: String,
}

/// Destination of a private key, which keeps its name and gets mode 0640.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyDestination {
    /// Absolute path of the directory.
    pub directory: String,
    /// Group, by name; the user is root.
    pub group: String,
    /// Path of its certificate, which must exist.
    pub certificate: String,
}
