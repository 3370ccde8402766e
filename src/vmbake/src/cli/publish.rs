//! `vmbake publish`: publishes images to a cloud.

mod gc;
mod kind;
mod values;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::catalog::{CatalogArgs, TrustArgs};
use super::network::NetworkArgs;
use super::verify::image::{DemandArgs, place};
use super::verify::signers::RootArgs;
use super::{Failure, Outcome, files, threads};
use vmbake_aws::ami::request::{ParentChoice, PublishRequest, Verification};
use vmbake_aws::ami::source::DiskSource;
use vmbake_aws::ami::{PublishContext, PublishReport, plan, publish};
use vmbake_aws::{Aws, LaunchPermission, Settings};
use vmbake_bake::release::verify::{VerifyRequest, verify};
use vmbake_bake::{BakedDisk, bake_disk};
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{Progress, counted, emit_message};
use vmbake_distribute::bundle::compose::Composition;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

/// Maximum number of AWS tags, less those that vmbake sets.
const MAX_TAGS: usize = 40;
/// Error of a publication.
#[derive(Debug, thiserror::Error)]
pub(super) enum PublishCommandError {
    #[error("{what}; not confirmed, since stdin is not a terminal")]
    Unattended { what: &'static str },
    #[error("{what}: not confirmed")]
    Declined { what: &'static str },
    #[error("--tag {key}: {reason}")]
    Tag { key: String, reason: String },
    #[error("{image}: the release does not meet the requirements:\n{report}")]
    Unverified { image: String, report: String },
}

impl Hint for PublishCommandError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Tag { .. } => "remove one tag",
            Self::Unattended { .. } => "confirm with --yes",
            Self::Declined { .. } => "answer y to confirm",
            Self::Unverified { .. } => "`vmbake verify image` shows the checks of the release",
        };
        Some(text.to_owned())
    }
}

const AWS_EXAMPLES: &str = "\
Examples:
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --dry-run
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --region eu-central-1 --copy-to us-east-1,eu-west-1
  vmbake publish aws dist/node.debian-13.amd64.qcow2 --key release.pub --launch-permission 123456789012 \\
      --ssm-parameter /images/node/latest --json";

