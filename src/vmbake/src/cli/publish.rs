//! `vmbake publish`: an image to a cloud.

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
use vmbake_common::progress::{Progress, counted, remark};
use vmbake_distribute::bundle::compose::Composition;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

/// Most tags that AWS takes, less those of vmbake.
const MAX_TAGS: usize = 40;
/// Why something was not published.
#[derive(Debug, thiserror::Error)]
pub(super) enum PublishCommandError {
    #[error("{what}, but nobody can be asked here: nothing was done")]
    Unattended { what: &'static str },
    #[error("{what}: not confirmed, nothing was done")]
    Declined { what: &'static str },
    #[error("--tag {key}: {reason}")]
    Tag { key: String, reason: String },
    #[error("{image}: the release is not what was demanded:\n{report}")]
    Unverified { image: String, report: String },
}

impl Hint for PublishCommandError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Tag { .. } => "leave one out",
            Self::Unattended { .. } => "--yes says that it is meant",
            Self::Declined { .. } => "answer y",
            Self::Unverified { .. } => "`vmbake verify image` looks at the release alone",
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
    /// Make a machine image (AMI) of a disk image, by the EBS direct APIs; what is there already is not made again
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
    /// Number of the root partition, where more than one could be
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Name of the machine image [default: FAMILY-VERSION-ARCHITECTURE]
    #[arg(long)]
    name: Option<String>,
    /// What the releases of this image have in common: a tag [default: IMAGE_ID of os-release]
    #[arg(long)]
    family: Option<String>,
    /// A tag of the machine image and its snapshot; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = values::tag)]
    tags: Vec<(String, String)>,
    /// Regions that get a copy
    #[arg(long, value_name = "REGION", value_delimiter = ',')]
    copy_to: Vec<String>,
    /// Encrypt the snapshot with this key: id, alias or ARN [default: as the account says]
    #[arg(long, value_name = "KEY")]
    kms_key: Option<String>,
    /// auto, legacy-bios, uefi or uefi-preferred
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = values::boot_mode)]
    boot_mode: values::Auto,
    /// Give machines a TPM; they start by UEFI then
    #[arg(long)]
    tpm: bool,
    /// v2.0 (metadata of instances by sessions only) or optional
    #[arg(long, value_name = "VERSION", default_value = "v2.0", value_parser = ["v2.0", "optional"])]
    imds: String,
    /// Type of the volumes of machines
    #[arg(long, value_name = "TYPE", default_value = "gp3", value_parser = ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"])]
    volume_type: String,
    /// Snapshot that the new one begins as, so that only what differs is sent: auto (the newest of the family whose blocks are
    /// known), none or an id
    #[arg(long, value_name = "ID", default_value = "auto", value_parser = values::parent)]
    parent: ParentChoice,
    /// The image that the parent was made of, where the store does not know its blocks
    #[arg(long, value_name = "OLD")]
    parent_image: Option<PathBuf>,
    /// Who may start machines: an account, the ARN of an organization or of a unit of one, or public; may be repeated
    #[arg(long = "launch-permission", value_name = "WHO", value_parser = values::permission)]
    permissions: Vec<LaunchPermission>,
    /// When it is deprecated, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = super::verify::time)]
    deprecate_at: Option<Timestamp>,
    /// Parameter of Systems Manager that names the machine image of its region in the end; may be repeated
    #[arg(long = "ssm-parameter", value_name = "NAME", value_parser = values::parameter)]
    parameters: Vec<String>,
    /// What is compared before the registration: index (which blocks there are), sample (and 64 of them) or full (and all of them)
    #[arg(long, value_name = "HOW", default_value = "sample", value_parser = values::verification)]
    verify: Verification,
    /// Blocks that are on their way at the same time
    #[arg(long, value_name = "N", default_value = "64")]
    workers: NonZeroUsize,
    #[command(flatten)]
    demands: DemandArgs,
    #[command(flatten)]
    root: RootArgs,
    /// Check everything, tell what would be sent, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not ask before an image becomes public
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Threads that read the image [default: all cores]
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

/// Which account of AWS, and where.
#[derive(Debug, Args)]
struct AccountArgs {
    /// Region [default: that of the AWS configuration]
    #[arg(long)]
    region: Option<String>,
    /// Profile of the AWS configuration
    #[arg(long)]
    profile: Option<String>,
    /// Ask this address in place of AWS
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
    /// Allow plain HTTP endpoints on other machines; the network can then read and change what is published
    #[arg(long)]
    allow_http: bool,
}

const AWS_GC_EXAMPLES: &str = "\
Examples:
  vmbake publish aws gc --family node --keep 5 --dry-run
  vmbake publish aws gc --family node --keep 5 --region eu-central-1 --yes";

#[derive(Debug, Subcommand)]
enum AwsCommand {
    /// Remove old machine images of a family with their snapshots, but none that is public, shared or in use
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
        // What is baked is locked in the store until it is published.
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

    /// The disk of the kind, baked and not written. The folders of the layers of bundles have to be there until the end.
    fn bake(&self, progress: &Progress) -> Result<(DiskSource, Option<Composition>), Failure> {
        let (request, composition) =
            self.kind.request(&self.network, &self.trust, &self.catalog, self.partition, self.jobs, !self.dry_run)?;
        let BakedDisk { name, disk, sidecars } = bake_disk(request, progress)?;
        if let Some(composition) = composition.as_ref().filter(|_| !self.dry_run) {
            composition.save_lock()?;
        }
        Ok((DiskSource::baked(&name, disk, &sidecars), composition))
    }

    /// Verifies the release that the image is of, if anything is demanded of it.
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

    /// What clap cannot say.
    fn check_tags(&self) -> Result<(), PublishCommandError> {
        let mut keys = BTreeSet::new();
        for (key, _) in &self.tags {
            let refused = |reason: String| PublishCommandError::Tag { key: key.clone(), reason };
            if !keys.insert(key) {
                return Err(refused("is there twice".to_owned()));
            }
            if keys.len() > MAX_TAGS {
                return Err(refused(format!("is one more than {MAX_TAGS}")));
            }
        }
        Ok(())
    }

    fn show(&self, report: &PublishReport) -> Result<Outcome, Failure> {
        if self.json {
            return files::print_json(report);
        }
        let summary = match (&report.image_id, self.dry_run) {
            (Some(id), _) if report.reused => format!("{id} is there; {}", counted(report.changes as u64, "change")),
            (_, true) => report.estimate(),
            _ => format!("{}, {} verified", report.disk_digest, counted(report.blocks_verified, "block")),
        };
        remark(&escape::line(summary));
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

/// Asks on the terminal. Silence is no consent.
fn confirm(what: &'static str) -> Result<(), Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(PublishCommandError::Unattended { what }.into());
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "{what}. Go on? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(PublishCommandError::Declined { what }.into()),
    }
}
