//! What people say of commands that vmbake does not know, or does otherwise: a document in, the rule for a command out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ImportError;
use vmbake_common::address;
use vmbake_common::input;
pub use vmbake_layer::without_comments;
use vmbake_manifest::package_request::is_like;

/// Rules for an import.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "rules of a profile's import")]
pub struct Rules {
    /// Commands of scripts, the first that fits counts.
    pub statements: Vec<StatementRule>,
    /// Package that a script installs -> the package that takes its place, or none with null.
    pub packages: BTreeMap<String, Option<String>>,
    /// Whether packages that scripts install bring what they recommend, where apt would: `false` leaves it out.
    pub recommends: Option<bool>,
    /// Archive of the sources that packages may come from as well, by the name and with the key that it has there.
    pub archive: Option<String>,
    /// Address of a file that scripts fetch -> what proves it.
    pub downloads: BTreeMap<String, DownloadRule>,
    /// Paths that a new machine does not have, though scripts ask for them.
    pub absent: BTreeSet<String>,
}

/// What a command comes to: one of these keys.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatementRule {
    /// The command and its arguments, expanded, a space between them; `*` stands for any characters.
    pub command: String,
    /// Nothing of it is done, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// User data brings it about: how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// The first boot runs this: an absolute path and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_boot: Option<Vec<String>>,
}

/// What proves a file.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DownloadRule {
    /// Its SHA-256.
    pub sha256: String,
}

impl Rules {
    /// Reads a document, which may have comments; the rules of several count in their order.
    pub fn open(paths: &[std::path::PathBuf]) -> Result<Self, ImportError> {
        let mut all = Self::default();
        for path in paths {
            let text = input::read(path, input::MAX_INPUT)
                .map_err(|source| ImportError::File { path: path.clone(), source })?;
            all.add(Self::parse(path, &text)?);
        }
        Ok(all)
    }

    pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Self, ImportError> {
        let wrong = |message: String| ImportError::Document { path: path.to_owned(), message };
        if let Some(place) = address::in_document(&without_comments(text)) {
            return Err(wrong(format!("{place}: {}", address::MESSAGE)));
        }
        let rules: Self = serde_json::from_slice(&without_comments(text)).map_err(|error| wrong(error.to_string()))?;
        for rule in &rules.statements {
            let StatementRule { command, drop, user_data, first_boot } = rule;
            let count =
                usize::from(drop.is_some()) + usize::from(user_data.is_some()) + usize::from(first_boot.is_some());
            if count != 1 {
                return Err(wrong(format!(
                    "{command}: expected one of `drop`, `user_data` and `first_boot`, found {count}"
                )));
            }
            let program = first_boot.as_ref().map(|words| words.first().map_or("", String::as_str));
            if program.is_some_and(|program| !program.starts_with('/')) {
                return Err(wrong(format!("{command}: expected an absolute path and arguments in `first_boot`")));
            }
            if command.trim_matches(['*', ' ']).is_empty() {
                return Err(wrong("a `command` of only `*` would match all commands".to_owned()));
            }
        }
        Ok(rules)
    }

    fn add(&mut self, other: Self) {
        self.statements.extend(other.statements);
        self.packages.extend(other.packages);
        self.archive = other.archive.or(self.archive.take());
        self.recommends = other.recommends.or(self.recommends);
        self.downloads.extend(other.downloads);
        self.absent.extend(other.absent);
    }

    /// The rule for a command.
    pub(super) fn of(&self, words: &str) -> Option<&StatementRule> {
        self.statements.iter().find(|rule| is_like(rule.command.as_bytes(), words.as_bytes()))
    }
}
