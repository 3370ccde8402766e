//! Units to start, and programs to execute.

use serde::{Deserialize, Serialize};

use super::{Argument, Assignment, Check, is_false};

/// A systemd unit.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name, such as `zot.service`.
    pub unit: String,
    /// Condition; if it does not hold, the unit is disabled and stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Action of `restart`.
    #[serde(default)]
    pub action: Action,
    /// Whether it is restarted after a delivery.
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_receive: bool,
    /// Path of a file of `files`: if `configure` changes it after a delivery, the unit is restarted before the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_change: Option<String>,
}

/// Action of `restart` on a unit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Enables it.
    Enable,
    /// Enables it, and starts it unless it runs.
    Start,
    /// Enables and restarts it.
    #[default]
    Restart,
}

/// A program and its arguments, for `exec`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Absolute path of an environment file, written by a rule of `files`: templates see only its variables.
    pub environment_file: String,
    /// Absolute path of the program.
    pub program: String,
    /// Its arguments, in this order.
    #[serde(default)]
    pub arguments: Vec<Argument>,
    /// Additional environment variables.
    #[serde(default)]
    pub environment: Vec<Assignment>,
    /// Conditions that must hold; `at` is ignored.
    #[serde(default)]
    pub checks: Vec<Check>,
}
