//! `vmbake inspect` and `vmbake lint`: what an image is, and whether it is clean.

use super::{Failure, InspectArgs, Outcome};

pub(super) fn inspect(args: &InspectArgs) -> Result<Outcome, Failure> {
    let report = crate::inspect::inspect(&args.image)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(Outcome::Clean)
}

pub(super) fn lint(args: &InspectArgs) -> Result<Outcome, Failure> {
    let findings = crate::lint::lint(&crate::inspect::open_tree(&args.image, None)?);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        findings.iter().for_each(|finding| println!("{finding}"));
    }
    let clean = findings.iter().all(|finding| finding.ok);
    Ok(if clean { Outcome::Clean } else { Outcome::Findings })
}
