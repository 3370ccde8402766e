//! Variables of a plan: the files that have them, what each may be, and what must hold of them.

use serde::{Deserialize, Serialize};

use super::is_false;

/// Paths of files with variables. Where a variable is in several, the last of user data, detected and mutable counts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Written once, from outside; without it nothing is done.
    pub user_data: String,
    /// Written once, by `bootstrap`.
    pub detected: String,
    /// Replaced by `update-mutable-env`.
    pub mutable: String,
    /// The variables that may be in `mutable`, with their defaults; written by the builder.
    pub defaults: String,
    /// Exists once `bootstrap` is done.
    pub marker: String,
}

/// A variable of the inputs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Variable {
    /// Its value where no input has one; empty unless said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
    /// Whether it may change on a running machine, by `update-mutable-env`.
    #[serde(skip_serializing_if = "is_false")]
    pub mutable: bool,
    /// Whether it must not be empty.
    #[serde(skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether an empty value counts where an input has one; otherwise the default takes its place.
    #[serde(skip_serializing_if = "is_false")]
    pub empty: bool,
    /// Whether the file of mutable variables has it only where a delivery gave it a value: until then, user data count.
    #[serde(skip_serializing_if = "is_false")]
    pub unlisted: bool,
    /// What it must look like, unless it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The values that it may have, unless it is empty; all if there are none here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Older names, which count where this one is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl Variable {
    /// Whether `name` is one of its names: the `present` one, or an older one.
    pub(crate) fn has_name(&self, present: &str, name: &str) -> bool {
        present == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// What a value looks like.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `true` or `false`.
    Boolean,
    /// A decimal number from 0 to 2^31 - 1.
    Number,
    /// A decimal number from 1 to 65535.
    Port,
    /// Letters, digits, dots and dashes.
    Hostname,
    /// A host name, or an IP address without brackets.
    Host,
    /// IP addresses, separated by commas.
    Addresses,
    /// `http://` or `https://`, a host, perhaps a port and a path.
    Url,
    /// Base64 (RFC 4648, section 4), perhaps in lines.
    Base64,
}

/// What must hold, and what to say where it does not.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Condition under which it must hold; always if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Condition that must hold.
    pub that: String,
    /// Template of the message where it does not.
    pub otherwise: String,
    /// When it is looked at.
    #[serde(default)]
    pub at: Stage,
}

/// When a check is made.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before `bootstrap` writes what it detected; sees `detect` too.
    Bootstrap,
    /// Before a file is written; sees `values` too.
    #[default]
    Before,
    /// When all files are written.
    After,
}
