//! Programs that the judge runs in its chroot. Each does what it does below the real shell, and none is refused; others are all refused.

use std::fs;
use std::path::Path;

use crate::judge::report::Report;
use crate::judge::{Dialect, Judge, snippets};

/// The results of a file of programs; none where they cannot be compared here.
fn report(dialect: Dialect, file: &str, as_root: bool) -> Option<Report> {
    let judge = match Judge::new() {
        Ok(judge) => judge,
        Err(reason) => {
            crate::skip::skip(&format!("programs of {file} compared with {dialect:?}: {reason}"));
            return None;
        }
    };
    if as_root && !judge.is_root() {
        crate::skip::skip(&format!("programs of {file}, which change owners: not root"));
        return None;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judged").join(file);
    let report = judge.snippets(dialect, &snippets(&fs::read_to_string(path).unwrap()));
    println!("{}{}{}", report.differences_text(), report.refusals_text(), report.summary());
    Some(report)
}

fn compare(dialect: Dialect, file: &str, as_root: bool) {
    if let Some(report) = report(dialect, file, as_root) {
        assert_eq!(report.equal, report.programs);
    }
}

#[test]
fn what_depends_on_more_than_a_program_shows_is_refused() {
    for (dialect, file) in [(Dialect::Dash, "refused-dash.txt"), (Dialect::Bash, "refused-bash.txt")] {
        if let Some(report) = report(dialect, file, false) {
            assert_eq!(report.refused, report.programs);
        }
    }
}

#[test]
fn programs_of_dash_do_what_they_do_in_the_chroot() {
    compare(Dialect::Dash, "dash.txt", false);
}

#[test]
fn programs_of_bash_do_what_they_do_in_the_chroot() {
    compare(Dialect::Bash, "bash.txt", false);
}

#[test]
fn programs_that_change_owners_do_what_they_do_in_the_chroot() {
    compare(Dialect::Dash, "root.txt", true);
}
