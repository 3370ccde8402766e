//! Required layers: `name`, or `name@version` for exactly that version.

use schemars::JsonSchema;
use serde::Deserialize;

/// A layer that is applied before another one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String")]
pub struct Requirement {
    pub name: String,
    /// The required version; absent means any.
    pub version: Option<String>,
}

impl From<String> for Requirement {
    fn from(text: String) -> Self {
        match text.split_once('@') {
            Some((name, version)) => Self { name: name.to_owned(), version: Some(version.to_owned()) },
            None => Self { name: text, version: None },
        }
    }
}

impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        self.version.iter().try_for_each(|version| write!(f, "@{version}"))
    }
}
