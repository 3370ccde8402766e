//! `vmbake bundle`: components that others publish.

pub(super) mod look;
mod share;
pub(super) mod with;
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
use vmbake_common::escape;
use vmbake_common::progress::{Progress, counted, human_bytes, remark};
use vmbake_distribute::bundle::contents::BundleContents;
use vmbake_distribute::bundle::pack::{PackReport, PackedBundle};
use vmbake_distribute::bundle::pins::{PinTools, pin};
use vmbake_distribute::bundle::skeleton;

const INIT_EXAMPLES: &str = "\
Examples:
  vmbake bundle init agent --publisher acme";

const PACK_EXAMPLES: &str = "\
Examples:
  vmbake bundle pack agent -o agent.oci           # a folder
  vmbake bundle pack agent -o agent.tar --key acme.key";

#[derive(Debug, Subcommand)]
pub(super) enum BundleCommand {
    /// Begin a bundle: write a description and a layer with comments, and say what comes next
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Pin and prove the artifacts of a bundle, and write it as an OCI image layout
    #[command(after_help = PACK_EXAMPLES)]
    Pack(Box<PackArgs>),
    /// Print every rule that a bundle breaks, of those by which it is judged before use; exit 1 if it breaks any
    Check(look::CheckArgs),
    /// Show what a bundle is, what it asks for, and what a machine can be told
    Inspect(look::InspectArgs),
    /// Push a packed bundle to a registry, with its signature
    Push(share::PushArgs),
    /// Verify who has signed a bundle, and that it is sound
    Verify(share::VerifyArgs),
    /// Show what a bundle asks for, and grant that to its publisher
    Trust(share::TrustBundleArgs),
    /// Show what bundles do to an image, and what keeps them from it, without baking; exit 1 if anything does
    Plan(Box<with::PlanArgs>),
    /// Lock newer versions of the bundles of a kind, and show what that changes; the next bake takes them
    Upgrade(Box<upgrade::UpgradeArgs>),
    #[cfg(feature = "sysext")]
    /// Write a bundle as an extension, which systemd merges into machines that run
    Sysext(Box<sysext::SysextArgs>),
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Folder of the bundle, which gives it its name
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Who publishes it: the names of layers and artifacts begin with this and a dot
    #[arg(long, value_name = "NAME", default_value = "example")]
    publisher: String,
}

#[derive(Debug, Args)]
pub(super) struct PackArgs {
    /// Folder of the bundle
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The layout: a folder, or a tar file if the name ends with .tar
    #[arg(short = 'o', long = "out", value_name = "OUT")]
    out: PathBuf,
    /// Sign the index, and with it all that is in the bundle, with this private key, as `vmbake sign` takes it
    #[arg(long, value_name = "KEY")]
    key: Option<KeySource>,
    /// Resolve every artifact again, not only those that pins.json lacks
    #[arg(long)]
    refresh: bool,
    /// Open no socket: everything must be pinned and in the store
    #[arg(long, conflicts_with = "refresh")]
    offline: bool,
    /// Replace what is there
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Downloads at the same time
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
        BundleCommand::Check(args) => look::check(&args),
        BundleCommand::Inspect(args) => look::inspect(&args),
        BundleCommand::Push(args) => share::push_bundle(&args),
        BundleCommand::Verify(args) => share::verify(&args),
        BundleCommand::Trust(args) => share::trust(&args),
        BundleCommand::Plan(args) => with::plan(*args),
        BundleCommand::Upgrade(args) => upgrade::run(*args),
        #[cfg(feature = "sysext")]
        BundleCommand::Sysext(args) => sysext::run(&args),
    }
}

fn init(args: &InitArgs) -> Result<Outcome, Failure> {
    for path in skeleton::init(&args.dir, &args.publisher)? {
        remark(&format!("{:>9}  {}", "wrote", escape::line(path.display().to_string())));
    }
    let dir = vmbake_disk::image::quoted(&args.dir);
    for (what, command) in [
        ("next", format!("edit {dir}/bundle.json and the layer, then:")),
        ("", format!("vmbake bundle check {dir}")),
        ("", format!("vmbake bundle pack {dir} -o {dir}.oci")),
    ] {
        remark(&format!("{what:>9}  {}", escape::line(command)));
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
    remark(&format!("{:>9}  {}, {what}", "wrote", shown(&report.path)));
    files::show(&format!("{}\n", report.digest))
}

fn shown(path: &Path) -> String {
    escape::line(path.display().to_string())
}
