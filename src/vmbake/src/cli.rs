//! The command line: thin wrappers that turn arguments into operations and results into text or JSON.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use vmbake_bake::release::provenance::BuilderId;
use vmbake_common::address;
use vmbake_common::progress;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_disk::image::Format;

mod accounts;
pub mod advice;
mod archive;
mod bake;
#[cfg(feature = "qemu")]
mod boot;
mod bundle;
mod catalog;
mod changelog;
mod completions;
mod convert;
mod delta;
mod dev;
mod diff;
mod explain;
mod fetch;
mod files;
mod help;
mod image;
mod init;
mod key;
mod layer;
mod manifest;
mod network;
mod pinned;
mod plan;
mod podplane;
mod preflight;
#[cfg(feature = "profile")]
mod profile;
#[cfg(feature = "aws")]
mod publish;
mod pull;
mod push;
#[cfg(feature = "report")]
mod report;
mod sbom;
mod schema;
mod sign;
mod size;
mod store;
mod target;
mod trust;
mod update;
mod user_data;
mod verify;
mod version;

pub use size::parse_size;

/// What the help of vmbake itself ends with.
const FRONT: &str = "\
Examples:
  vmbake update node               # pin and prove the artifacts of kind node, in manifests/
  vmbake bake node                 # fetch them and the base image, and bake dist/node.debian-13.amd64.{raw,qcow2}
  vmbake boot dist/node.debian-13.amd64.qcow2 --ssh-key ~/.ssh/id_ed25519.pub --forward 2222:22

`vmbake help COMMAND` has examples of each command.

Environment:
  XDG_CACHE_HOME     the store is $XDG_CACHE_HOME/vmbake/store, by default below ~/.cache
  XDG_STATE_HOME     `pull` records versions in $XDG_STATE_HOME/vmbake/releases, by default below ~/.local/state
  XDG_CONFIG_HOME    the configuration is $XDG_CONFIG_HOME/vmbake/config.json, by default below ~/.config
  VMBAKE_MIRRORS     mirrors as for --mirror, separated by blanks
  VMBAKE_SHARED      shared store as for --shared; VMBAKE_SHARED_WRITE=1 is --shared-write
  SOURCE_DATE_EPOCH  time of the files that a bake makes, in seconds since 1970
  COSIGN_PASSWORD    password of a cosign.key
  GITHUB_TOKEN       is sent to api.github.com, and to nobody else
  DOCKER_CONFIG      folder of docker's config.json, with credentials for registries
  REGISTRY_AUTH_FILE credentials for registries, as podman keeps them
  https_proxy        proxy for what is not below one of the hosts in no_proxy
  SSL_CERT_FILE      authorities of TLS, in place of the system's

Exit codes:
  0  done; a check found nothing
  1  refused or failed, with the reason on stderr; or a check found something: lint, diff, preflight,
     layer check, store verify, update --check, verify image
  2  wrong usage";

