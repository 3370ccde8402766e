//! Sections on checks: image hygiene, and the release.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use vmbake_disk::tree::Tree;

use super::table::{Section, Table};
use vmbake_compose::origin::Record;
use vmbake_query::lint::{self, LintStatus};

/// Result of one check of the image's release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedCheck {
    /// `ok`, `FAILED`, `not verified` or `not asked`.
    pub state: String,
    pub check: String,
    /// The checked file.
    pub file: String,
    /// What was found.
    pub said: String,
}

/// Section with the results of `lint`.
pub(super) fn lint(tree: &Tree, record: Option<&Record>) -> Section {
    let none = BTreeMap::new();
    let mut found = lint::lint_with(tree, record.map_or(&none, |record| &record.logins));
    // Violations first, otherwise in the order of the rules.
    found.sort_by_key(|finding| Reverse(finding.status));
    let failed = found.iter().filter(|finding| finding.status != LintStatus::Ok).count();
    let cells = |finding: lint::Finding| {
        let result = match finding.status {
            LintStatus::Ok => "ok",
            LintStatus::Warning => "warning",
            LintStatus::Error => "FAILED",
        };
        vec![result.to_owned(), finding.rule.to_owned(), finding.path, finding.evidence]
    };
    let text = match failed {
        0 => "No violations.".to_owned(),
        failed => format!("{failed} violations."),
    };
    let rows = found.into_iter().map(cells).collect();
    let tables = vec![Table::new("Rules", &["result", "rule", "path", "evidence"], rows)];
    Section { id: "lint", title: "Hygiene", text, tables, ..Section::default() }
}

/// Section with the results of the release verification.
pub(super) fn proofs(checks: Option<&[ReportedCheck]>) -> Section {
    let cells =
        |check: &ReportedCheck| vec![check.state.clone(), check.check.clone(), check.file.clone(), check.said.clone()];
    let heads = ["result", "check", "file", "details"];
    let tables = checks.map(|checks| Table::new("Checks", &heads, checks.iter().map(cells).collect()));
    let text = match checks {
        Some(checks) => {
            let is = |state: &str| checks.iter().filter(|check| check.state == state).count();
            format!(
                "The digests, provenance, origins and proofs of the release were checked, without network, when this page was written: \
                 {} passed, {} failed, {} could not be verified.",
                is("ok"),
                is("FAILED"),
                is("not verified")
            )
        }
        None => "Nothing was verified: this report shows the claims of the image and of the documents next to it. \
                 `vmbake report --verify` checks a release."
            .to_owned(),
    };
    Section { id: "proofs", title: "Verification", text, tables: tables.into_iter().collect(), ..Section::default() }
}
