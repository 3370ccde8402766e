//! Release policies: `policy.json`, strict JSON without duplicate keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::release::provenance::BuilderId;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;
use vmbake_manifest::{Content, Proof};
use vmbake_proof::sigstore::json;

/// Maximum size of a policy.
const MAX_POLICY: u64 = 1 << 20;
const SECONDS_OF_DAY: i64 = 86_400;
/// The format version.
const FORMAT: u32 = 1;

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("{path}: invalid policy")]
    Syntax { path: PathBuf, source: serde_json::Error },
    #[error("{path}: {what}")]
    Demand {
        path: PathBuf,
        /// The fault.
        what: String,
    },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for PolicyError {
    fn hint(&self) -> Option<String> {
        Some("`vmbake schema policy` prints the JSON Schema of a policy; docs/release.md#require-more-a-policy has an example".to_owned())
    }

    vmbake_common::causes!(File);
}

/// The requirements for a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "policy.json")]
pub struct ReleasePolicy {
    /// The format version: 1.
    pub format: u32,
    /// Accepted builders in provenance, as URIs.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub builders: Option<BTreeSet<String>>,
    /// Required signatures.
    #[serde(default)]
    pub keys: Option<KeyDemand>,
    /// Accepted digests of `sources.json`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub sources: Option<BTreeSet<Digest>>,
    /// Maximum age in days of the newest index of an archive, by its name in `sources.json`.
    #[serde(default)]
    pub max_index_age_days: BTreeMap<String, u32>,
}

/// A threshold of signatures by these keys.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyDemand {
    /// The minimum number of signatures.
    #[schemars(range(min = 1))]
    pub require: usize,
    /// Files with public keys, PEM; relative to the directory of the policy.
    #[schemars(length(min = 1))]
    pub of: Vec<PathBuf>,
}

impl ReleasePolicy {
    /// Reads a policy.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let text = super::read(path, MAX_POLICY)
            .map_err(|source| PolicyError::File(FileError::new(path, "read the policy", source)))?;
        Self::parse(path, &text)
    }

    /// Parses a policy; its files are relative to the directory of `path`.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, PolicyError> {
        let syntax = |source| PolicyError::Syntax { path: path.to_owned(), source };
        let mut policy: Self = serde_json::from_value(json::parse(text).map_err(syntax)?).map_err(syntax)?;
        if let Some(what) = policy.fault() {
            return Err(PolicyError::Demand { path: path.to_owned(), what });
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        if let Some(keys) = &mut policy.keys {
            keys.of.iter_mut().for_each(|file| *file = folder.join(&*file));
        }
        Ok(policy)
    }

    fn fault(&self) -> Option<String> {
        let Self { format, builders, keys, sources, .. } = self;
        if *format != FORMAT {
            return Some(format!("unsupported format {format}, expected {FORMAT}"));
        }
        if let Some(wrong) = builders.iter().flatten().find(|builder| builder.parse::<BuilderId>().is_err()) {
            return Some(format!("builder {wrong:?} is not a valid URI"));
        }
        if builders.as_ref().is_some_and(BTreeSet::is_empty) || sources.as_ref().is_some_and(BTreeSet::is_empty) {
            return Some("an empty list would reject every release".to_owned());
        }
        let KeyDemand { require, of } = keys.as_ref()?;
        let is_possible = (1..=of.len()).contains(require);
        (!is_possible).then(|| format!("`require` is {require}, but there are {} keys", of.len()))
    }

    /// Why a builder is not accepted, unless it is.
    pub fn refuses_builder(&self, builder: &BuilderId) -> Option<String> {
        let known = self.builders.as_ref()?;
        (!known.contains(&builder.to_string())).then(|| format!("builder {builder} is not listed in the policy"))
    }

    /// The age of the newest index of each archive in the policy, or why it is too old.
    pub(super) fn index_ages(&self, content: &Content, now: Timestamp) -> Vec<Result<String, String>> {
        let age = |(archive, most): (&String, &u32)| {
            let Some(date) = newest_index(content, archive) else {
                return Err(format!("no index of archive {archive}"));
            };
            let days = now.as_second().saturating_sub(date.as_second()).div_euclid(SECONDS_OF_DAY);
            let said =
                format!("the newest index of {archive} is dated {date}, {days} days before the time of the check");
            match days {
                _ if date > now => {
                    Err(format!("the newest index of {archive} is dated {date}, after the time of the check"))
                }
                days if days > i64::from(*most) => Err(format!("{said}; the limit is {most}")),
                _ => Ok(said),
            }
        };
        self.max_index_age_days.iter().map(age).collect()
    }
}

/// The newest `Date` of an archive in a manifest: that it was seen, or that a package is proven by it.
fn newest_index(content: &Content, archive: &str) -> Option<Timestamp> {
    let seen = content.seen.get(archive).into_iter().flat_map(BTreeMap::values).copied();
    let proven = content.entries().filter_map(|entry| match &entry.proof {
        Some(Proof::Apt { archive: of, date, .. }) if of == archive => Some(*date),
        _ => None,
    });
    seen.chain(proven).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmbake_manifest::Manifest;

    #[test]
    fn each_archive_has_an_age_of_its_own() {
        let text = r#"{"vmconfig": {"version": "1", "kind": "k", "os": {"name": "o", "arch": "amd64"}, "dependencies": {"p":
            {"version": "1", "url": "u", "type": "deb", "size": 1,
            "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "proof": {"type": "apt",
            "archive": "proven", "suite": "s", "date": "2026-01-09T00:00:00Z", "signers": ["A"]}}},
            "seen": {"seen": {"s": "2026-01-01T00:00:00Z", "t": "2026-01-08T00:00:00Z"}}}}"#;
        let manifest = Manifest::parse(Path::new("m"), text.as_bytes().to_vec()).unwrap();
        let ages = |archive: &str, most: u32, now: &str| {
            let policy = format!(r#"{{"format": 1, "max_index_age_days": {{"{archive}": {most}}}}}"#);
            let policy = ReleasePolicy::parse(Path::new("p"), policy.as_bytes()).unwrap();
            let [age] = policy.index_ages(manifest.content(), now.parse().unwrap()).try_into().unwrap();
            age
        };
        let at = "2026-01-10T23:59:59Z";
        let age = "the newest index of seen is dated 2026-01-08T00:00:00Z, 2 days before the time of the check";
        assert_eq!(ages("seen", 2, at).unwrap(), age);
        assert_eq!(ages("seen", 1, at).unwrap_err(), format!("{age}; the limit is 1"));
        assert!(ages("proven", 1, at).is_ok());
        assert!(ages("proven", 0, at).is_err());
        assert!(ages("proven", 9, "2026-01-08T00:00:00Z").unwrap_err().ends_with("after the time of the check"));
        assert_eq!(ages("other", 9, at).unwrap_err(), "no index of archive other");
    }
}
