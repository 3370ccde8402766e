//! `vmbake inspect` and `vmbake lint`: what an image is, and whether it is clean.

use super::{Failure, InspectArgs, Outcome, files};

pub(super) fn inspect(args: &InspectArgs) -> Result<Outcome, Failure> {
    let report = crate::inspect::inspect(&args.image, args.partition)?;
    files::print(&if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() })
}

pub(super) fn lint(args: &InspectArgs) -> Result<Outcome, Failure> {
    let findings = crate::lint::lint(&crate::inspect::open_tree(&args.image, args.partition)?);
    let text = match args.json {
        true => serde_json::to_string_pretty(&findings)? + "\n",
        false => findings.iter().map(|finding| format!("{finding}\n")).collect(),
    };
    files::print(&text)?;
    let clean = findings.iter().all(|finding| finding.ok);
    Ok(if clean { Outcome::Clean } else { Outcome::Findings })
}
