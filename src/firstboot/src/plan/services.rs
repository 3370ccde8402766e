//! Units that are started, and programs that they become.

use serde::{Deserialize, Serialize};

use super::{Argument, Assignment, Check, is_false};

/// A unit of systemd.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name, such as `zot.service`.
    pub unit: String,
    /// Condition; where it does not hold, the unit is disabled and stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What `restart` does with it.
    #[serde(default)]
    pub action: Action,
    /// Whether it is restarted when files arrived.
    #[serde(default, skip_serializing_if = "is_false")]
    pub on_receive: bool,
    /// Path of a file of `files`: where files arrived and `configure` changed this one, the unit is restarted before the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_change: Option<String>,
}

/// What `restart` does with a unit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Enables it.
    Enable,
    /// Enables it, and starts it unless it runs.
    Start,
    /// Enables it, and starts it anew.
    #[default]
    Restart,
}

/// A program and its arguments, for `exec`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// Absolute path of a file with variables, written by a rule of `files`: templates see its variables and no others.
    pub environment_file: String,
    /// Absolute path of the program.
    pub program: String,
    /// Its arguments, in this order.
    #[serde(default)]
    pub arguments: Vec<Argument>,
    /// Variables that it gets beside its own environment.
    #[serde(default)]
    pub environment: Vec<Assignment>,
    /// What must hold before; `at` does not matter.
    #[serde(default)]
    pub checks: Vec<Check>,
}
