//! `vmbake podplane`: manifests for the Podplane command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use vmbake_disk::image::ClusterCompression;

use super::{Failure, Outcome, files};
use vmbake_common::atomic_file::{require_other, write_file};
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress};
use vmbake_release::podplane::{self, PodplaneManifest};

const EXAMPLES: &str = "\
Examples:
  vmbake podplane manifest dist/knc.debian-13.amd64.qcow2 --url https://images.example/knc   # then serve dist/ there
  vmbake podplane manifest dist/knd.debian-13.arm64.qcow2 --url http://10.0.2.2:8000 -o knd.json";

#[derive(Debug, Subcommand)]
pub(super) enum PodplaneCommand {
    /// Write a manifest of a baked image for `podplane deps download --vmconfig`
    #[command(after_help = EXAMPLES)]
    Manifest(ManifestOfImageArgs),
}

#[derive(Debug, Args)]
pub(super) struct ManifestOfImageArgs {
    /// Baked qcow2 image, with its manifest next to it
    image: PathBuf,
    /// URL of the directory that serves the image and its manifest
    #[arg(long, value_name = "BASE")]
    url: String,
    /// Output file [default: vmconfig_KIND_OS_ARCH.json next to the image]
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer {
    path: String,
    digest: String,
}

pub(super) fn run(command: PodplaneCommand) -> Result<Outcome, Failure> {
    let PodplaneCommand::Manifest(args) = command;
    let progress = Progress::new(args.json);
    let inputs = podplane::inputs(&args.image);
    let inputs = || inputs.iter().map(PathBuf::as_path);
    // Checked before reading the image, which takes a while.
    args.out.as_deref().map_or(Ok(()), |out| require_other(out, inputs()))?;
    let PodplaneManifest { name, text, compression, is_control_plane } = podplane::manifest(&args.image, &args.url)?;
    let out = args.out.clone().unwrap_or_else(|| args.image.with_file_name(name));
    require_other(&out, inputs())?;
    if compression != ClusterCompression::Zlib {
        let note = "its clusters are compressed with zstd, which podplane does not support, so machines boot through the firmware; use \
                    `vmbake bake --compression zlib`";
        progress.emit(Event::Note { path: Some(args.image.clone()), note: note.to_owned() });
    }
    if !is_control_plane {
        let note = "it has no Netsy, for which `podplane local start` waits: a local cluster requires an image of the kind knc";
        progress.emit(Event::Note { path: Some(args.image.clone()), note: note.to_owned() });
    }
    write_file(&out, text.as_bytes(), args.force)?;
    let digest = Digest::of(text.as_bytes());
    if args.json {
        return files::print_json(&Answer { path: out.display().to_string(), digest: digest.to_string() });
    }
    files::show(&(escape::line(format!("{digest}  {}", out.display())) + "\n"))
}
