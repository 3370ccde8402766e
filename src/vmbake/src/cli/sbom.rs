//! `vmbake sbom`: the SBOM of an image.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Failure, Outcome, READABLE, files, threads};
use vmbake_common::progress::{Event, emit};
use vmbake_query::sbom::{Inventory, SbomFormat};

const EXAMPLES: &str = "\
Examples:
  vmbake sbom dist/node.debian-13.amd64.qcow2 > node.spdx.json
  vmbake sbom debian-13-genericcloud-amd64.qcow2 --format cyclonedx-1.6 > debian.cdx.json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SbomArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Format of the SBOM
    #[arg(long, default_value = "spdx-2.3")]
    format: Form,
    /// Include every regular file with its digests
    #[arg(long)]
    files: bool,
    /// Number of threads that read files [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N", requires = "files")]
    jobs: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    #[value(name = "spdx-2.3")]
    Spdx,
    #[value(name = "cyclonedx-1.6")]
    CycloneDx,
}

pub(super) fn run(args: &SbomArgs) -> Result<Outcome, Failure> {
    let threads = threads(args.jobs)?;
    let inventory = Inventory::of_image(&args.image, args.partition, args.files.then_some(threads))?;
    for note in &inventory.notes {
        emit(&Event::Note { path: Some(args.image.clone()), note: note.clone() });
    }
    let format = match args.format {
        Form::Spdx => SbomFormat::Spdx,
        Form::CycloneDx => SbomFormat::CycloneDx,
    };
    files::print(&inventory.text(format)?)
}
