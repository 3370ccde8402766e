//! `vmbake changelog`: release notes from two releases.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, Outcome, READABLE, files};
use vmbake_query::changelog::changelog;

const EXAMPLES: &str = "\
Examples:
  vmbake changelog before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2 > CHANGES.md
  vmbake changelog before/node.debian-13.amd64.spdx.json dist/node.debian-13.amd64.spdx.json   # from SBOMs, without the images";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ChangelogArgs {
    #[arg(help = format!("Older release: a disk image, {READABLE}, or a document written next to it"))]
    from: PathBuf,
    /// Newer release, as for FROM
    to: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ChangelogArgs) -> Result<Outcome, Failure> {
    let found = changelog(&args.from, &args.to)?;
    if args.json { files::print_json(&found) } else { files::show(&found.to_string()) }
}
