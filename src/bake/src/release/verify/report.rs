//! The report: checks and their results.

use std::error::Error;
use std::fmt;

use serde::Serialize;

use vmbake_common::escape;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// Passed.
    Ok,
    /// Failed.
    Failed,
    /// Not verified, as something required for it is missing.
    NotVerified,
    /// Not requested.
    NotAsked,
    /// A file that no check covers and that is not part of the release.
    Warning,
}

impl fmt::Display for CheckState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Failed => "FAILED",
            Self::NotVerified => "not verified",
            Self::NotAsked => "not asked",
            Self::Warning => "warning",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReleaseCheck {
    pub state: CheckState,
    pub check: &'static str,
    /// The file that it concerns.
    pub file: String,
    /// The finding or the fault.
    pub said: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReleaseReport {
    /// The checks, in order.
    pub checks: Vec<ReleaseCheck>,
}

impl ReleaseReport {
    /// Whether all requested checks passed. Warnings are ignored.
    pub fn is_ok(&self) -> bool {
        self.checks
            .iter()
            .all(|check| matches!(check.state, CheckState::Ok | CheckState::NotAsked | CheckState::Warning))
    }

    /// Adds a check.
    pub fn add(&mut self, state: CheckState, file: &str, check: &'static str, said: impl Into<String>) {
        self.checks.push(ReleaseCheck { state, check, file: file.to_owned(), said: said.into() });
    }

    pub(super) fn ok(&mut self, file: &str, check: &'static str, said: impl Into<String>) {
        self.add(CheckState::Ok, file, check, said);
    }

    pub(super) fn failed(&mut self, file: &str, check: &'static str, said: impl Into<String>) {
        self.add(CheckState::Failed, file, check, said);
    }

    /// Adds a failed check with all causes of an error.
    pub(super) fn failed_by(&mut self, file: &str, check: &'static str, error: &(dyn Error + 'static)) {
        self.failed(file, check, escape::chain(error));
    }
}

impl fmt::Display for ReleaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|check| escape::line(&check.file).chars().count()).max().unwrap_or(0);
        for ReleaseCheck { state, check, file, said } in &self.checks {
            let line = format!("{state:<12}  {check:<10}  {:<width$}  {}", escape::line(file), escape::line(said));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
