//! The report of an import: the result of each command, as text and JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::error::CommandLocation;

/// Where the effect of a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementClass {
    /// In the image.
    Baked,
    /// Runs on the first boot.
    FirstBoot,
    /// Replaced by user data.
    UserData,
    /// Nowhere.
    Dropped,
}

/// A command, and what it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Where it is.
    pub place: CommandLocation,
    /// Where its effect is.
    pub class: StatementClass,
    /// Why, or how; empty where files say it.
    pub reason: String,
}

/// A file of the profile that is not in the image as it is.
#[derive(Clone, Debug, Serialize)]
pub struct FileNote {
    pub path: String,
    /// Where its content is.
    pub class: StatementClass,
    /// Why.
    pub reason: String,
}

/// All commands and files.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    /// Commands in the order in which they ended.
    pub statements: Vec<Statement>,
    pub files: Vec<FileNote>,
    /// Units for which machines may do something else than the scripts.
    pub warnings: Vec<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    script: &'a str,
    line: u32,
    command: &'a str,
    class: StatementClass,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

impl StatementClass {
    pub fn name(self) -> &'static str {
        match self {
            Self::Baked => "baked",
            Self::FirstBoot => "first-boot",
            Self::UserData => "user-data",
            Self::Dropped => "dropped",
        }
    }
}

impl ImportReport {
    /// How many commands came to what.
    pub fn counts(&self) -> BTreeMap<StatementClass, u64> {
        let mut counts = BTreeMap::new();
        self.statements.iter().for_each(|statement| *counts.entry(statement.class).or_default() += 1);
        counts
    }

    pub fn to_json(&self) -> serde_json::Value {
        let lines = self.statements.iter().map(|statement| Line {
            script: &statement.place.script,
            line: statement.place.line,
            command: &statement.place.command,
            class: statement.class,
            reason: &statement.reason,
        });
        serde_json::json!({"schema": 1, "statements": lines.collect::<Vec<_>>(), "files": self.files, "warnings": self.warnings})
    }
}
