//! The command line: thin wrappers that turn arguments into operations and results into text or JSON.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use vmbake_bake::release::provenance::BuilderId;
use vmbake_common::address;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::progress;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_disk::image::Format;

mod accounts;
pub mod error_report;
mod archive;
mod bake;
mod base;
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
#[cfg(feature = "publish")]
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

/// Text after the top-level help.
const FRONT: &str = "\
Examples:
  vmbake update node               # pin and verify the artifacts of kind node, in manifests/
  vmbake bake node                 # fetch them and the base image, and bake dist/node.debian-13.amd64.{raw,qcow2}
  vmbake boot dist/node.debian-13.amd64.qcow2 --ssh-key ~/.ssh/id_ed25519.pub --forward 2222:22

`vmbake help COMMAND` has examples of each command.

Environment:
  XDG_CACHE_HOME     base directory of the store: $XDG_CACHE_HOME/vmbake/store [default: ~/.cache]
  XDG_STATE_HOME     `pull` records versions in $XDG_STATE_HOME/vmbake/releases [default: ~/.local/state]
  XDG_CONFIG_HOME    the configuration file is $XDG_CONFIG_HOME/vmbake/config.json [default: ~/.config]
  VMBAKE_MIRRORS     mirrors as for --mirror, separated by spaces
  VMBAKE_SHARED      shared store as for --shared; VMBAKE_SHARED_WRITE=1 is --shared-write
  SOURCE_DATE_EPOCH  timestamp of generated files, in seconds since 1970
  COSIGN_PASSWORD    password of an encrypted cosign.key
  GITHUB_TOKEN       token for api.github.com; sent to no other host
  DOCKER_CONFIG      directory of Docker's config.json, with registry credentials
  REGISTRY_AUTH_FILE registry credentials, in the format of Podman
  https_proxy        HTTPS proxy, except for the hosts in no_proxy
  SSL_CERT_FILE      TLS certificate authorities to use instead of the system's

Exit codes:
  0  success, without findings
  1  failure, with the reason on stderr; or a finding of a command that checks or compares,
     such as lint, diff, layer check, update --check or verify image
  2  usage error";

/// Build a golden disk image from a Debian cloud image and a pinned manifest, without root
#[derive(Debug, Parser)]
#[command(name = "vmbake", max_term_width = 100, after_help = FRONT)]
#[command(arg_required_else_help = true, subcommand_negates_reqs = true)]
#[command(help_template = help::template(&Command::augment_subcommands(clap::Command::new("vmbake"))))]
pub struct Cli {
    /// Print the version
    #[arg(short = 'V', long, required = true)]
    version: bool,
    /// Print the version as JSON, with the digests of the built-in first-boot programs
    #[arg(long)]
    json: bool,
    /// Progress format on stderr: auto (lines, and bars on a terminal), plain (lines) or json (one object per line)
    #[arg(long, global = true, value_name = "STYLE", default_value = "auto", hide_possible_values = true)]
    progress: progress::Style,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a custom image: write a commented layer, and print the next steps
    Init(init::InitArgs),
    /// Update manifests: resolve and verify missing entries
    Update(update::UpdateArgs),
    /// Show the entries of manifests
    Manifest(manifest::ManifestArgs),
    /// Download all pinned artifacts
    Fetch(fetch::FetchArgs),
    /// Verify, clean up and query the artifact store
    Store(store::StoreArgs),
    /// Bake images
    #[command(after_help = bake::EXAMPLES)]
    Bake(BakeArgs),
    /// Show what a bake would do: unchanged images, pending downloads, a CI matrix
    #[command(after_help = plan::EXAMPLES)]
    Plan(BakeArgs),
    /// Create signing keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Sign the outputs of a bake: checksum lists and provenance
    Sign(sign::SignArgs),
    /// Push a release to a registry
    Push(push::PushArgs),
    /// Pull an image of a signed release from a registry
    Pull(pull::PullArgs),
    /// Create a delta between two releases of a disk image
    Delta(delta::DeltaArgs),
    /// Apply a delta to a disk image
    Apply(delta::ApplyArgs),
    /// Convert a disk image to another format: for Google Compute Engine, Azure, QEMU
    Convert(convert::ConvertArgs),
    /// Publish a disk image as a machine image in a cloud
    #[cfg(feature = "publish")]
    #[command(subcommand)]
    Publish(publish::PublishCommand),
    /// Prepare baked images for the Podplane command line
    #[command(subcommand)]
    Podplane(podplane::PodplaneCommand),
    /// Transfer images, or all inputs of a bake, to an offline site as one file
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Create, publish and inspect bundles of components
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Boot a disk image in QEMU without modifying it
    #[cfg(feature = "qemu")]
    Boot(boot::BootArgs),
    /// Develop layers on a running machine
    #[command(subcommand)]
    Dev(dev::DevCommand),
    /// Check, list and release layers
    #[command(subcommand)]
    Layer(layer::LayerCommand),
    /// Print the JSON Schema of an input or output file
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Show the contents of a disk image: partitions, file systems, operating system, kernel, usage
    #[command(after_help = image::INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check a disk image for content that does not belong in a golden image: identities, secrets, logs, caches
    #[command(after_help = image::LINT_EXAMPLES)]
    Lint(InspectArgs),
    /// Check offline whether a disk image would work in a cloud
    #[command(subcommand)]
    Preflight(preflight::PreflightCommand),
    /// List files in a disk image
    Ls(files::LsArgs),
    /// Print a file in a disk image
    Cat(files::CatArgs),
    /// Show the origin of a path in a disk image: layer, artifact, package, proof
    Explain(explain::ExplainArgs),
    /// Compare the root file systems of two disk images; exit 1 if they differ
    Diff(diff::DiffArgs),
    /// Write an SBOM of a disk image as SPDX or CycloneDX: packages, programs, licenses, digests
    Sbom(sbom::SbomArgs),
    /// Write release notes in Markdown: changes between two releases, security first
    Changelog(changelog::ChangelogArgs),
    /// Write an HTML report about a disk image: contents, disk usage, proofs, changes
    #[cfg(feature = "report")]
    Report(report::ReportArgs),
    /// Create the user data of a machine, and list its settings
    #[command(subcommand)]
    UserData(user_data::UserData),
    /// Import profiles of the operating-system-manager of Kubernetes
    #[cfg(feature = "profile")]
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    /// Show and update trust anchors
    #[command(subcommand)]
    Trust(trust::Trust),
    /// Verify a release, or a single link of a chain of trust
    #[command(subcommand)]
    Verify(verify::Verify),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
}

