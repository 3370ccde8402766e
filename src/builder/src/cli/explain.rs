//! `vmbake explain`: where a path of an image came from.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, Outcome, files};
use crate::origin::explain;

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Disk image, qcow2 or raw
    image: PathBuf,
    /// Path in the root file system; symbolic links are followed inside the image
    path: PathBuf,
    /// Record of origins to go by, instead of the one inside the image
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    let explanation = explain(&args.image, args.path.as_os_str().as_bytes(), args.record.as_deref())?;
    let text = if args.json { serde_json::to_string_pretty(&explanation)? + "\n" } else { explanation.to_string() };
    files::print(&text)
}
