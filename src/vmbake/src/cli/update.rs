//! `vmbake update`: turns arguments into a request, and newer versions into a table or JSON.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::accounts::AccountPlan;
use super::base::{self, BaseArg};
use super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::network::NetworkArgs;
use super::target::{self, TargetError};
use super::{Failure, Outcome, files};
use vmbake_common::atomic_file::PublishError;
use vmbake_common::escape;
use vmbake_common::progress::Progress;
use vmbake_fetch::{FetchError, local};
use vmbake_pin::resolve::{Cache, Resolver};
use vmbake_pin::update::{Newer, UpdateRequest, explain, newer, seen, update};

/// Default number of concurrently resolved entries.
const JOBS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

const EXAMPLES: &str = "\
Examples:
  vmbake update node                              # adds missing entries to the manifests of kind node
  vmbake update node --os debian-13 --arch amd64 --image base.qcow2   # with a custom base image
  vmbake update web --base oci://docker.io/library/debian:trixie    # based on a container image
  vmbake update node --at 2026-09-01              # packages as of that date, from snapshots of the archives
  vmbake update --check                           # lists newer versions without changing anything
  vmbake update knd --only containerd             # resolves only this entry again
  vmbake update web                               # a custom layer with packages
  vmbake update web --explain libpq5              # explains why a package is installed";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UpdateArgs {
    /// Kinds of images (names of their top layers) [default: all that the sources list]
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// Operating systems [default: all]
    #[arg(long, value_delimiter = ',')]
    os: Vec<String>,
    /// Debian architectures [default: all that the sources list for the kind; amd64 for a custom layer]
    #[arg(long, value_delimiter = ',')]
    arch: Vec<String>,
    /// Resolve only this entry again; may be repeated; the base image is os.image
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Resolve all entries again, not only missing ones
    #[arg(long)]
    refresh: bool,
    /// Check for missing entries and newer versions without changing anything; exit 1 if there are any
    #[arg(long)]
    check: bool,
    /// Print why this package would be installed, without changing anything
    #[arg(long, value_name = "PACKAGE", conflicts_with_all = ["check", "only", "refresh"])]
    explain: Option<String>,
    /// Pin packages as of a snapshot: a date (00:00 UTC), or a timestamp such as 2026-09-01T12:00:00Z. Valid-Until of the archives is
    /// not enforced
    #[arg(long, value_name = "DATE", value_parser = past, conflicts_with_all = ["check", "refresh"])]
    at: Option<Timestamp>,
    /// What the image is based on: `image`, the published disk image; FILE, a disk image or an archive of a root file
    /// system; `oci://HOST/NAME:TAG`, a container image; `packages`, Debian's required packages and apt. The manifest
    /// records it [default: as before, or image]
    #[arg(long, value_name = "BASE", requires = "kinds", conflicts_with_all = ["image", "check", "explain"])]
    base: Option<BaseArg>,
    /// Pin this disk image as the base, instead of the published one
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Number of its root partition, if it is ambiguous
    #[arg(long, value_name = "N", requires = "image")]
    partition: Option<u32>,
    /// Manifest directory
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    /// Print newer versions as JSON
    #[arg(long, requires = "check")]
    json: bool,
    /// Number of concurrently resolved entries
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value_t = JOBS)]
    jobs: NonZeroUsize,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

impl UpdateArgs {
    /// Arguments that add missing entries to the manifests of one custom kind in `manifests`.
    #[cfg(feature = "profile")]
    pub(super) fn of_kind(
        (kind, os, arch): (String, String, Vec<String>),
        (image, partition, manifests): (Option<PathBuf>, Option<u32>, PathBuf),
        (network, trust): (NetworkArgs, TrustArgs),
        (layers, catalog): (LayersArgs, CatalogArgs),
    ) -> Self {
        let (kinds, os, only) = (vec![kind], vec![os], Vec::new());
        let (refresh, check, explain, at, base, json, jobs) = (false, false, None, None, None, false, JOBS);
        Self {
            kinds,
            os,
            arch,
            only,
            refresh,
            check,
            explain,
            at,
            base,
            image,
            partition,
            manifests,
            json,
            jobs,
            network,
            trust,
            layers,
            catalog,
        }
    }
}