#[derive(Debug, Subcommand)]
pub(super) enum PublishCommand {
    /// Create a machine image (AMI) from a disk image with the EBS direct APIs; existing resources are reused
    #[command(after_help = AWS_EXAMPLES)]
    Aws(Box<AwsArgs>),
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct AwsArgs {
    #[command(subcommand)]
    command: Option<AwsCommand>,
    /// Disk image, qcow2 or raw
    #[arg(value_name = "IMAGE", required_unless_present = "kind")]
    image: Option<PathBuf>,
    #[command(flatten)]
    kind: kind::KindArgs,
    /// Number of the root partition, if it is ambiguous
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Name of the machine image [default: FAMILY-VERSION-ARCHITECTURE]
    #[arg(long)]
    name: Option<String>,
    /// Family of the image, recorded as a tag [default: IMAGE_ID of os-release]
    #[arg(long)]
    family: Option<String>,
    /// Tag for the machine image and its snapshot; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = values::tag)]
    tags: Vec<(String, String)>,
    /// Regions to copy the machine image to
    #[arg(long, value_name = "REGION", value_delimiter = ',')]
    copy_to: Vec<String>,
    /// KMS key that encrypts the snapshot: ID, alias or ARN [default: the account's setting]
    #[arg(long, value_name = "KEY")]
    kms_key: Option<String>,
    /// Boot mode: auto, legacy-bios, uefi or uefi-preferred
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = values::boot_mode)]
    boot_mode: values::Auto,
    /// Enable a virtual TPM; requires UEFI
    #[arg(long)]
    tpm: bool,
    /// Version of the instance metadata service: v2.0 (required) or optional
    #[arg(long, value_name = "VERSION", default_value = "v2.0", value_parser = ["v2.0", "optional"])]
    imds: String,
    /// Volume type
    #[arg(long, value_name = "TYPE", default_value = "gp3", value_parser = ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"])]
    volume_type: String,
    /// Parent of the snapshot, so that only changed blocks are uploaded: auto (newest of the family with known
    /// blocks), none or an ID
    #[arg(long, value_name = "ID", default_value = "auto", value_parser = values::parent)]
    parent: ParentChoice,
    /// Image of the parent snapshot, if the store lacks its block list
    #[arg(long, value_name = "OLD")]
    parent_image: Option<PathBuf>,
    /// Grant launch permission: account ID, ARN of an organization or organizational unit, or public; may be repeated
    #[arg(long = "launch-permission", value_name = "PRINCIPAL", value_parser = values::permission)]
    permissions: Vec<LaunchPermission>,
    /// Deprecation time, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = super::verify::time)]
    deprecate_at: Option<Timestamp>,
    /// Systems Manager parameter to set to the machine image of each region; may be repeated
    #[arg(long = "ssm-parameter", value_name = "NAME", value_parser = values::parameter)]
    parameters: Vec<String>,
    /// Verification of the snapshot before registration: index (list of blocks), sample (also 64 blocks) or full (also all blocks)
    #[arg(long, value_name = "MODE", default_value = "sample", value_parser = values::verification)]
    verify: Verification,
    /// Number of concurrent block uploads
    #[arg(long, value_name = "N", default_value = "64")]
    workers: NonZeroUsize,
    #[command(flatten)]
    demands: DemandArgs,
    #[command(flatten)]
    root: RootArgs,
    /// Check everything, and show pending uploads without changing anything
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not prompt before making an image public
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Number of threads that read the image [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    account: AccountArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// AWS account and region.
#[derive(Debug, Args)]
struct AccountArgs {
    /// AWS region [default: from the AWS configuration]
    #[arg(long)]
    region: Option<String>,
    /// AWS profile
    #[arg(long)]
    profile: Option<String>,
    /// Endpoint URL to use instead of AWS
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Allow plain HTTP endpoints on other hosts (insecure: the network can read and modify uploads)
    #[arg(long)]
    allow_http: bool,
}

const AWS_GC_EXAMPLES: &str = "\
Examples:
  vmbake publish aws gc --family node --keep 5 --dry-run
  vmbake publish aws gc --family node --keep 5 --region eu-central-1 --yes";

#[derive(Debug, Subcommand)]
enum AwsCommand {
    /// Remove old machine images of a family and their snapshots, except public, shared and used ones
    #[command(after_help = AWS_GC_EXAMPLES)]
    Gc(gc::GcArgs),
}

pub(super) fn run(what: &PublishCommand) -> Result<Outcome, Failure> {
    let PublishCommand::Aws(args) = what;
    match &args.command {
        Some(AwsCommand::Gc(args)) => gc::collect(args),
        None => args.run(),
    }
}

impl AwsArgs {
    fn run(&self) -> Result<Outcome, Failure> {
        self.check_tags()?;
        let source = self.image.as_deref().map(DiskSource::open).transpose()?;
        let (store, sources) = (self.network.store()?, self.network.sources(&self.catalog)?);
        if let Some(image) = &self.image {
            self.verify_release(image, &store, &sources)?;
        }
        let public = "the image becomes public";
        if self.permissions.contains(&LaunchPermission::Group) && !self.dry_run && !self.yes {
            confirm(public)?;
        }
        let aws = self.account.open(&self.network)?;
        let progress = Progress::new(self.json);
        // The inputs stay locked in the store until the image is published.
        let _shared = store.share_if_writable()?;
        let (source, _composition) = match source {
            Some(source) => (source, None),
            None => self.bake(&progress)?,
        };
        let publisher = PublishContext { aws: &aws, store: store.root(), progress: &progress };
        let request = PublishRequest {
            source: &source,
            partition: self.partition,
            name: self.name.clone(),
            family: self.family.clone(),
            boot_mode: self.boot_mode.0,
            tpm: self.tpm,
            imds_v2: self.imds == "v2.0",
            volume_type: &self.volume_type,
            kms_key: self.kms_key.as_deref(),
            tags: &self.tags,
            parent: &self.parent,
            parent_image: self.parent_image.as_ref(),
            copies: &self.copy_to,
            permissions: &self.permissions,
            deprecate_at: self.deprecate_at,
            parameters: &self.parameters,
            verification: self.verify,
            workers: self.workers,
            threads: threads(self.jobs)?,
        };
        let report = if self.dry_run { plan(&publisher, &request)? } else { publish(&publisher, &request)? };
        self.show(&report)
    }

    /// The baked disk of the kind, not written to a file. The directories of bundle layers must exist until the end.
    fn bake(&self, progress: &Progress) -> Result<(DiskSource, Option<Composition>), Failure> {
        let (request, composition) =
            self.kind.request(&self.network, &self.trust, &self.catalog, self.partition, self.jobs, !self.dry_run)?;
        let BakedDisk { name, disk, sidecars } = bake_disk(request, progress)?;
        if let Some(composition) = composition.as_ref().filter(|_| !self.dry_run) {
            composition.save_lock()?;
        }
        Ok((DiskSource::baked(&name, disk, &sidecars), composition))
    }

    /// Verifies the release of the image, if options require it.
    fn verify_release(&self, image: &Path, store: &Store, sources: &Sources) -> Result<(), Failure> {
        if self.demands.is_empty() {
            return Ok(());
        }
        let (folder, name) = place(image)?;
        let (policy, signatures) = self.demands.load()?;
        let anchors = self.trust.load(&self.catalog)?;
        let root = self.root.load(&anchors)?;
        let (now, threads) = (Timestamp::now(), threads(self.jobs)?);
        let request = VerifyRequest {
            folder,
            image: name,
            signatures,
            policy,
            root: &root,
            store,
            sources,
            anchors: &anchors,
            now,
            threads,
        };
        let report = verify(&request).report;
        match report.is_ok() {
            true => Ok(()),
            false => {
                let (image, report) = (image.display().to_string(), report.to_string());
                Err(PublishCommandError::Unverified { image, report }.into())
            }
        }
    }

    /// Checks that clap cannot express.
    fn check_tags(&self) -> Result<(), PublishCommandError> {
        let mut keys = BTreeSet::new();
        for (key, _) in &self.tags {
            let refused = |reason: String| PublishCommandError::Tag { key: key.clone(), reason };
            if !keys.insert(key) {
                return Err(refused("duplicate tag".to_owned()));
            }
            if keys.len() > MAX_TAGS {
                return Err(refused(format!("more than {MAX_TAGS} tags")));
            }
        }
        Ok(())
    }

    fn show(&self, report: &PublishReport) -> Result<Outcome, Failure> {
        if self.json {
            return files::print_json(report);
        }
        let summary = match (&report.image_id, self.dry_run) {
            (Some(id), _) if report.reused => format!("{id} exists; {}", counted(report.changes as u64, "change")),
            (_, true) => report.estimate(),
            _ => format!("{}, {} verified", report.disk_digest, counted(report.blocks_verified, "block")),
        };
        emit_message(&escape::line(summary));
        let first = report.image_id.iter().map(|id| (&report.region, id));
        files::show(&first.chain(&report.copies).map(|(region, id)| format!("{region}  {id}\n")).collect::<String>())
    }
}

impl AccountArgs {
    fn open(&self, network: &NetworkArgs) -> Result<Aws, Failure> {
        let settings = Settings {
            region: self.region.clone(),
            profile: self.profile.clone(),
            endpoint_url: self.endpoint_url.clone(),
            allow_http: self.allow_http,
        };
        Ok(Aws::open(&network.direct_client()?, &settings)?)
    }
}

/// Prompts on the terminal. An empty answer means no.
fn confirm(what: &'static str) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(PublishCommandError::Unattended { what }.into());
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{what}. Continue? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(PublishCommandError::Declined { what }.into()),
    }
}
