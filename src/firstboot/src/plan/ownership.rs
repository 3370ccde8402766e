//! Owners and modes of paths, and users of a machine.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Mode and owner of a path.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ownership {
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
}

/// A user to create on the machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BootUser {
    /// Condition for its creation.
    pub when: String,
    /// Login shell.
    pub shell: String,
}

/// A user of the image, with a group of the same name and id.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// User ID and group ID.
    pub id: u32,
    /// Home directory.
    pub home: String,
    /// Login shell.
    pub shell: String,
    /// Secondary groups (exhaustive).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Secondary groups, if they exist on the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional_groups: Vec<String>,
}

pub(super) fn root() -> String {
    "root".to_owned()
}

pub(super) fn is_root(name: &str) -> bool {
    name == "root"
}

/// Permissions written as an octal text, as in `chmod 0755`: JSON has no octal numbers.
pub fn octal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let text = String::deserialize(deserializer)?;
    match u16::from_str_radix(&text, 8) {
        // A number may begin with a plus.
        Ok(mode) if mode <= 0o7777 && text.len() == 4 && !text.starts_with('+') => Ok(mode),
        _ => Err(de::Error::custom(format!("mode {text:?} is not four octal digits, such as \"0755\""))),
    }
}

pub(super) fn as_octal<S: Serializer>(mode: &u16, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{mode:04o}"))
}
