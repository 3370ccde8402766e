//! Files to write, as a whole or in part.

use serde::{Deserialize, Serialize};

use super::ownership::{Ownership, as_octal, is_root, octal, root};
use super::{Assignment, Named, is_false};

/// A file to write or remove.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    /// Template of its absolute path. A file that an earlier run wrote at another path is removed.
    pub path: String,
    /// Permissions, octal.
    #[serde(deserialize_with = "octal", serialize_with = "as_octal")]
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = "^[0-7]{4}$")))]
    pub mode: u16,
    /// User, by name.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub owner: String,
    /// Group, by name.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub group: String,
    /// Mode and owner of its directory, which is created if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Ownership>,
    /// Condition; if it does not hold, the file is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Keeps the file if the condition does not hold.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep: bool,
    /// Whether the builder also writes it, with the defaults of all variables.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bake: bool,
    /// Contents.
    pub content: Content,
}

/// Contents of a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// One line for each variable, `NAME='value'`, in this order.
    Environment(Vec<Assignment>),
    /// An inline template. Its values are inserted verbatim.
    Text(String),
    /// A template in a file of the image.
    Template(Template),
}

/// A template in a file of the image.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// Absolute path of the template.
    pub file: String,
    /// Format of inserted values.
    pub format: Notation,
    /// Additional variables for the template, by name, with the templates of their values.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub with: Named<String>,
}

/// Format of inserted values.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Notation {
    /// Verbatim.
    Text,
    /// As JSON values, which are also valid YAML and TOML.
    Json,
}

/// A marked block of lines in a file that other programs also write, such as `/etc/hosts`. Other lines are kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Absolute path of the file, which keeps its mode and owner.
    pub path: String,
    /// Name in the marks.
    pub name: String,
    /// Condition; if it does not hold, the block is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Template of the lines.
    pub text: String,
}
