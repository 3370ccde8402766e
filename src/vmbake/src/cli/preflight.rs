//! `vmbake preflight`: checks an image against the requirements of a cloud.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Failure, InspectArgs, Outcome, files, threads};
use vmbake_common::progress::Progress;
use vmbake_publish::ebs::snapshot::{SnapshotPlan, plan};
use vmbake_query::preflight::{Preflight, aws};

const EXAMPLES: &str = "\
Examples:
  vmbake preflight aws dist/node.debian-13.amd64.qcow2
  vmbake preflight aws debian-13-generic-arm64.qcow2 --json
  vmbake preflight aws new/node.debian-13.amd64.raw --parent old/node.debian-13.amd64.raw";

#[derive(Debug, Subcommand)]
pub(super) enum PreflightCommand {
    /// Check a disk image against the requirements of EC2, and derive its architecture and boot mode; exit 1 on an error
    #[command(after_help = EXAMPLES)]
    Aws(AwsArgs),
}

#[derive(Debug, Args)]
pub(super) struct AwsArgs {
    #[command(flatten)]
    inspect: InspectArgs,
    /// Read the whole disk, and count the blocks of an EBS snapshot
    #[arg(long)]
    snapshot: bool,
    /// Image of the parent snapshot, to count only changed blocks; implies --snapshot
    #[arg(long, value_name = "OLD")]
    parent: Option<PathBuf>,
}

#[derive(Serialize)]
struct Found<'a> {
    #[serde(flatten)]
    preflight: &'a Preflight,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<SnapshotPlan>,
}

pub(super) fn run(what: &PreflightCommand) -> Result<Outcome, Failure> {
    let PreflightCommand::Aws(AwsArgs { inspect: args, snapshot, parent }) = what;
    let found = aws(&args.image, args.partition)?;
    let snapshot = (*snapshot || parent.is_some()).then(|| {
        let boot_mode = found.boot_mode.unwrap_or_default();
        plan(&args.image, parent.as_deref(), boot_mode, threads(None)?, &Progress::new(args.json))
            .map_err(Failure::from)
    });
    let snapshot = snapshot.transpose()?;
    if args.json {
        files::print_json(&Found { preflight: &found, snapshot })?
    } else {
        files::show(&(found.to_string() + &snapshot.map(|plan| plan.to_string()).unwrap_or_default()))?
    };
    Ok(if found.passes() { Outcome::Clean } else { Outcome::Findings })
}
