//! `vmbake inspect` and `vmbake lint`.

use super::{Failure, InspectArgs, Outcome, files};
use vmbake_query::lint::{LintStatus, lint_image};

pub(super) const INSPECT_EXAMPLES: &str = "\
Examples:
  vmbake inspect dist/node.debian-13.amd64.qcow2
  vmbake inspect disk.raw --partition 2 --json";

pub(super) const LINT_EXAMPLES: &str = "\
Examples:
  vmbake lint dist/node.debian-13.amd64.qcow2
  vmbake lint disk.raw --partition 2 --json";

pub(super) fn inspect(args: &InspectArgs) -> Result<Outcome, Failure> {
    let report = vmbake_image::inspect::inspect(&args.image, args.partition)?;
    if args.json { files::print_json(&report) } else { files::show(&report.to_string()) }
}

pub(super) fn lint(args: &InspectArgs) -> Result<Outcome, Failure> {
    let findings = lint_image(&args.image, args.partition)?;
    match args.json {
        true => files::print_json(&findings)?,
        false => files::show(&findings.iter().map(|finding| format!("{finding}\n")).collect::<String>())?,
    };
    let clean = findings.iter().all(|finding| finding.status != LintStatus::Error);
    Ok(if clean { Outcome::Clean } else { Outcome::Findings })
}
