//! `vmbake preflight`: whether an image would work in a cloud.

use clap::Subcommand;

use super::{Failure, InspectArgs, Outcome, examples, files};
use crate::query::preflight::aws;

#[derive(Debug, Subcommand)]
pub(super) enum PreflightCommand {
    /// Check a disk image for what EC2 needs, and derive the architecture and boot mode of its registration; exit 1 on an error
    #[command(after_help = examples::PREFLIGHT_AWS)]
    Aws(InspectArgs),
}

pub(super) fn run(what: &PreflightCommand) -> Result<Outcome, Failure> {
    let PreflightCommand::Aws(args) = what;
    let found = aws(&args.image, args.partition)?;
    if args.json {
        files::print_json(&found)?
    } else {
        files::show(&found.to_string())?
    };
    Ok(if found.passes() { Outcome::Clean } else { Outcome::Findings })
}
