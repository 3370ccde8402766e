//! Variables of a plan: their files, formats and conditions.

use serde::{Deserialize, Serialize};

use super::is_false;

/// Paths of environment files. If a variable is in several, the last of user data, detected and mutable counts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// User data, written once by another program; without it nothing is done.
    pub user_data: String,
    /// Written once, by `bootstrap`.
    pub detected: String,
    /// Replaced by `update-mutable-env`.
    pub mutable: String,
    /// The variables that can be in `mutable`, with their defaults; written by the builder.
    pub defaults: String,
    /// Marker file of `bootstrap`.
    pub marker: String,
}

/// A variable of the inputs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Variable {
    /// Default value; empty unless set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
    /// Whether it can change on a running machine, by `update-mutable-env`.
    #[serde(skip_serializing_if = "is_false")]
    pub mutable: bool,
    /// Whether it must not be empty.
    #[serde(skip_serializing_if = "is_false")]
    pub required: bool,
    /// Whether an empty value of an input counts; otherwise it is replaced by the default.
    #[serde(skip_serializing_if = "is_false")]
    pub empty: bool,
    /// Whether the file of mutable variables has it only after a delivery set it: until then, user data apply.
    #[serde(skip_serializing_if = "is_false")]
    pub unlisted: bool,
    /// Required format, unless it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Largest number, for the format `number`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Allowed values, unless it is empty; any if the list is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Aliases, which apply if this name is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl Variable {
    /// Whether `name` is one of its names: the `present` one, or an alias.
    pub(crate) fn has_name(&self, present: &str, name: &str) -> bool {
        present == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Format of a value.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `true` or `false`.
    Boolean,
    /// A decimal number from 0 to 2^31 - 1, without leading zeros.
    Number,
    /// A decimal number from 1 to 65535, without leading zeros.
    Port,
    /// Letters, digits and dashes in labels of at most 63 bytes, separated by dots.
    Hostname,
    /// A name for the resolver, which can also have underscores and a dot at the end, or an IP address without brackets.
    Host,
    /// A host and a port from 1 to 65535: `host:port`, or `[address]:port` for an IPv6 address.
    HostPort,
    /// IP addresses, separated by commas.
    Addresses,
    /// `http://` or `https://`, a host, optionally a port and a path.
    Url,
    /// Base64 (RFC 4648, section 4), optionally with line breaks.
    Base64,
}

/// A condition with a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Precondition of the check; always if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Condition that must hold.
    pub that: String,
    /// Template of the error message.
    pub otherwise: String,
    /// Time of the check.
    #[serde(default)]
    pub at: Stage,
}

/// Time of a check.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Before `bootstrap` writes detected values; can use `detect`.
    Bootstrap,
    /// Before files are written; can use `values`.
    #[default]
    Before,
    /// After all files are written.
    After,
}