#[derive(Debug, Args)]
struct BakeArgs {
    #[command(flatten)]
    pinned: pinned::PinnedArgs,
    #[arg(help = format!("Base disk image, {READABLE} [default: the base image that the manifest pins]"))]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Number of the base image's root partition, if it is ambiguous
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    #[command(flatten)]
    with: bundle::selection::WithArgs,
    #[command(flatten)]
    layers: catalog::LayersArgs,
    /// Do not use the network: all artifacts must be in the store
    #[arg(long)]
    offline: bool,
    /// Ignore caches of earlier bakes, and write none
    #[arg(long)]
    no_cache: bool,
    /// Disk size in bytes, or with suffix K, M, G, T (binary) [default: size of the base image, or 3G without one]
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// Output formats
    #[arg(long, value_parser = output_parser(), value_delimiter = ',', default_value = "raw,qcow2")]
    format: Vec<OutputFormat>,
    /// Compression method of the qcow2 image [default: zstd]
    #[arg(long, value_name = "NAME")]
    compression: Option<Compression>,
    /// Output directory
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// Builder ID to record in the provenance [default: urn:vmbake:builder]
    #[arg(long, value_name = "URI")]
    builder_id: Option<BuilderId>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    network: network::NetworkArgs,
    #[command(flatten)]
    trust: catalog::TrustArgs,
    #[command(flatten)]
    catalog: catalog::CatalogArgs,
}

/// Formats of disk images, for help texts.
const READABLE: &str = Format::OPTIONS;

/// Parses the name of a disk format.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// Parses the name of an output format.
fn output_parser() -> impl TypedValueParser<Value = OutputFormat> {
    let value = |format: OutputFormat| PossibleValue::new(format.name()).help(format.purpose());
    PossibleValuesParser::new(OutputFormat::ALL.map(value)).try_map(|name| name.parse::<OutputFormat>())
}

/// Compression method of qcow2 images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compression {
    /// For readers without zstd support; larger and slower
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
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Error of any command.
pub type Failure = Box<dyn vmbake_common::hint::Hint + Send + Sync>;

/// Result of a command that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No findings; exit code 0.
    Clean,
    /// A check printed findings; exit code 1.
    Findings,
}

/// The requested number of threads, or one per core.
fn threads(jobs: Option<NonZeroUsize>) -> std::io::Result<NonZeroUsize> {
    jobs.map_or_else(std::thread::available_parallelism, Ok)
}

/// Fails if an argument contains a URL with credentials, which other users of the machine could read. Runs before clap, which repeats arguments in messages.
pub fn check_arguments(arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<(), Failure> {
    let texts = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match texts.enumerate().find(|(_, text)| address::argument_has_userinfo(text)) {
        Some((number, _)) => Err(format!("argument {number}: {}", address::MESSAGE).into()),
        None => Ok(()),
    }
}

impl Cli {
    pub fn run(self) -> Result<Outcome, Failure> {
        progress::choose(self.progress);
        let Some(command) = self.command else { return version::run(self.json) };
        if self.version || self.json {
            let text = "--version and --json cannot be combined with a command; a command's --json follows its name";
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
            #[cfg(feature = "publish")]
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
