//! `vmbake explain`: the origin of a path in an image.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, Outcome, READABLE, files};
use vmbake_image::disk::InspectError;
use vmbake_query::explain::{ExplainError, explain};

const EXAMPLES: &str = "\
Examples:
  vmbake explain dist/node.debian-13.amd64.qcow2 /usr/sbin/runc
  vmbake explain image.raw /etc/passwd --record dist/node.debian-13.amd64.origin.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExplainArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// Path in the root file system; symbolic links are followed inside the image
    path: PathBuf,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Record of origins to use [default: the one in the image, otherwise NAME.origin.json next to it]
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Interpret \xNN in PATH as a byte, as in `escaped_path` of `ls --json`
    #[arg(long)]
    escaped: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    let path = files::path_bytes(&args.path, args.escaped)?;
    let found = explain(&args.image, args.partition, &path, args.record.as_deref());
    let explanation = found.map_err(|error| match error {
        ExplainError::Tree(error) => InspectError::Tree { path: args.image.clone(), error }.into(),
        other => other,
    })?;
    if args.json { files::print_json(&explanation) } else { files::show(&explanation.to_string()) }
}
