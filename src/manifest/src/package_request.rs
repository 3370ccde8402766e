//! Requests for packages by name, with optional dependencies.
//!
//! Used in `layer.json`, and recorded in the manifest.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use vmbake_common::glob::matches;

/// The packages of one layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PackageRequest {
    /// The Debian system to install first, for images without a base image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// The requested packages; their dependencies are added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackagePattern>,
    /// Packages whose `Recommends` are added as well.
    #[serde(skip_serializing_if = "Choice::is_none")]
    pub recommends: Choice,
    /// An additional archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Packages of the base to keep at their version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hold: Vec<String>,
    /// Packages to exclude.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Packages of the base to upgrade.
    #[serde(skip_serializing_if = "Choice::is_none")]
    pub upgrade: Choice,
    /// Packages to remove, with their configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove_packages: Vec<String>,
}

/// A Debian package: `name`, or `name=VERSION`, in which `*` matches any characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PackagePattern {
    pub name: String,
    /// Pattern of the version; absent means any.
    pub version: Option<String>,
}

/// A Debian system made of packages alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Archive of its packages, by name in `sources.json`; absent means that of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    pub variant: Variant,
}

/// The packages of a system, to which their dependencies are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Packages with `Essential: yes`.
    Essential,
    /// Those, all with `Priority: required`, and apt.
    Minimal,
}

/// All, none, or a list of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Choice {
    /// `true` for all, `false` for none.
    All(bool),
    /// Only those with these names.
    Some(Vec<String>),
}

impl PackageRequest {
    /// Whether the request is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PackagePattern {
    /// Whether a version matches.
    pub fn accepts(&self, version: &str) -> bool {
        self.version.as_ref().is_none_or(|pattern| matches(pattern.as_bytes(), version.as_bytes()))
    }
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
    /// Whether the selection includes a name.
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
