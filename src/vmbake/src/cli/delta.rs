//! `vmbake delta` and `vmbake apply`: from one release to the next.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::catalog::{CatalogArgs, TrustArgs};
use super::key::KeySource;
use super::verify::signers::{RootArgs, SignerArgs};
use super::{Failure, Outcome, files, format_parser, threads};
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress};
use vmbake_disk::image::Format;
use vmbake_distribute::delta::apply::{ApplyRequest, apply};
use vmbake_distribute::delta::create::{Delta, DeltaRequest, create};
use vmbake_store::store::Store;

const DELTA_EXAMPLES: &str = "\
Examples:
  vmbake delta before/node.debian-13.amd64.raw dist/node.debian-13.amd64.raw -o node.delta --key release.key
  vmbake delta before/node.debian-13.amd64.qcow2 dist/node.debian-13.amd64.qcow2 -o node.delta --json";

#[derive(Debug, Args)]
#[command(after_help = DELTA_EXAMPLES)]
pub(super) struct DeltaArgs {
    /// Disk image that sites have, qcow2 or raw
    old: PathBuf,
    /// Disk image that they are to get, qcow2 or raw
    new: PathBuf,
    /// The delta, a qcow2 file on top of OLD; FILE.json says what belongs to it
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Sign FILE.json with this private key: PKCS#8 PEM, cosign.key with $COSIGN_PASSWORD, or env://NAME for a variable that holds one
    #[arg(long, value_name = "KEY")]
    key: Option<KeySource>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print what FILE.json says
    #[arg(long)]
    json: bool,
    /// Store, whose records of bakes save reading [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Threads [default: all cores]
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
    /// What `vmbake delta` wrote; its statement is beside it
    delta: PathBuf,
    /// Disk image that the delta is for, qcow2 or raw
    #[arg(long, value_name = "OLD")]
    base: PathBuf,
    /// The new disk image
    #[arg(short = 'o', long = "out", value_name = "NEW")]
    out: PathBuf,
    /// Format of the new disk image [default: that of the image that the delta was made of]
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
    #[command(flatten)]
    signers: SignerArgs,
    #[command(flatten)]
    root: RootArgs,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print what the statement says
    #[arg(long)]
    json: bool,
    /// Threads [default: all cores]
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
        let note = "whether it is signed was not asked: --key says who must have".to_owned();
        progress.tell(Event::Note { path: Some(args.delta.clone()), note });
    }
    let statement = apply(&request, &progress)?;
    if args.json {
        return files::print_json(&statement);
    }
    let digest = statement.result.disk_fsverity;
    files::show(&(escape::line(format!("fsverity:{digest}  {}", args.out.display())) + "\n"))
}
