//! Templates with `{names}`, such as `https://a.example/v{version}/tool-{arch}`.

use std::collections::BTreeMap;
use std::fmt;

use vmbake_common::hint::Hint;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A string with placeholders in braces, such as `{version}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

/// Placeholders available in every template. `{url}` and `{file}` are the artifact's URL and file name;
/// `{version:NAME}` is the version of another artifact of the same manifest.
const NAMES: [&str; 7] = ["version", "arch", "os", "codename", "url", "file", "kind"];
/// Prefix of the placeholder for another artifact's version.
const VERSION_OF: &str = "version:";

/// An invalid template.
#[derive(Debug, thiserror::Error)]
#[error("{text:?}: unknown placeholder {{{name}}}, expected one of {}, version:NAME", NAMES.join(", "))]
pub struct InvalidTemplate {
    text: String,
    name: String,
}

impl Hint for InvalidTemplate {}

/// A placeholder without a value.
#[derive(Debug, thiserror::Error)]
#[error("{{{name}}} is not defined here")]
pub struct Undefined {
    pub name: String,
}

impl Hint for Undefined {}

impl Template {
    /// The text with all placeholders replaced.
    pub fn render(&self, values: &BTreeMap<String, String>) -> Result<String, Undefined> {
        self.parts.iter().try_fold(String::new(), |text, part| match part {
            Part::Text(part) => Ok(text + part),
            Part::Name(name) => match values.get(name) {
                Some(value) => Ok(text + value),
                None => Err(Undefined { name: name.clone() }),
            },
        })
    }

    /// Artifacts whose versions it refers to.
    pub fn versions_of(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => name.strip_prefix(VERSION_OF),
            Part::Text(_) => None,
        })
    }

    /// The text before the first placeholder.
    pub fn start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Name(name) => write!(f, "{{{name}}}"),
        })
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.to_string()
    }
}

impl TryFrom<String> for Template {
    type Error = InvalidTemplate;

    fn try_from(text: String) -> Result<Self, InvalidTemplate> {
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else {
                return Err(InvalidTemplate { name: after.to_owned(), text });
            };
            if !NAMES.contains(&name) && !name.starts_with(VERSION_OF) {
                return Err(InvalidTemplate { name: name.to_owned(), text });
            }
            parts.extend((!before.is_empty()).then(|| Part::Text(before.to_owned())));
            parts.push(Part::Name(name.to_owned()));
            rest = behind;
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.to_owned())));
        Ok(Self { parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_unknown_ones_refused() {
        let template = Template::try_from("https://a/v{version}/{arch}/{version:containerd}".to_owned()).unwrap();
        assert_eq!(template.start(), "https://a/v");
        assert_eq!(template.to_string(), "https://a/v{version}/{arch}/{version:containerd}");
        assert_eq!(template.versions_of().collect::<Vec<_>>(), ["containerd"]);
        let mut values = BTreeMap::from([("version", "1"), ("arch", "x")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(template.render(&values).unwrap_err().name, "version:containerd");
        values.insert("version:containerd".to_owned(), "2".to_owned());
        assert_eq!(template.render(&values).unwrap(), "https://a/v1/x/2");
        for wrong in ["{vers}", "{", "a{version", "{}"] {
            assert!(Template::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
