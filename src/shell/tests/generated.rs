//! Compares generated programs with dash and bash. Only few may be refused.

use std::thread::available_parallelism;

use crate::judge::{Dialect, Judge, Plan};

const PROGRAMS: usize = 10_000;
const SEED: u64 = 37;

/// Reports of more differences would be noise.
const REDUCED: usize = 8;

fn compare(dialect: Dialect, most_refused_percent: f64) {
    let judge = match Judge::new() {
        Ok(judge) => judge,
        Err(reason) => return crate::skip::skip(&format!("generated programs compared with {dialect:?}: {reason}")),
    };
    let jobs = available_parallelism().map_or(1, usize::from);
    let report = judge.generated(Plan { dialect, seed: SEED, programs: PROGRAMS, jobs, reduce: REDUCED, without: &[] });
    println!("{}{}{}", report.differences_text(), report.refusals_text(), report.summary());
    assert!(report.differences.is_empty());
    assert!(report.refused_percent() <= most_refused_percent);
}

#[test]
fn generated_programs_do_what_they_do_below_dash() {
    compare(Dialect::Dash, 2.0);
}

#[test]
fn generated_programs_do_what_they_do_below_bash() {
    compare(Dialect::Bash, 10.0);
}
