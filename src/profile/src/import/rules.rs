//! Rules that state the result of commands in scripts, such as commands that the import does not support: documents in, the rule for a command out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::ImportError;
use vmbake_common::address;
use vmbake_common::glob::matches;
use vmbake_common::input;
pub use vmbake_layer::without_comments;

/// Rules for an import.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "rules for vmbake profile import")]
pub struct Rules {
    /// Rules for commands of scripts; the first match applies.
    pub statements: Vec<StatementRule>,
    /// Replacements of packages that scripts install, by name; null installs none.
    pub packages: BTreeMap<String, Option<String>>,
    /// `false` omits recommended packages that apt would install.
    pub recommends: Option<bool>,
    /// Additional archive for packages, by its name in the sources, which pin its key.
    pub archive: Option<String>,
    /// Checksums of files that scripts download, by URL.
    pub downloads: BTreeMap<String, DownloadRule>,
    /// Paths that do not exist on a new machine.
    pub absent: BTreeSet<String>,
}

/// The result of a command: one of `drop`, `user_data` and `first_boot`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatementRule {
    /// The command and its arguments, expanded and separated by spaces; `*` matches any characters.
    pub command: String,
    /// Ignores the command, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// Ignores the command, since user data has the same effect in this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// Runs this program on the first boot: an absolute path and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_boot: Option<Vec<String>>,
}

/// Checksum of a file.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DownloadRule {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Rules {
    /// Reads and merges documents, which may contain comments. The first matching rule for a command applies; for other keys, the last document.
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
        self.statements.iter().find(|rule| matches(rule.command.as_bytes(), words.as_bytes()))
    }
}
