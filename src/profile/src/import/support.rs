//! Tested combinations of systems, providers, architectures and versions of Kubernetes.
//!
//! `make test-e2e ONLY=profiles` generates the table `support.json` from its results, and compares both.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::error::ImportError;

/// The table of this program.
pub static SUPPORT: LazyLock<Support> = LazyLock::new(|| {
    // A test reads it.
    serde_json::from_str(include_str!("support.json")).unwrap_or_default()
});

/// Combinations that were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// Each with all of its architectures and versions.
    pub tested: Vec<Tested>,
}

/// One system with one provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    /// System of the images.
    pub os: String,
    /// Provider of the machines.
    pub provider: String,
    /// Architectures, as Debian names them.
    pub arches: BTreeSet<String>,
    /// Minor versions of Kubernetes, such as `1.34`.
    pub kubernetes: BTreeSet<String>,
}

impl Support {
    /// Refuses what was not tried, and names what is most like it.
    pub fn check(&self, os: &str, provider: &str, kubelet: &str) -> Result<(), ImportError> {
        let minor = minor(kubelet);
        let likeness = |tested: &&Tested| {
            let same_version = tested.kubernetes.contains(&minor);
            (tested.os == os, tested.provider == provider, same_version)
        };
        // Of equal ones the first.
        let best = self.tested.iter().rev().max_by_key(likeness);
        match best {
            Some(tested) if likeness(&tested) == (true, true, true) => Ok(()),
            _ => Err(ImportError::Untested {
                asked: format!("{os} at {provider} with Kubernetes {minor}"),
                nearest: best.map_or_else(|| "none".to_owned(), |tested| tested.nearest(&minor)),
            }),
        }
    }
}

impl Tested {
    /// The combination of these that is most like a version.
    fn nearest(&self, minor: &str) -> String {
        let number =
            |text: &str| text.split('.').nth(1).and_then(|digits| digits.parse::<i64>().ok()).unwrap_or_default();
        let distance = |other: &&String| (number(other) - number(minor)).abs();
        let version = self.kubernetes.iter().min_by_key(distance).map_or("", String::as_str);
        format!("{} at {} with Kubernetes {version}", self.os, self.provider)
    }
}

/// `1.34` of `v1.34.2`.
fn minor(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    format!("{}.{}", numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_of_the_same_provider_first() {
        let tested = |provider: &str, versions: &[&str]| Tested {
            os: "debian-13".to_owned(),
            provider: provider.to_owned(),
            arches: BTreeSet::from(["amd64".to_owned()]),
            kubernetes: versions.iter().map(|version| (*version).to_owned()).collect(),
        };
        let support = Support { tested: vec![tested("aws", &["1.33", "1.34"]), tested("gce", &["1.34"])] };
        assert!(support.check("debian-13", "aws", "v1.34.2").is_ok());
        for (provider, kubelet, expected) in [
            ("gce", "v1.30.0", "debian-13 at gce with Kubernetes 1.34"),
            ("aws", "v1.29.1", "debian-13 at aws with Kubernetes 1.33"),
            ("azure", "v1.34.0", "debian-13 at aws with Kubernetes 1.34"),
        ] {
            match support.check("debian-13", provider, kubelet) {
                Err(ImportError::Untested { nearest, .. }) => assert_eq!(nearest, expected),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_table_is_there() {
        assert!(!SUPPORT.tested.is_empty());
    }
}
