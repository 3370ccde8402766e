//! What a layer asks of the archives of its operating system: packages by name, and what may come with them.
//!
//! It stands in `layer.json`, key by key, and whole in the manifest that was made for it.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The packages of one layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PackageRequest {
    /// The packages themselves; what they depend on comes with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackagePattern>,
    /// Packages whose `Recommends` come as well.
    #[serde(skip_serializing_if = "Choice::is_none")]
    pub recommends: Choice,
    /// An archive that is asked beside those of the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Packages of the base that keep their version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hold: Vec<String>,
    /// Packages that do not come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Packages of the base that get a newer version.
    #[serde(skip_serializing_if = "Choice::is_none")]
    pub upgrade: Choice,
}

/// A package, `name`, or one of certain versions, `name=PATTERN`, in which `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PackagePattern {
    /// Its name.
    pub name: String,
    /// What its version must look like; absent means any.
    pub version: Option<String>,
}

/// Which of several: none, all, or those of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Choice {
    /// All of them, or none.
    All(bool),
    /// Those of that name.
    Some(Vec<String>),
}

impl PackageRequest {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PackagePattern {
    /// Whether a version is one of those that are wanted.
    pub fn accepts(&self, version: &str) -> bool {
        self.version.as_ref().is_none_or(|pattern| is_like(pattern.as_bytes(), version.as_bytes()))
    }
}

/// Whether a text has the form of a pattern: each `*` stands for any bytes, everything else for itself.
pub fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    // The last star that was met, and where the text goes on if it takes one byte more.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((back, taken)) = star else { return false };
                star = Some((back, taken + 1));
                at = back + 1;
                from = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

impl From<String> for PackagePattern {
    fn from(text: String) -> Self {
        match text.split_once('=') {
            Some((name, version)) => Self { name: name.to_owned(), version: Some(version.to_owned()) },
            None => Self { name: text, version: None },
        }
    }
}

impl From<PackagePattern> for String {
    fn from(wanted: PackagePattern) -> Self {
        wanted.to_string()
    }
}

impl fmt::Display for PackagePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.version.iter().try_for_each(|version| write!(f, "={version}"))
    }
}

impl Default for Choice {
    fn default() -> Self {
        Self::All(false)
    }
}

impl Choice {
    /// Whether that one is among them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Some(names) => names.iter().any(|one| one == name),
        }
    }

    /// The names of the list.
    pub fn names(&self) -> &[String] {
        match self {
            Self::All(_) => &[],
            Self::Some(names) => names,
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Choice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a list of names")
            }

            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Choice, E> {
                Ok(Choice::All(all))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Choice, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                Ok(Choice::Some(names))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_the_whole_version() {
        for (wanted, version, expected) in [
            ("containerd", "1.7.24~ds1-6", true),
            ("containerd=1.7.*", "1.7.24~ds1-6", true),
            ("containerd=1.7.*", "11.7.1", false),
            ("containerd=1.7", "1.7.24", false),
            ("containerd=*ds1*", "1.7.24~ds1-6", true),
            ("containerd=*a*b", "ab-ab", true),
            ("containerd=*a*b", "ab-a", false),
            ("containerd=", "1", false),
            ("containerd=*", "", true),
        ] {
            assert_eq!(PackagePattern::from(wanted.to_owned()).accepts(version), expected, "{wanted} {version}");
        }
    }

    #[test]
    fn a_request_is_written_as_short_as_it_is_read() {
        let text = r#"{"packages":["nginx","containerd=1.7.*"],"recommends":["nginx"],"upgrade":true}"#;
        let request: PackageRequest = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
        assert!(request.recommends.has("nginx") && !request.recommends.has("curl") && request.upgrade.has("curl"));
        assert_eq!(serde_json::to_string(&PackageRequest::default()).unwrap(), "{}");
        let error = serde_json::from_str::<PackageRequest>(r#"{"upgrade": "x"}"#).unwrap_err().to_string();
        assert!(error.contains("expected true, false or a list of names"), "{error}");
    }
}
