//! `vmbake diff`: differences between two images.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, Outcome, READABLE, files, threads};
use vmbake_common::progress::{Event, emit, emit_message};
use vmbake_query::diff::{DiffOptions, diff, diff_blocks};

const EXAMPLES: &str = "\
Examples:
  vmbake diff before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2
  vmbake diff before.raw after.raw --times --json
  vmbake diff before.raw after.raw --blocks       # shows what a delta would contain";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DiffArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    from: PathBuf,
    /// Disk image to compare with
    to: PathBuf,
    /// Partition number in both images; 0 for a file system without a partition table [default: the root partition of each]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Also compare modification times
    #[arg(long)]
    times: bool,
    /// Compare disks instead of files: shared clusters of 64 KiB and blocks of 512 KiB, and the files whose bytes differ
    #[arg(long, conflicts_with = "times")]
    blocks: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

pub(super) fn run(args: &DiffArgs) -> Result<Outcome, Failure> {
    let threads = threads(args.jobs)?;
    if args.blocks {
        return blocks(args, threads);
    }
    let options = DiffOptions { partition: args.partition, times: args.times, threads };
    let found = diff(&args.from, &args.to, options)?;
    found.notes.iter().for_each(|note| emit(&Event::Note { path: None, note: note.clone() }));
    if args.json { files::print_json(&found) } else { files::show(&found.to_string()) }?;
    if found.is_empty() {
        return Ok(Outcome::Clean);
    }
    emit_message(&found.summary());
    Ok(Outcome::Findings)
}

fn blocks(args: &DiffArgs, threads: NonZeroUsize) -> Result<Outcome, Failure> {
    let found = diff_blocks(&args.from, &args.to, args.partition, threads)?;
    found.notes.iter().for_each(|note| emit(&Event::Note { path: None, note: note.clone() }));
    if args.json { files::print_json(&found) } else { files::show(&found.to_string()) }?;
    Ok(if found.is_empty() { Outcome::Clean } else { Outcome::Findings })
}
