//! `vmbake diff`: how two images differ.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, Outcome, files, printable};
use crate::diff::{Options, diff};

#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Disk image, qcow2 or raw
    from: PathBuf,
    /// Disk image to compare it with
    to: PathBuf,
    /// Compare times of modification too
    #[arg(long)]
    times: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Threads [default: all cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

pub(super) fn run(args: &DiffArgs) -> Result<Outcome, Failure> {
    let threads = match args.jobs {
        Some(jobs) => jobs,
        None => std::thread::available_parallelism()?,
    };
    let found = diff(&args.from, &args.to, Options { times: args.times, threads })?;
    found.notes.iter().for_each(|note| eprintln!("note: {}", printable(note)));
    let text = if args.json { serde_json::to_string_pretty(&found)? + "\n" } else { found.to_string() };
    files::print(&text)?;
    if found.is_empty() {
        return Ok(Outcome::Clean);
    }
    eprintln!("{}", found.summary());
    Ok(Outcome::Findings)
}
