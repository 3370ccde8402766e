//! `vmbake archive`: releases for offline sites.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::key::KeySource;
use super::network::NetworkArgs;
use super::pinned::PinnedArgs;
use super::verify::signers::{RootArgs, SignerArgs};
use super::{Failure, Outcome, files, output_parser, parse_size, threads};
use vmbake_archive::apply::{SiteRequest, apply};
use vmbake_archive::contents::{ArchiveEntry, Contents};
use vmbake_archive::create::{ArchiveRequest, Catalogs, create};
use vmbake_archive::earlier::Earlier;
use vmbake_archive::import::{import, unpack_inputs};
use vmbake_archive::verify::verify;
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::progress::{Progress, counted, emit_message, human_bytes};
use vmbake_oci::RemoteName;
use vmbake_pin::anchors::Anchors;
use vmbake_store::store::Store;

const CREATE_EXAMPLES: &str = "\
Examples:
  vmbake archive create node -o node.tar                        # all inputs of kind node
  vmbake archive create dist/node.debian-13.amd64.qcow2 --images -o image.tar
  vmbake archive create node --since node.tar --split 4G -o next.tar";

const VERIFY_EXAMPLES: &str = "\
Examples:
  vmbake archive verify node.tar
  vmbake archive verify node.tar --json           # also for a split archive: node.tar.000 ...";

const LIST_EXAMPLES: &str = "\
Examples:
  vmbake archive list node.tar";

const IMPORT_EXAMPLES: &str = "\
Examples:
  vmbake archive import node.tar --store /srv/store --inputs-to inputs";

const APPLY_EXAMPLES: &str = "\
Examples:
  vmbake archive apply node.tar --store /srv/store --inputs-to inputs --out dist
  vmbake archive apply image.tar --out dist";

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// Create an archive of all inputs of a kind, or of a baked image and its inputs
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Box<CreateArgs>),
    /// Verify an archive's contents; exit 1 if anything is missing, corrupt or unexpected
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// List an archive's contents
    #[command(after_help = LIST_EXAMPLES)]
    List(ReadArgs),
    /// Import the blobs of an archive into the store
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Extract the images of an archive, or bake them from its inputs, offline
    #[command(after_help = APPLY_EXAMPLES)]
    Apply(ApplyArchiveArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Kinds, or baked images NAME.qcow2
    #[command(flatten)]
    pinned: PinnedArgs,
    /// Include only the inputs of baked images; with --images, their files as well
    #[arg(long)]
    inputs: bool,
    /// Include only the files of baked images; with --inputs, their inputs as well
    #[arg(long)]
    images: bool,
    /// Base image, if the manifest pins a custom one
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Exclude the contents of an earlier archive, or of HOST/NAME:TAG or HOST/NAME@DIGEST in a registry
    #[arg(long, value_name = "ARCHIVE|REF")]
    since: Option<PathBuf>,
    /// Use plain HTTP for the registry of --since (default for localhost)
    #[arg(long, requires = "since")]
    plain_http: bool,
    /// Archive to write
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Split the archive into FILE.000, FILE.001 ... of at most SIZE bytes, or with suffix K, M, G, T (binary)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    split: Option<u64>,
    /// Sign the archive's index with this private key, as for `vmbake sign`
    #[arg(long, value_name = "KEY")]
    key: Option<KeySource>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    /// Archive; for a split archive, the name without part numbers
    archive: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    signers: SignedArgs,
}

/// Required signers of an archive.
#[derive(Debug, Args)]
struct SignedArgs {
    #[command(flatten)]
    signers: SignerArgs,
    #[command(flatten)]
    root: RootArgs,
}

impl CreateArgs {
    /// Arguments for an archive with all inputs of a kind.
    #[cfg(feature = "profile")]
    pub(super) fn of_kind(
        pinned: PinnedArgs,
        (base, out): (Option<PathBuf>, PathBuf),
        (layers, network): (LayersArgs, NetworkArgs),
        (trust, catalog): (TrustArgs, CatalogArgs),
    ) -> Self {
        let (inputs, images, since, plain_http) = (false, false, None, false);
        let (split, key, force, json, jobs) = (None, None, false, false, None);
        Self {
            pinned,
            inputs,
            images,
            base,
            since,
            plain_http,
            out,
            split,
            key,
            force,
            json,
            jobs,
            layers,
            network,
            trust,
            catalog,
        }
    }

    /// Contents to exclude. An existing file takes precedence over a registry reference.
    fn since(&self) -> Result<Option<Earlier>, Failure> {
        let Some(since) = &self.since else { return Ok(None) };
        let reference: Option<RemoteName> = since.to_str().and_then(|text| text.parse().ok());
        Ok(Some(match reference.filter(|_| !Contents::exist(since)) {
            Some(name) => {
                let repository = self.network.repository(&name.repository, self.plain_http)?;
                Earlier::remote(&repository, &name)?
            }
            None => Earlier::archive(since)?,
        }))
    }
}

