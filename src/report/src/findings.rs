//! What was checked: hygiene of the image, and the release around it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use vmbake_disk::tree::Tree;

use super::table::{Section, Table};
use vmbake_compose::origin::Record;
use vmbake_query::lint::{self, LintStatus};

/// What came of one check of the release that the image is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedCheck {
    /// `ok`, `FAILED`, `not verified` or `not asked`.
    pub state: String,
    pub check: String,
    /// The file that it was about.
    pub file: String,
    /// What was found.
    pub said: String,
}

/// How clean the image is.
pub(super) fn lint(tree: &Tree, record: Option<&Record>) -> Section {
    let none = BTreeMap::new();
    let mut found = lint::lint_with(tree, record.map_or(&none, |record| &record.logins));
    // The bad ones first, else as the rules stand.
    found.sort_by_key(|finding| Reverse(finding.status));
    let failed = found.iter().filter(|finding| finding.status != LintStatus::Ok).count();
    let cells = |finding: lint::Finding| {
        let verdict = match finding.status {
            LintStatus::Ok => "ok",
            LintStatus::Warning => "warning",
            LintStatus::Error => "FAILED",
        };
        vec![verdict.to_owned(), finding.rule.to_owned(), finding.path, finding.evidence]
    };
    let text = match failed {
        0 => "Every rule holds.".to_owned(),
        failed => format!("Rules are violated: {failed} findings."),
    };
    let rows = found.into_iter().map(cells).collect();
    let tables = vec![Table::new("Rules", &["verdict", "rule", "path", "what was found"], rows)];
    Section { id: "lint", title: "What no golden image may carry", text, tables, ..Section::default() }
}

/// What came of the checks of the release.
pub(super) fn proofs(checks: Option<&[ReportedCheck]>) -> Section {
    let cells =
        |check: &ReportedCheck| vec![check.state.clone(), check.check.clone(), check.file.clone(), check.said.clone()];
    let heads = ["verdict", "check", "file", "what was found"];
    let tables = checks.map(|checks| Table::new("Checks", &heads, checks.iter().map(cells).collect()));
    let text = match checks {
        Some(checks) => {
            let is = |state: &str| checks.iter().filter(|check| check.state == state).count();
            format!(
                "The digests, provenance, origins and proofs of the release were checked, without network, when this page was written: \
                 {} hold, {} failed, {} could not be verified.",
                is("ok"),
                is("FAILED"),
                is("not verified")
            )
        }
        None => "Nothing was verified: this page says what the image and the documents beside it say of themselves. \
                 `vmbake report --verify` checks a release."
            .to_owned(),
    };
    Section {
        id: "proofs",
        title: "What was verified",
        text,
        tables: tables.into_iter().collect(),
        ..Section::default()
    }
}
