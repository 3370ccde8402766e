//! `vmbake pull`: pulls a release from a registry.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::catalog::{CatalogArgs, TrustArgs};
use super::network::RegistryArgs;
use super::verify::signers::{RootArgs, SignerArgs};
use super::{Failure, Outcome, files, format_parser};
use vmbake_common::escape;
use vmbake_common::progress::{Progress, emit_message, human_bytes};
use vmbake_disk::image::Format;
use vmbake_oci::RemoteName;
use vmbake_release::pull::{PullReport, PullRequest, SeenReleases, pull};
use vmbake_store::registry::Access;
use vmbake_store::store::Store;

const EXAMPLES: &str = "\
Examples:
  vmbake pull ghcr.io/example/node:1.0 --key release.pub --out images
  vmbake pull ghcr.io/example/node:1.1 --key release.pub --out images --from images/node.debian-13.amd64.raw
  vmbake pull localhost:5000/node:test --allow-unsigned --format qcow2";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PullArgs {
    /// Release: HOST/NAME:TAG, HOST/NAME@DIGEST, or both
    #[arg(value_name = "REF")]
    reference: RemoteName,
    /// Architecture [default: the only one in the release, or this machine's]
    #[arg(long)]
    arch: Option<String>,
    /// Image format [default: raw, if available]
    #[arg(long, value_parser = format_parser())]
    format: Option<Format>,
    #[command(flatten)]
    signers: SignerArgs,
    /// Accept an unsigned release (insecure: trusts the registry)
    #[arg(long, conflicts_with_all = ["key", "certificate_identity"])]
    allow_unsigned: bool,
    /// Required name in the signed index [default: the repository without the host]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Allow a version older than the newest one pulled from this reference
    #[arg(long)]
    allow_downgrade: bool,
    /// Directory that records the newest version of each reference [default: $XDG_STATE_HOME/vmbake/releases]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Reuse unchanged data of an older raw image
    #[arg(long, value_name = "OLD")]
    from: Option<PathBuf>,
    /// Output directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Number of concurrent downloads
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Artifact store, which holds a partial qcow2 download [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn run(args: &PullArgs) -> Result<Outcome, Failure> {
    let root = args.root.load(&args.trust.load(&args.catalog)?)?;
    let repository = args.registry.repository(&args.reference.repository, Access::Pull)?;
    let bar = Progress::new(args.json).counter("pulling");
    let request = PullRequest {
        repository: &repository,
        reference: &args.reference,
        arch: args.arch.as_deref(),
        format: args.format,
        signers: &args.signers.named()?,
        allow_unsigned: args.allow_unsigned,
        name: args.name.as_deref(),
        seen: &SeenReleases::open(args.state.clone()),
        allow_downgrade: args.allow_downgrade,
        root: &root,
        now: Timestamp::now(),
        from: args.from.as_deref(),
        out: &args.out,
        force: args.force,
        store: &Store::open(args.store.clone())?,
        threads: args.jobs,
        progress: &|bytes| bar.inc(bytes),
    };
    let report = pull(&request)?;
    bar.finish_and_clear();
    if args.json {
        return files::print_json(&report);
    }
    if report.version.is_none() && args.reference.digest.is_none() {
        emit_message("the release has no version: rollbacks to older releases cannot be detected");
    }
    emit_message(&summary(&report));
    let lines = report.files.iter().chain([&report.image]).map(|path| escape::line(path.display().to_string()) + "\n");
    files::show(&lines.collect::<String>())
}

fn summary(report: &PullReport) -> String {
    let by = match report.signed_by.is_empty() {
        true => "signature not checked".to_owned(),
        false => format!("signed by {}", report.signed_by.join(", ")),
    };
    let (downloaded, reused) = (human_bytes(report.downloaded_bytes), human_bytes(report.reused_bytes));
    escape::line(format!("{}, {by}; {downloaded} downloaded, {reused} of the disk reused", report.digest))
}
