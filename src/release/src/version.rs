//! Versions of releases and bundles, and version constraints.
//!
//! A version consists of numbers separated by dots, optionally `-` with a pre-release and `+` with a build, such as
//! `1.35.5+rke2r1`. The order is that of Semantic Versioning 2.0.0, section 11, with three differences: any count of
//! numbers is allowed, missing ones are 0, and builds are compared, so that `+rke2r2` is later than `+rke2r1`. In
//! builds, runs of digits are numbers.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use vmbake_common::hint::Hint;
use vmbake_common::semver::prerelease_order;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a version in bytes: a registry tag may have 128.
const MAX_VERSION: usize = 64;
/// Maximum number of parts of a constraint.
const MAX_PARTS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = r"^[0-9]+(\.[0-9]+)*(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$", "maxLength" = 64))]
pub struct Version {
    text: String,
    numbers: Vec<u64>,
    pre: Option<String>,
    build: Option<String>,
}

/// A version constraint: parts such as `>=1.34.0, <1.36.0`, which must all match. A version alone matches exactly.
///
/// A part without a build ignores builds: `<=1.35.5` matches `1.35.5+rke2r1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("minLength" = 1))]
pub struct VersionDemand {
    text: String,
    parts: Vec<(Comparison, Version)>,
}

/// An invalid version or constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {text:?}: expected {form}")]
pub struct InvalidVersion {
    text: String,
    form: &'static str,
}

impl Hint for InvalidVersion {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Operators by prefix. Longer ones come first.
const COMPARISONS: [(&str, Comparison); 5] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

impl Version {
    /// The version as a registry tag, where `+` is not allowed (distribution specification 1.1, "Pulling manifests").
    pub fn tag(&self) -> String {
        self.text.replace('+', "_")
    }

    /// Whether it is a pre-release.
    pub fn is_pre_release(&self) -> bool {
        self.pre.is_some()
    }

    /// The order of versions.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.compare_without_build(other).then_with(|| match (&self.build, &other.build) {
            (Some(one), Some(two)) => naturally(one, two),
            (one, two) => one.is_some().cmp(&two.is_some()),
        })
    }

    fn compare_without_build(&self, other: &Self) -> Ordering {
        let len = self.numbers.len().max(other.numbers.len());
        let padded = |version: &Self| -> Vec<u64> {
            version.numbers.iter().copied().chain(std::iter::repeat(0)).take(len).collect()
        };
        let [pre, other_pre] = [self, other].map(|version| version.pre.as_deref().unwrap_or_default());
        padded(self).cmp(&padded(other)).then_with(|| prerelease_order(pre, other_pre))
    }
}

impl VersionDemand {
    /// Whether a version matches the constraint.
    pub fn admits(&self, version: &Version) -> bool {
        self.parts.iter().all(|(comparison, wanted)| {
            let order = match wanted.build {
                Some(_) => version.compare(wanted),
                None => version.compare_without_build(wanted),
            };
            match comparison {
                Comparison::Equal => order.is_eq(),
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                Comparison::GreaterOrEqual => order.is_ge(),
            }
        })
    }
}

/// Compares texts in which runs of digits are numbers.
fn naturally(one: &str, two: &str) -> Ordering {
    let runs = |text: &str| -> Vec<(bool, String)> {
        let mut runs: Vec<(bool, String)> = Vec::new();
        for char in text.chars() {
            let is_digit = char.is_ascii_digit();
            match runs.last_mut().filter(|(kind, _)| *kind == is_digit) {
                Some((_, run)) => run.push(char),
                None => runs.push((is_digit, char.to_string())),
            }
        }
        runs
    };
    let key = |(is_number, run): (bool, String)| {
        let digits = if is_number { run.trim_start_matches('0').to_owned() } else { String::new() };
        // A number with more digits is greater.
        (is_number, digits.len(), digits, run)
    };
    runs(one).into_iter().map(key).cmp(runs(two).into_iter().map(key))
}

impl FromStr for Version {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let form = "a version of numbers separated by dots, optionally with -PRE and +BUILD";
        let invalid = || InvalidVersion { text: text.chars().take(MAX_VERSION).collect(), form };
        let is_word = |word: &&str| {
            let is_part =
                |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            word.split('.').all(is_part)
        };
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (numbers, pre) = rest.split_once('-').map_or((rest, None), |(numbers, pre)| (numbers, Some(pre)));
        if text.len() > MAX_VERSION || !build.iter().chain(&pre).all(is_word) {
            return Err(invalid());
        }
        let number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?;
        let numbers = numbers.split('.').map(number).collect::<Option<Vec<u64>>>().ok_or_else(invalid)?;
        Ok(Self { text: text.to_owned(), numbers, pre: pre.map(str::to_owned), build: build.map(str::to_owned) })
    }
}

impl FromStr for VersionDemand {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let invalid = || InvalidVersion {
            text: text.chars().take(MAX_PARTS * MAX_VERSION).collect(),
            form: "a version constraint such as \">=1.34, <1.36\"",
        };
        let part = |part: &str| {
            let part = part.trim();
            let found = COMPARISONS.iter().find_map(|(sign, comparison)| Some((*comparison, part.strip_prefix(sign)?)));
            let (comparison, version) = found.unwrap_or((Comparison::Equal, part));
            version.trim_start().parse().ok().map(|version| (comparison, version))
        };
        let parts = text.split(',').take(MAX_PARTS + 1).map(part).collect::<Option<Vec<_>>>().ok_or_else(invalid)?;
        if parts.len() > MAX_PARTS { Err(invalid()) } else { Ok(Self { text: text.to_owned(), parts }) }
    }
}

impl TryFrom<String> for Version {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, InvalidVersion> {
        text.parse()
    }
}

impl TryFrom<String> for VersionDemand {
    type Error = InvalidVersion;

    fn try_from(text: String) -> Result<Self, InvalidVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.text
    }
}

impl From<VersionDemand> for String {
    fn from(demand: VersionDemand) -> Self {
        demand.text
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for VersionDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_in_order() {
        let order = [
            "0.9",
            "1-alpha",
            "1-alpha.1",
            "1-alpha.beta",
            "1-rc.2",
            "1-rc.10",
            "1.0",
            "1.0+rke2r1",
            "1.0+rke2r2",
            "1.0+rke2r10",
            "1.0.1",
            "1.2",
            "1.10",
        ];
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                assert_eq!(version(one).compare(&version(other)), at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(version("1").compare(&version("1.0.0")), Ordering::Equal);
        assert_eq!(version("1.35.5+rke2r1").tag(), "1.35.5_rke2r1");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let long = "1".repeat(65);
        for wrong in ["", "v1", "1.", "1..2", "1-", "1+", "1+a_b", "1 ", "99999999999999999999", "1+a+b", &long] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn demands_hold_or_not() {
        for (demand, text, expected) in [
            (">=1.34.0, <1.36.0", "1.35.5+rke2r1", true),
            (">=1.34.0, <1.36.0", "1.36.0", false),
            ("<=1.35.5", "1.35.5+rke2r1", true),
            ("1.35.5+rke2r1", "1.35.5+rke2r2", false),
            ("1", "1.0", true),
            (">1", "1.0", false),
            (">1", "1.0.1", true),
            ("=2", "1", false),
        ] {
            assert_eq!(demand.parse::<VersionDemand>().unwrap().admits(&version(text)), expected, "{demand} {text}");
        }
        let many = ["1"; 9].join(",");
        for wrong in ["", ">=", ">=1,", "~1", "1 2", &many] {
            assert!(wrong.parse::<VersionDemand>().is_err(), "{wrong}");
        }
    }
}
