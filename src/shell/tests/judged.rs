//! Programs that the judge runs in its chroot: each does what it does below the real shell, and none is refused.

use std::fs;
use std::path::Path;

use crate::judge::{Dialect, Judge, snippets};

fn compare(dialect: Dialect, file: &str, as_root: bool) {
    let judge = match Judge::new() {
        Ok(judge) => judge,
        Err(reason) => return crate::skip::skip(&format!("programs of {file} compared with {dialect:?}: {reason}")),
    };
    if as_root && !judge.is_root() {
        return crate::skip::skip(&format!("programs of {file}, which change owners: not root"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judged").join(file);
    let report = judge.snippets(dialect, &snippets(&fs::read_to_string(path).unwrap()));
    println!("{}{}{}", report.differences_text(), report.refusals_text(), report.summary());
    assert_eq!(report.equal, report.programs);
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
