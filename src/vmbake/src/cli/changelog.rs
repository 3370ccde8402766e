//! `vmbake changelog`: what changed between two releases.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, Outcome, files};
use vmbake_query::changelog::changelog;

const EXAMPLES: &str = "\
Examples:
  vmbake changelog before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2 > CHANGES.md
  vmbake changelog before/node.debian-13.amd64.spdx.json dist/node.debian-13.amd64.spdx.json   # without the images";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ChangelogArgs {
    /// The older release: a disk image, qcow2 or raw, or a document that a bake wrote beside it
    from: PathBuf,
    /// The newer release
    to: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ChangelogArgs) -> Result<Outcome, Failure> {
    let found = changelog(&args.from, &args.to)?;
    if args.json { files::print_json(&found) } else { files::show(&found.to_string()) }
}
