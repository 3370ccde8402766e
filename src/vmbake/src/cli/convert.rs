//! `vmbake convert`: converts disk images.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use super::{Compression, Failure, Outcome, READABLE, files, threads};
use vmbake_common::escape;
use vmbake_common::progress::Progress;
use vmbake_disk::image::Format;
use vmbake_publish::convert::{ConvertRequest, ConvertedFormat, convert};

const EXAMPLES: &str = "\
Examples:
  vmbake convert dist/node.debian-13.amd64.qcow2 --format gce -o node.tar.gz     # for gcloud compute images create
  vmbake convert dist/node.debian-13.amd64.raw --format vhd -o node.vhd          # for an Azure page blob
  vmbake convert dist/node.debian-13.amd64.qcow2 --format raw -o node.raw --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConvertArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// Format of the output file
    #[arg(long, value_parser = format_parser())]
    format: ConvertedFormat,
    /// Compression method, with --format qcow2 [default: zstd]
    #[arg(long, value_name = "NAME")]
    compression: Option<Compression>,
    /// Output file
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

fn format_parser() -> impl TypedValueParser<Value = ConvertedFormat> {
    let value = |format: ConvertedFormat| PossibleValue::new(format.name()).help(format.purpose());
    PossibleValuesParser::new(ConvertedFormat::all().map(value))
        .try_map(|name| ConvertedFormat::all().find(|format| format.name() == name).ok_or("unknown format"))
}

/// Output of `--json`. Lengths are in bytes.
#[derive(Debug, Serialize)]
struct Answer {
    path: String,
    format: String,
    disk_bytes: u64,
    file_bytes: u64,
    checksum: String,
}

pub(super) fn run(args: &ConvertArgs) -> Result<Outcome, Failure> {
    let ConvertArgs { image, out, force, format, .. } = args;
    let format = *format;
    if args.compression.is_some() && format != ConvertedFormat::Disk(Format::Qcow2) {
        return Err("--compression requires --format qcow2".into());
    }
    let compression = args.compression.map(Into::into).unwrap_or_default();
    let request = ConvertRequest { image, format, compression, out, force: *force, threads: threads(args.jobs)? };
    let done = convert(&request, &Progress::new(args.json))?;
    if args.json {
        return files::print_json(&Answer {
            path: out.display().to_string(),
            format: format.to_string(),
            disk_bytes: done.disk_len,
            file_bytes: done.file_len,
            checksum: done.checksum.to_string(),
        });
    }
    files::show(&(escape::line(format!("{}  {}", done.checksum, out.display())) + "\n"))
}
