//! `vmbake publish`: publishes images to a cloud.

#[cfg(feature = "aws")]
mod aws;
mod gc;
mod kind;

use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::catalog::{CatalogArgs, TrustArgs};
use super::network::NetworkArgs;
use super::verify::image::{DemandArgs, place};
use super::verify::signers::RootArgs;
use super::{Failure, Outcome, READABLE, files, threads};
use vmbake_bake::release::verify::{VerifyRequest, verify};
use vmbake_bake::{BakedDisk, bake_disk};
use vmbake_bundle::compose::Composition;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{Progress, emit_message};
use vmbake_pin::sources::Sources;
use vmbake_publish::source::DiskSource;
use vmbake_publish::{PublishReport, PublishRequest, Publisher};
use vmbake_store::store::Store;

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

#[derive(Debug, Subcommand)]
pub(super) enum PublishCommand {
    /// Create a machine image (AMI) from a disk image with the EBS direct APIs; existing resources are reused
    #[cfg(feature = "aws")]
    #[command(after_help = aws::EXAMPLES)]
    Aws(Box<aws::AwsArgs>),
}

/// The image to publish.
#[derive(Debug, Args)]
struct ImageArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
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
}

/// How an image is published to any cloud.
#[derive(Debug, Args)]
struct PublishArgs<A: Account> {
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
    account: A,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// Options that select an account of a cloud.
trait Account: Args {
    type Cloud: Publisher;

    fn open(&self, network: &NetworkArgs) -> Result<Self::Cloud, Failure>;
}

pub(super) fn run(what: &PublishCommand) -> Result<Outcome, Failure> {
    match what {
        #[cfg(feature = "aws")]
        PublishCommand::Aws(args) => args.run(),
    }
}

impl<A: Account> PublishArgs<A> {
    fn run(
        &self,
        image: &ImageArgs,
        options: &<A::Cloud as Publisher>::Options<'_>,
        is_public: bool,
    ) -> Result<Outcome, Failure> {
        let source = image.image.as_deref().map(DiskSource::open).transpose()?;
        let (store, sources) = (self.network.store()?, self.network.sources(&self.catalog)?);
        if let Some(image) = &image.image {
            self.verify_release(image, &store, &sources)?;
        }
        if is_public && !self.dry_run && !self.yes {
            confirm("the image becomes public")?;
        }
        let cloud = self.account.open(&self.network)?;
        let progress = Progress::new(self.json);
        // The inputs stay locked in the store until the image is published.
        let _shared = store.share_if_writable()?;
        let (source, _composition) = match source {
            Some(source) => (source, None),
            None => self.bake(image, &progress)?,
        };
        let request = PublishRequest {
            source: &source,
            partition: image.partition,
            name: image.name.as_deref(),
            family: image.family.as_deref(),
            store: store.root(),
            threads: threads(self.jobs)?,
            progress: &progress,
        };
        let report = if self.dry_run { cloud.plan(&request, options)? } else { cloud.publish(&request, options)? };
        if self.json {
            return files::print_json(&report);
        }
        emit_message(&escape::line(report.summary()));
        files::show(&report.images().iter().map(|(region, id)| format!("{region}  {id}\n")).collect::<String>())
    }

    /// The baked disk of the kind, not written to a file. The directories of bundle layers must exist until the end.
    fn bake(&self, image: &ImageArgs, progress: &Progress) -> Result<(DiskSource, Option<Composition>), Failure> {
        let ImageArgs { kind, partition, .. } = image;
        let (request, composition) =
            kind.request(&self.network, &self.trust, &self.catalog, *partition, self.jobs, !self.dry_run)?;
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