pub(super) fn run(args: UpdateArgs) -> Result<Outcome, Failure> {
    let sources = args.network.sources(&args.catalog)?;
    let layers = args.layers.load(&args.catalog)?;
    args.kinds.iter().try_for_each(|kind| layers.require(kind))?;
    let targets = target::choose_with_layers(&sources, &layers, &args.kinds, &args.os, &args.arch)?;
    check_folder(&args.manifests, args.check || args.explain.is_some())?;
    let file = match (&args.base, &args.image) {
        (Some(BaseArg::File(_)), _) => Some("--base"),
        (_, Some(_)) => Some("--image"),
        _ => None,
    };
    if let Some(option) = file.filter(|_| targets.iter().any(|target| target.arch != targets[0].arch)) {
        return Err(format!("{option} needs a single architecture: add --arch").into());
    }
    let (store, client) = (args.network.store()?, args.network.client(&sources)?);
    let on_packages = base::on_packages(args.base.as_ref(), args.image.is_some(), &args.manifests, &targets)?;
    let anchors = args.trust.load(&args.catalog)?;
    let _shared = store.share()?;
    let progress = Progress::new(args.json);
    let resolver = Resolver {
        client: &client,
        store: &store,
        sources: &sources,
        anchors: &anchors,
        now: Timestamp::now(),
        seen: seen(&sources, &args.manifests, &targets)?,
        at: args.at,
        base: base::wanted(args.base, args.image, args.partition, &store)?,
        cache: Cache::default(),
        received: progress.counter("received"),
    };
    let local_files = target::local_files(&layers, &targets)?;
    let request = UpdateRequest {
        packages: target::requests(&layers, &targets, &on_packages)?,
        on_packages,
        upstreams: target::upstreams(&layers, &targets)?,
        targets,
        folder: args.manifests,
        only: args.only.into_iter().collect::<BTreeSet<_>>(),
        refresh: args.refresh,
        threads: args.jobs,
    };
    if let Some(package) = &args.explain {
        let found = explain(&request, &resolver, package)?;
        return files::show(&found.iter().map(ToString::to_string).collect::<String>());
    }
    if !args.check {
        local::keep(local_files, &store).map_err(FetchError::from)?;
        let layers = args.layers.catalog(&args.catalog);
        let plan = AccountPlan { request: &request, resolver: &resolver, layers };
        let before = plan.texts();
        update(&request, &resolver, &progress)?;
        plan.pin(&before, &progress)?;
        return Ok(Outcome::Clean);
    }
    let found = newer(&request, &resolver, &progress)?;
    print(&found, args.json)?;
    Ok(if found.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

/// Parses a date or timestamp that is not in the future.
fn past(text: &str) -> Result<Timestamp, String> {
    let day = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    // `Date` would accept a timestamp and ignore its time.
    let found = if text.contains(['T', 't']) { text.parse().ok() } else { day() };
    let found: Timestamp =
        found.ok_or("expected a date such as 2026-09-01 or a timestamp such as 2026-09-01T12:00:00Z")?;
    let second = Timestamp::from_second(found.as_second()).map_err(|error| error.to_string())?;
    if second > Timestamp::now() { Err("the time is in the future".to_owned()) } else { Ok(second) }
}

/// Fails before any download if the manifests cannot be written.
fn check_folder(folder: &Path, check: bool) -> Result<(), Failure> {
    if folder.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(TargetError::NotFolder { path: folder.to_owned() }.into());
    }
    if check {
        return Ok(());
    }
    let unusable = |source| PublishError::Create { path: folder.to_owned(), source };
    let absolute = std::path::absolute(folder).map_err(unusable)?;
    // A missing directory is created when the first file is written.
    let existing = absolute.ancestors().find(|folder| folder.exists()).unwrap_or(&absolute);
    Ok(accessat(CWD, existing, Access::WRITE_OK, AtFlags::EACCESS).map_err(|error| unusable(error.into()))?)
}

fn print(found: &[Newer], json: bool) -> Result<(), Failure> {
    if json {
        files::print_json(&found)?;
        return Ok(());
    }
    let width = |text: fn(&Newer) -> &str| found.iter().map(|newer| text(newer).len()).max().unwrap_or(0);
    let (manifests, names) = (width(|newer| &newer.manifest), width(|newer| &newer.name));
    let pinned = |newer: &Newer| newer.pinned.clone().unwrap_or_else(|| "-".to_owned());
    let versions = found.iter().map(|newer| pinned(newer).len()).max().unwrap_or(0);
    for newer in found {
        let (manifest, name) = (&newer.manifest, &newer.name);
        let newest = newer.newest.as_deref().unwrap_or("-");
        let line = format!("{manifest:manifests$}  {name:names$}  {:versions$} -> {newest}", pinned(newer));
        files::show(&(escape::line(line) + "\n"))?;
    }
    Ok(())
}
