//! Files that are written, whole or in part.

use serde::{Deserialize, Serialize};

use super::ownership::{Ownership, as_octal, is_root, octal, root};
use super::{Assignment, Named, is_false};

/// A file that is written whole, or removed.
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
    /// Mode and owner of its directory, which is made where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Ownership>,
    /// Condition; where it does not hold, the file is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Where the condition does not hold, the file is left as it is instead.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep: bool,
    /// Whether the builder writes it too, with the defaults of all variables.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bake: bool,
    /// What is in it.
    pub content: Content,
}

/// What is in a file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// One line for each variable, `NAME='value'`, in this order.
    Environment(Vec<Assignment>),
    /// A template, right here. Its values are written as they are.
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
    /// How its values are written.
    pub format: Notation,
    /// More variables for the template, by name, with the templates of their values.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub with: Named<String>,
}

/// How the values of a template are written.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Notation {
    /// As they are.
    Text,
    /// As values of JSON, which are values of YAML and TOML as well.
    Json,
}

/// Lines between two marks in a file that others write too, such as `/etc/hosts`. What is outside the marks stays.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Absolute path of the file, which keeps its mode and owner.
    pub path: String,
    /// Name in the marks.
    pub name: String,
    /// Condition; where it does not hold, the block is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Template of the lines.
    pub text: String,
}
