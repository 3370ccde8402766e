//! `vmbake delta` and `vmbake apply`: deltas between releases.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::catalog::{CatalogArgs, TrustArgs};
use super::key::KeySource;
use super::verify::signers::{RootArgs, SignerArgs};
use super::{Failure, Outcome, READABLE, files, format_parser, threads};
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress};
use vmbake_disk::image::Format;
use vmbake_release::delta::apply::{ApplyRequest, apply};
use vmbake_release::delta::create::{Delta, DeltaRequest, create};
use vmbake_store::store::Store;

const DELTA_EXAMPLES: &str = "\
Examples:
  vmbake delta before/node.debian-13.amd64.raw dist/node.debian-13.amd64.raw -o node.delta --key release.key
  vmbake delta before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2 -o node.delta --json";

#[derive(Debug, Args)]
#[command(after_help = DELTA_EXAMPLES)]
pub(super) struct DeltaArgs {
    #[arg(help = format!("Old disk image, {READABLE}"))]
    old: PathBuf,
    #[arg(help = format!("New disk image, {READABLE}"))]
    new: PathBuf,
    /// Delta to write: a qcow2 file with OLD as its backing file; FILE.json is its statement
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Sign FILE.json with this private key: PKCS#8 PEM, cosign.key with $COSIGN_PASSWORD, or env://NAME for an environment variable
    #[arg(long, value_name = "KEY")]
    key: Option<KeySource>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print the statement FILE.json
    #[arg(long)]
    json: bool,
    /// Artifact store, whose bake records speed up the comparison [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

const APPLY_EXAMPLES: &str = "\
Examples:
  vmbake apply node.delta --base node.debian-13.amd64.raw -o new/node.debian-13.amd64.raw --key release.pub
  vmbake apply node.delta --base node.debian-13.amd64.qcow2 -o node.raw --format raw";

#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub(super) struct ApplyArgs {
    /// Delta, with its statement DELTA.json next to it
    delta: PathBuf,
    #[arg(help = format!("Disk image to apply the delta to, {READABLE}"))]
    #[arg(long, value_name = "OLD")]
    base: PathBuf,
    /// Disk image to write
    #[arg(short = 'o', long = "out", value_name = "NEW")]
    out: PathBuf,
    /// Format of the new disk image [default: format of the image that the delta was created from]
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
    #[command(flatten)]
    signers: SignerArgs,
    #[command(flatten)]
    root: RootArgs,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print the statement
    #[arg(long)]
    json: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn delta(args: &DeltaArgs) -> Result<Outcome, Failure> {
    let key = args.key.as_ref().map(KeySource::load).transpose()?;
    let request = DeltaRequest {
        old: &args.old,
        new: &args.new,
        out: &args.out,
        force: args.force,
        key: key.as_ref(),
        store: &Store::open(args.store.clone())?,
        threads: threads(args.jobs)?,
    };
    let Delta { statement, path, bundle } = create(&request, &Progress::new(args.json))?;
    if args.json {
        return files::print_json(&statement);
    }
    let written = [Some(args.out.clone()), Some(path), bundle];
    let line = |path: PathBuf| escape::line(path.display().to_string()) + "\n";
    files::show(&written.into_iter().flatten().map(line).collect::<String>())
}

pub(super) fn apply_delta(args: &ApplyArgs) -> Result<Outcome, Failure> {
    let progress = Progress::new(args.json);
    let signers = args.signers.named()?;
    let request = ApplyRequest {
        delta: &args.delta,
        base: &args.base,
        out: &args.out,
        format: args.format,
        force: args.force,
        signers: &signers,
        root: &args.root.load(&args.trust.load(&args.catalog)?)?,
        now: Timestamp::now(),
        threads: threads(args.jobs)?,
    };
    if signers.is_empty() {
        let note = "the signature was not checked: require one with --key".to_owned();
        progress.emit(Event::Note { path: Some(args.delta.clone()), note });
    }
    let statement = apply(&request, &progress)?;
    if args.json {
        return files::print_json(&statement);
    }
    let digest = statement.result.disk_fsverity;
    files::show(&(escape::line(format!("fsverity:{digest}  {}", args.out.display())) + "\n"))
}
