//! Files that arrive on a machine, and where they go.

use serde::{Deserialize, Serialize};

/// Where files for this machine arrive.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Receive {
    /// Directory in which they arrive.
    pub directory: String,
    /// Name of the file in it that is written last.
    pub trigger: String,
    /// Name of the file in it that has mutable variables.
    pub mutable: String,
    /// Directory of private keys that were made on the machine.
    pub keys: String,
    /// File whose time is the start of the last run.
    pub stamp: String,
}

/// Where a received file goes, under its own name and with mode 0640.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Absolute path of the directory.
    pub directory: String,
    /// Group, by name; the user is root.
    pub group: String,
}

/// Where a private key goes, under its own name and with mode 0640.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeyPlace {
    /// Absolute path of the directory.
    pub directory: String,
    /// Group, by name; the user is root.
    pub group: String,
    /// Path of its certificate, which must be there.
    pub certificate: String,
}
