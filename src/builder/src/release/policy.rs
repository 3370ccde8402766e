//! What somebody demands of releases: `policy.json`, strict JSON without repeated keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::digest::Digest;
use crate::hint::Hint;
use crate::manifest::Content;
use crate::pin::proof::sigstore::json;
use crate::release::provenance::BuilderId;

/// Longest policy that is read.
const MAX_POLICY: u64 = 1 << 20;
/// The form that is read.
const FORMAT: u32 = 1;

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("{path}: cannot read the policy")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no JSON of this form.
    #[error("{path}: not a valid policy")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// It demands what cannot be.
    #[error("{path}: {what}")]
    Demand {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl Hint for PolicyError {
    fn hint(&self) -> Option<String> {
        Some("`vmbake schema policy` prints the form of a policy; docs/release.md has an example".to_owned())
    }
}

/// What is demanded of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "policy.json")]
pub struct ReleasePolicy {
    /// Form of this document: 1.
    pub format: u32,
    /// The builders that provenance may name, URIs.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub builders: Option<BTreeSet<String>>,
    /// Who must have signed.
    #[serde(default)]
    pub keys: Option<KeyDemand>,
    /// Digests of `sources.json` that an image may have been baked with.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub sources: Option<BTreeSet<Digest>>,
    /// Most days since the newest index that was seen of each archive.
    #[serde(default)]
    pub max_index_age_days: Option<u32>,
}

/// How many of which keys must have signed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyDemand {
    /// The least number.
    #[schemars(range(min = 1))]
    pub require: usize,
    /// Files with public keys, PEM; counted from the folder of the policy.
    #[schemars(length(min = 1))]
    pub of: Vec<PathBuf>,
}

impl ReleasePolicy {
    /// Reads a policy.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let text =
            super::read(path, MAX_POLICY).map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Reads a policy from its text; files are counted from the folder of `path`.
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
            return Some(format!("is in format {format}, this program reads {FORMAT}"));
        }
        if let Some(wrong) = builders.iter().flatten().find(|builder| builder.parse::<BuilderId>().is_err()) {
            return Some(format!("builder {wrong:?} is no URI"));
        }
        if builders.as_ref().is_some_and(BTreeSet::is_empty) || sources.as_ref().is_some_and(BTreeSet::is_empty) {
            return Some("an empty list would refuse every release".to_owned());
        }
        let KeyDemand { require, of } = keys.as_ref()?;
        let is_possible = (1..=of.len()).contains(require);
        (!is_possible).then(|| format!("{require} of {} keys cannot be", of.len()))
    }

    /// Why a builder is not one of those that are demanded, if it is not.
    pub fn refuses_builder(&self, builder: &BuilderId) -> Option<String> {
        let known = self.builders.as_ref()?;
        (!known.contains(&builder.to_string())).then(|| format!("{builder} is no builder that the policy names"))
    }

    /// The age of the oldest of the newest indexes of each archive, or why it is too old.
    pub(super) fn index_age(&self, content: &Content, now: Timestamp, most: u32) -> Result<String, String> {
        let newest: BTreeMap<&String, Timestamp> =
            content.seen.iter().filter_map(|(archive, suites)| Some((archive, *suites.values().max()?))).collect();
        let Some((archive, date)) = newest.into_iter().min_by_key(|(_, date)| *date) else {
            return Ok("nothing is from an archive".to_owned());
        };
        let days = now.as_second().saturating_sub(date.as_second()).div_euclid(86_400);
        let said = format!("the newest index of {archive} is of {date}, {days} days before {now}");
        match days {
            _ if date > now => Err(format!("{said}: it is of the future")),
            days if days > i64::from(most) => Err(format!("{said}; at most {most} are allowed")),
            _ => Ok(said),
        }
    }
}