/// Turns a Debian cloud image and a pinned manifest into a golden disk image, without root.
#[derive(Debug, Parser)]
#[command(name = "vmbake", max_term_width = 100, after_help = FRONT)]
#[command(arg_required_else_help = true, subcommand_negates_reqs = true)]
#[command(help_template = help::template(&Command::augment_subcommands(clap::Command::new("vmbake"))))]
pub struct Cli {
    /// Print the version
    #[arg(short = 'V', long, required = true)]
    version: bool,
    /// Print it as JSON, with the digests of the first-boot programs, on which the bytes of images depend
    #[arg(long)]
    json: bool,
    /// Progress on stderr: auto (lines, and bars on a terminal), plain (lines) or json (an object a line)
    #[arg(long, global = true, value_name = "STYLE", default_value = "auto", hide_possible_values = true)]
    progress: progress::Style,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Begin an image of your own: write a layer with comments, and say what comes next
    Init(init::InitArgs),
    /// Bring manifests up to date: resolve and prove what is missing
    Update(update::UpdateArgs),
    /// Show manifests
    Manifest(manifest::ManifestArgs),
    /// Download everything that manifests pin
    Fetch(fetch::FetchArgs),
    /// Look after the store of artifacts
    Store(store::StoreArgs),
    /// Bake images
    #[command(after_help = bake::EXAMPLES)]
    Bake(BakeArgs),
    /// Tell what a bake would do: which images are unchanged, what is still to be downloaded; and the matrix of a CI system
    #[command(after_help = plan::EXAMPLES)]
    Plan(BakeArgs),
    /// Make keys that sign releases
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Sign what a bake wrote: the lists of digests and the provenance
    Sign(sign::SignArgs),
    /// Push a release to a registry
    Push(push::PushArgs),
    /// Pull an image of a release from a registry, if it is signed
    Pull(pull::PullArgs),
    /// Make a delta: what turns one release of a disk image into another
    Delta(delta::DeltaArgs),
    /// Make the new disk image of an old one and a delta
    Apply(delta::ApplyArgs),
    /// Store a disk image in another form: for Google Compute Engine, Azure, QEMU
    Convert(convert::ConvertArgs),
    /// Make a machine image of a disk image in a cloud
    #[cfg(feature = "aws")]
    #[command(subcommand)]
    Publish(publish::PublishCommand),
    /// Hand baked images to Podplane's command line
    #[command(subcommand)]
    Podplane(podplane::PodplaneCommand),
    /// Carry everything that baking needs, or images, to a site without a network, as one file
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Make bundles of components, publish them, and look at those of others
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Boot a disk image in qemu, and leave the image as it is
    #[cfg(feature = "qemu")]
    Boot(boot::BootArgs),
    /// Develop layers with a running machine
    #[command(subcommand)]
    Dev(dev::DevCommand),
    /// Check layers, and list them
    #[command(subcommand)]
    Layer(layer::LayerCommand),
    /// Print the JSON Schema of a file that people write, or that vmbake writes for other programs
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Show what a disk image holds: partitions, file systems, system, kernel, usage
    #[command(after_help = image::INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check a disk image for what no golden image may carry: identities, secrets, logs, caches
    #[command(after_help = image::LINT_EXAMPLES)]
    Lint(InspectArgs),
    /// Check whether a disk image would work in a cloud, without asking that cloud
    #[command(subcommand)]
    Preflight(preflight::PreflightCommand),
    /// List files of a disk image
    Ls(files::LsArgs),
    /// Print a file of a disk image
    Cat(files::CatArgs),
    /// Tell where a path of a disk image came from: layer, artifact, package, and who answers for it
    Explain(explain::ExplainArgs),
    /// Compare the root file systems of two disk images; exit 1 if they differ
    Diff(diff::DiffArgs),
    /// Tell what a disk image is made of: packages, programs, licences, digests, as SPDX or CycloneDX
    Sbom(sbom::SbomArgs),
    /// Tell people what changed between two releases, security first, as Markdown
    Changelog(changelog::ChangelogArgs),
    /// Write a page about a disk image for people: what it is, where its bytes are, who answers for what, what changed
    #[cfg(feature = "report")]
    Report(report::ReportArgs),
    /// Make the user data of a machine, and list what it may say
    #[command(subcommand)]
    UserData(user_data::UserData),
    /// Read profiles of the operating-system-manager of Kubernetes
    #[cfg(feature = "profile")]
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Show and renew what is trusted
    #[command(subcommand)]
    Trust(trust::Trust),
    /// Verify a release, or one link of the chain of trust by hand
    #[command(subcommand)]
    Verify(verify::Verify),
    /// Print the script with which a shell completes commands and options
    Completions(completions::CompletionsArgs),
}

#[derive(Debug, Args)]
struct BakeArgs {
    #[command(flatten)]
    pinned: pinned::PinnedArgs,
    /// Base disk image, qcow2 or raw [default: the one that the manifest pins, from the store]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Number of the root partition of the base, where more than one could be
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    #[command(flatten)]
    with: bundle::with::WithArgs,
    #[command(flatten)]
    layers: catalog::LayersArgs,
    /// Open no socket: everything must be in the store
    #[arg(long)]
    offline: bool,
    /// Hash, decode, compress everything anew: of the store only the blobs are used, and what the bake learns is not kept
    #[arg(long)]
    no_cache: bool,
    /// Size of the disk: bytes, or with K, M, G, T (binary) [default: the base's size]
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// Output formats
    #[arg(long, value_parser = format_parser(), value_delimiter = ',', default_value = "raw,qcow2")]
    format: Vec<Format>,
    /// Compression of the qcow2 image [default: zstd]
    #[arg(long, value_name = "NAME")]
    compression: Option<Compression>,
    /// Output directory
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Who bakes, a URI for the provenance beside the images [default: urn:vmbake:builder]
    #[arg(long, value_name = "URI")]
    builder_id: Option<BuilderId>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    /// Print the result as JSON, and nothing else
    #[arg(long)]
    json: bool,
    /// Threads [default: all cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    network: network::NetworkArgs,
    #[command(flatten)]
    trust: catalog::TrustArgs,
    #[command(flatten)]
    catalog: catalog::CatalogArgs,
}