impl SignedArgs {
    /// Opens an archive that all required signers have signed.
    fn open(&self, archive: &Path) -> Result<Contents, Failure> {
        let contents = Contents::open(archive)?;
        let root = self.root.load(&Anchors::load(&Catalog::built_in())?)?;
        contents.require_signed(&self.signers.named()?, &root, Timestamp::now())?;
        Ok(contents)
    }
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(flatten)]
    signers: SignedArgs,
    /// Archive; for a split archive, the name without part numbers
    archive: PathBuf,
    /// Artifact store [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Also write manifests, sources, layers and trust anchors to this new directory
    #[arg(long, value_name = "DIR")]
    inputs_to: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ApplyArchiveArgs {
    #[command(flatten)]
    signers: SignedArgs,
    /// Archive; for a split archive, the name without part numbers
    archive: PathBuf,
    /// Output directory
    #[arg(long, value_name = "DIR", default_value = "dist")]
    out: PathBuf,
    /// New directory for manifests, sources, layers and trust anchors
    #[arg(long, value_name = "DIR", default_value = "inputs")]
    inputs_to: PathBuf,
    /// Formats of baked images
    #[arg(long, value_parser = output_parser(), value_delimiter = ',', default_value = "raw,qcow2")]
    format: Vec<OutputFormat>,
    /// Artifact store [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Replace existing images
    #[arg(long)]
    force: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

pub(super) fn run(command: ArchiveCommand) -> Result<Outcome, Failure> {
    match command {
        ArchiveCommand::Create(args) => write(*args),
        ArchiveCommand::Verify(args) => check(&args),
        ArchiveCommand::List(args) => list(&args),
        ArchiveCommand::Import(args) => import_blobs(&args),
        ArchiveCommand::Apply(args) => site(&args),
    }
}

fn write(mut args: CreateArgs) -> Result<Outcome, Failure> {
    let key = args.key.as_ref().map(KeySource::load).transpose()?;
    let since = args.since()?;
    let images = args.pinned.take_images();
    let sources = args.network.sources(&args.catalog)?;
    let catalogs = Catalogs {
        layers: args.layers.catalog(&args.catalog),
        sources: args.network.sources_catalog(&args.catalog),
        trust: args.trust.catalog(&args.catalog),
    };
    let pinned = args.pinned.each(&sources, &catalogs.layers)?;
    let manifests: Vec<PathBuf> = pinned.into_iter().map(|pinned| pinned.manifest).collect();
    let store = args.network.store()?;
    let _shared = store.share_if_writable()?;
    let request = ArchiveRequest {
        manifests: &manifests,
        images: &images,
        with_inputs: args.inputs || !args.images,
        with_images: args.images || !args.inputs,
        base: args.base.as_deref(),
        catalogs: &catalogs,
        since: since.as_ref(),
        out: &args.out,
        split: args.split,
        force: args.force,
        store: &store,
        key: key.as_ref(),
        threads: threads(args.jobs)?,
    };
    let written = create(&request, &Progress::new(args.json))?;
    if args.json {
        return files::print_json(&written);
    }
    let line = |path: &PathBuf| escape::line(path.display().to_string()) + "\n";
    emit_message(&format!("{}, {}", counted(written.blobs as u64, "blob"), human_bytes(written.length)));
    files::show(&written.parts.iter().chain(&written.bundle).map(line).collect::<String>())
}

fn check(VerifyArgs { read, signers }: &VerifyArgs) -> Result<Outcome, Failure> {
    let report = verify(&signers.open(&read.archive)?, threads(None)?)?;
    let held = match report.held {
        0 => String::new(),
        held => format!(", {} in an earlier archive", counted(held as u64, "blob")),
    };
    let line = format!(
        "index {}: {}, {}{held}\n",
        report.index,
        counted(report.blobs as u64, "blob"),
        human_bytes(report.bytes)
    );
    let problems = report
        .problems
        .iter()
        .map(|problem| escape::line(format!("{}  {}  {}", problem.state, problem.name, problem.said)) + "\n");
    match read.json {
        true => files::print_json(&report)?,
        false => files::show(&problems.chain([line]).collect::<String>())?,
    };
    Ok(if report.ok { Outcome::Clean } else { Outcome::Findings })
}

fn list(args: &ReadArgs) -> Result<Outcome, Failure> {
    let contents = Contents::open(&args.archive)?;
    let entries = contents.entries();
    if args.json {
        return files::print_json(&json!({"index": contents.index_digest, "since": contents.since, "blobs": entries}));
    }
    let line = |entry: &ArchiveEntry| {
        let held = if entry.held { "  left out" } else { "" };
        escape::line(format!("{:>12}  {}  {}{held}", entry.size, entry.digest, entry.title)) + "\n"
    };
    files::show(&entries.iter().map(line).collect::<String>())
}

fn import_blobs(args: &ImportArgs) -> Result<Outcome, Failure> {
    let (contents, store) = (args.signers.open(&args.archive)?, Store::open(args.store.clone())?);
    let _shared = store.share()?;
    let imported = import(&contents, &store, threads(None)?)?;
    if let Some(folder) = &args.inputs_to {
        unpack_inputs(&contents, folder)?;
    }
    if args.json {
        return files::print_json(&imported);
    }
    let (added, bytes) = (counted(imported.added as u64, "blob"), human_bytes(imported.bytes));
    files::show(&format!("{added} added, {bytes}; {} already present\n", imported.present))
}

fn site(args: &ApplyArchiveArgs) -> Result<Outcome, Failure> {
    let (contents, store) = (args.signers.open(&args.archive)?, Store::open(args.store.clone())?);
    let _shared = store.share()?;
    let mut formats = args.format.clone();
    formats.sort_unstable();
    formats.dedup();
    let request = SiteRequest {
        out: &args.out,
        inputs: &args.inputs_to,
        force: args.force,
        formats: &formats,
        store: &store,
        threads: threads(args.jobs)?,
    };
    let commands = apply(&contents, &request)?;
    files::show(&commands.iter().map(|command| escape::line(command.clone()) + "\n").collect::<String>())
}
