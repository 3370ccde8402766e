//! `vmbake bundle`: third-party components.

pub(super) mod inspect;
mod publish;
pub(super) mod selection;
mod upgrade;
#[cfg(feature = "sysext")]
mod sysext;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::key::KeySource;
use super::network::NetworkArgs;
use super::{Failure, Outcome, files};
use vmbake_bundle::contents::BundleContents;
use vmbake_bundle::pack::{PackReport, PackedBundle};
use vmbake_bundle::pins::{PinTools, pin};
use vmbake_bundle::skeleton;
use vmbake_common::escape;
use vmbake_common::progress::{Progress, counted, emit_message, human_bytes};

const INIT_EXAMPLES: &str = "\
Examples:
  vmbake bundle init agent --publisher acme";

const PACK_EXAMPLES: &str = "\
Examples:
  vmbake bundle pack agent -o agent.oci           # from a source directory
  vmbake bundle pack agent -o agent.tar --key acme.key";

#[derive(Debug, Subcommand)]
pub(super) enum BundleCommand {
    /// Create a bundle: write a commented description and layer, and print the next steps
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Pin and verify the artifacts of a bundle, and write it as an OCI image layout
    #[command(after_help = PACK_EXAMPLES)]
    Pack(Box<PackArgs>),
    /// Check a bundle against all rules for its use; exit 1 on a violation
    Check(inspect::CheckArgs),
    /// Show the contents of a bundle, the permissions it requests and its settings
    Inspect(inspect::InspectArgs),
    /// Push a packed bundle and its signature to a registry
    Push(publish::PushArgs),
    /// Verify the signature and integrity of a bundle
    Verify(publish::VerifyArgs),
    /// Show the permissions a bundle requests, and grant them to its publisher
    Trust(publish::TrustBundleArgs),
    /// Show the effects of bundles on an image, without baking; exit 1 if a bundle cannot be used
    Plan(Box<selection::PlanArgs>),
    /// Upgrade the locked bundles of a kind, and show the changes
    Upgrade(Box<upgrade::UpgradeArgs>),
    #[cfg(feature = "sysext")]
    /// Write a bundle as a system extension for running machines (systemd-sysext)
    Sysext(Box<sysext::SysextArgs>),
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Directory of the bundle; its name becomes the bundle's name
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Publisher; names of layers and artifacts start with PUBLISHER and a dot
    #[arg(long, value_name = "NAME", default_value = "example")]
    publisher: String,
}

#[derive(Debug, Args)]
pub(super) struct PackArgs {
    /// Directory of the bundle
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Layout to write: a directory, or a tar file if the name ends in .tar
    #[arg(short = 'o', long = "out", value_name = "OUT")]
    out: PathBuf,
    /// Sign the bundle's index with this private key, as for `vmbake sign`
    #[arg(long, value_name = "KEY")]
    key: Option<KeySource>,
    /// Resolve all artifacts again, not only those missing in pins.json
    #[arg(long)]
    refresh: bool,
    /// Do not use the network: all artifacts must be pinned and in the store
    #[arg(long, conflicts_with = "refresh")]
    offline: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Number of concurrent downloads
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn run(what: BundleCommand) -> Result<Outcome, Failure> {
    match what {
        BundleCommand::Init(args) => init(&args),
        BundleCommand::Pack(args) => pack(&args),
        BundleCommand::Check(args) => inspect::check(&args),
        BundleCommand::Inspect(args) => inspect::inspect(&args),
        BundleCommand::Push(args) => publish::push_bundle(&args),
        BundleCommand::Verify(args) => publish::verify(&args),
        BundleCommand::Trust(args) => publish::trust(&args),
        BundleCommand::Plan(args) => selection::plan(*args),
        BundleCommand::Upgrade(args) => upgrade::run(*args),
        #[cfg(feature = "sysext")]
        BundleCommand::Sysext(args) => sysext::run(&args),
    }
}

fn init(args: &InitArgs) -> Result<Outcome, Failure> {
    for path in skeleton::init(&args.dir, &args.publisher)? {
        emit_message(&format!("{:>9}  {}", "wrote", escape::line(path.display().to_string())));
    }
    let dir = vmbake_disk::image::quoted(&args.dir);
    for (what, command) in [
        ("next", format!("edit {dir}/bundle.json and the layer, then:")),
        ("", format!("vmbake bundle check {dir}")),
        ("", format!("vmbake bundle pack {dir} -o {dir}.oci")),
    ] {
        emit_message(&format!("{what:>9}  {}", escape::line(command)));
    }
    Ok(Outcome::Clean)
}

fn pack(args: &PackArgs) -> Result<Outcome, Failure> {
    let key = args.key.as_ref().map(KeySource::load).transpose()?;
    let contents = BundleContents::of_folder(&args.dir, &args.layers.catalog(&args.catalog))?;
    contents.require_sound(&args.dir)?;
    let sources = args.network.sources(&args.catalog)?;
    let client = if args.offline { None } else { Some(args.network.client(&sources)?) };
    let (store, anchors) = (args.network.store()?, args.trust.load(&args.catalog)?);
    let _shared = store.share_if_writable()?;
    let tools = PinTools {
        store: &store,
        sources: &args.network.sources_catalog(&args.catalog),
        anchors: &anchors,
        client: client.as_ref(),
        threads: args.jobs,
        refresh: args.refresh,
    };
    let pins = pin(&args.dir, &contents, &tools, &Progress::new(args.json))?;
    let report = PackedBundle::new(&args.dir, &contents, pins, key.as_ref(), &store)?.write(&args.out, args.force)?;
    if args.json {
        return files::print_json(&report);
    }
    let PackReport { blobs, size, signed, .. } = &report;
    let signed = if *signed { "signed" } else { "not signed" };
    let what = format!("{}, {}, {signed}", counted(*blobs as u64, "blob"), human_bytes(*size));
    emit_message(&format!("{:>9}  {}, {what}", "wrote", shown(&report.path)));
    files::show(&format!("{}\n", report.digest))
}

fn shown(path: &Path) -> String {
    escape::line(path.display().to_string())
}