/// Reads the name of a disk format.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// How qcow2 images are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    /// For readers that do not know zstd; the file is larger, and takes longer
    Zlib,
    /// For QEMU 5.1 or later
    Zstd,
}

impl From<Compression> for Qcow2Compression {
    fn from(compression: Compression) -> Self {
        match compression {
            Compression::Zlib => Self::Zlib,
            Compression::Zstd => Self::Zstd,
        }
    }
}

#[derive(Debug, Args)]
struct InspectArgs {
    /// Disk image, qcow2 or raw
    image: PathBuf,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Why a command failed, whatever it was.
pub type Failure = Box<dyn vmbake_common::hint::Hint + Send + Sync>;

/// Whether a command found what it was asked to check in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, and nothing to complain about.
    Clean,
    /// Done, with findings that were printed.
    Findings,
}

/// As many threads as somebody asked for, or one for each core.
fn threads(jobs: Option<NonZeroUsize>) -> std::io::Result<NonZeroUsize> {
    jobs.map_or_else(std::thread::available_parallelism, Ok)
}

/// Fails if an argument contains a URL with credentials, which other users of the machine could read. Runs before clap, whose messages repeat arguments.
pub fn check_arguments(arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<(), Failure> {
    let texts = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match texts.enumerate().find(|(_, text)| address::argument_has_userinfo(text)) {
        Some((number, _)) => Err(format!("argument {number}: {}", address::MESSAGE).into()),
        None => Ok(()),
    }
}

impl Cli {
    /// Runs the command that the arguments name.
    pub fn run(self) -> Result<Outcome, Failure> {
        progress::choose(self.progress);
        let Some(command) = self.command else { return version::run(self.json) };
        if self.version || self.json {
            let text = "--version and --json are without a command here; the --json of a command comes after its name";
            Self::command().error(ErrorKind::ArgumentConflict, text).exit();
        }
        match command {
            Command::Init(args) => init::run(&args),
            Command::Update(args) => update::run(args),
            Command::Manifest(args) => manifest::run(args),
            Command::Fetch(args) => fetch::run(args),
            Command::Store(args) => store::run(args),
            Command::Bake(args) => bake::run(args),
            Command::Plan(args) => plan::run(args),
            Command::Key(what) => key::run(what),
            Command::Sign(args) => sign::run(&args),
            Command::Push(args) => push::run(&args),
            Command::Pull(args) => pull::run(&args),
            Command::Delta(args) => delta::delta(&args),
            Command::Apply(args) => delta::apply_delta(&args),
            Command::Convert(args) => convert::run(&args),
            Command::Podplane(what) => podplane::run(what),
            Command::Archive(what) => archive::run(what),
            Command::Bundle(what) => bundle::run(what),
            #[cfg(feature = "qemu")]
            Command::Boot(args) => boot::run(args),
            Command::Dev(what) => dev::run(what),
            Command::Layer(what) => layer::run(what),
            Command::Schema(what) => schema::run(&what),
            Command::Inspect(args) => image::inspect(&args),
            Command::Lint(args) => image::lint(&args),
            #[cfg(feature = "aws")]
            Command::Publish(what) => publish::run(&what),
            Command::Preflight(what) => preflight::run(&what),
            Command::Ls(args) => files::ls(&args),
            Command::Cat(args) => files::cat(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Diff(args) => diff::run(&args),
            Command::Sbom(args) => sbom::run(&args),
            Command::Changelog(args) => changelog::run(&args),
            #[cfg(feature = "report")]
            Command::Report(args) => report::run(&args),
            Command::UserData(what) => user_data::run(what),
            #[cfg(feature = "profile")]
            Command::Profile(what) => profile::run(what),
            Command::Trust(what) => trust::run(what),
            Command::Verify(what) => verify::run(what),
            Command::Completions(args) => completions::run(&args),
        }
    }
}
