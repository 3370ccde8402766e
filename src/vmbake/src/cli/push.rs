//! `vmbake push`: pushes a release to a registry.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::key::KeySource;
use super::network::RegistryArgs;
use super::{Failure, Outcome, files};
use vmbake_common::escape;
use vmbake_common::progress::{Progress, emit_message, human_bytes};
use vmbake_oci::{RemoteName, is_tag};
use vmbake_release::ReleaseFolder;
use vmbake_release::binding::ReleaseBinding;
use vmbake_release::push::{PushReport, PushRequest, plan, push};
use vmbake_release::version::Version;
use vmbake_store::registry::Access;

const EXAMPLES: &str = "\
Examples:
  vmbake push dist/node.debian-13.amd64.raw ghcr.io/example/node:1.0
  vmbake push dist/node.debian-13.{amd64,arm64}.raw ghcr.io/example/node:1.0 --tag latest --key release.key
  vmbake push dist/node.debian-13.amd64.raw localhost:5000/node:test --dry-run --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PushArgs {
    /// Baked images, one per architecture and format; the documents next to them are included
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<PathBuf>,
    /// Destination: HOST/NAME or HOST/NAME:TAG
    #[arg(value_name = "REF", value_parser = reference)]
    reference: RemoteName,
    /// Additional tag; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = tag)]
    tags: Vec<String>,
    /// Version to record in the signed index, such as 1.4.2 [default: the tag of REF, if it is a version]
    #[arg(long, value_name = "VERSION")]
    release_version: Option<Version>,
    /// Additional file to attach to the release; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Sign the index with this private key: PKCS#8 PEM, cosign.key with $COSIGN_PASSWORD, or env://NAME
    #[arg(long, value_name = "KEY")]
    key: Option<KeySource>,
    /// Move existing tags
    #[arg(long)]
    force: bool,
    /// Show what would be pushed, without network access
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Number of concurrent chunk uploads
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

fn reference(text: &str) -> Result<RemoteName, String> {
    match text.parse() {
        Ok(RemoteName { digest: Some(_), .. }) => {
            Err("the destination must not have a digest: use HOST/NAME or HOST/NAME:TAG".to_owned())
        }
        Ok(name) => Ok(name),
        Err(error) => Err(error.to_string()),
    }
}

fn tag(text: &str) -> Result<String, &'static str> {
    if is_tag(text) { Ok(text.to_owned()) } else { Err("expected at most 128 letters, digits, ., - and _") }
}

pub(super) fn run(args: &PushArgs) -> Result<Outcome, Failure> {
    let key = args.key.as_ref().map(KeySource::load).transpose()?;
    let folder = ReleaseFolder::read(&args.images)?;
    let mut tags: Vec<String> = args.reference.tag.iter().chain(&args.tags).cloned().collect();
    tags.sort();
    tags.dedup();
    let bar = Progress::new(args.json).counter("pushing");
    let binding = ReleaseBinding::of(&args.reference, args.release_version.as_ref());
    let request = PushRequest {
        folder: &folder,
        binding: &binding,
        attach: &args.attach,
        tags: &tags,
        force: args.force,
        key: key.as_ref(),
        threads: args.jobs,
        progress: &|bytes| bar.inc(bytes),
    };
    let report = match args.dry_run {
        true => plan(&request)?.1,
        false => push(&request, &args.registry.repository(&args.reference.repository, Access::Push)?)?,
    };
    bar.finish_and_clear();
    if args.json {
        return files::print_json(&report);
    }
    if binding.version.is_none() {
        emit_message(
            "the release has no version, so `vmbake pull` cannot detect rollbacks: set it with --release-version",
        );
    }
    emit_message(&summary(&report, args.dry_run));
    let name = &args.reference.repository;
    let lines = report.tags.iter().map(|tag| format!("{name}:{tag}@{}\n", report.digest));
    let text: String = lines.collect();
    files::show(&if text.is_empty() { format!("{name}@{}\n", report.digest) } else { text })
}

fn summary(report: &PushReport, is_plan: bool) -> String {
    let PushReport { sent, sent_bytes, reused, reused_bytes, attached, .. } = report;
    let attached = escape::line(attached.join(", "));
    let sent = format!("{sent} blobs, {}", human_bytes(*sent_bytes));
    match is_plan {
        true => format!("would send at most {sent}, and attach {attached}"),
        false => {
            format!("sent {sent}; {reused} blobs, {}, already present; attached {attached}", human_bytes(*reused_bytes))
        }
    }
}
