//! `vmbake update`: arguments to a request, and newer versions to a table or JSON.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::accounts::AccountPlan;
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

/// Entries that are resolved at the same time, unless somebody says another number.
const JOBS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

const EXAMPLES: &str = "\
Examples:
  vmbake update node                              # what is missing in the manifests of kind node
  vmbake update node --os debian-13 --arch amd64 --image base.qcow2   # with a base image of your own
  vmbake update node --at 2026-09-01              # packages as of that day, from snapshots of the archives
  vmbake update --check                           # what has a newer version? changes nothing
  vmbake update knd --only containerd             # this entry again, and no other
  vmbake update web                               # a layer of your own that asks for packages
  vmbake update web --explain libpq5              # why is that package in the image?";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UpdateArgs {
    /// Kinds: names of layers [default: all that the sources list for the systems and architectures]
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// Operating systems [default: all]
    #[arg(long, value_delimiter = ',')]
    os: Vec<String>,
    /// Architectures, as Debian names them [default: all that the sources list for the kind; of a layer of your own amd64]
    #[arg(long, value_delimiter = ',')]
    arch: Vec<String>,
    /// Resolve this entry again, and no other; may be repeated; the base image is os.image
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Resolve every entry again, not only those that are missing
    #[arg(long)]
    refresh: bool,
    /// Change nothing; exit 1 and print what has a newer version or none
    #[arg(long)]
    check: bool,
    /// Change nothing; print why this package would be among those that layers ask for
    #[arg(long, value_name = "PACKAGE", conflicts_with_all = ["check", "only", "refresh"])]
    explain: Option<String>,
    /// Pin packages as of this time: a day, which means 00:00 UTC, or a timestamp such as 2026-09-01T12:00:00Z. Valid-Until of the archives is
    /// not enforced
    #[arg(long, value_name = "DATE", value_parser = past, conflicts_with_all = ["check", "refresh"])]
    at: Option<Timestamp>,
    /// Pin this disk image as base, in place of the published one
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Number of its root partition, where more than one could be
    #[arg(long, value_name = "N", requires = "image")]
    partition: Option<u32>,
    /// Directory of the manifests
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    /// Print newer versions as JSON
    #[arg(long, requires = "check")]
    json: bool,
    /// Entries resolved at the same time
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
    /// What is missing in the manifests of one kind of the user's own, in `manifests`.
    #[cfg(feature = "profile")]
    pub(super) fn of_kind(
        (kind, os, arch): (String, String, Vec<String>),
        (image, partition, manifests): (Option<PathBuf>, Option<u32>, PathBuf),
        (network, trust): (NetworkArgs, TrustArgs),
        (layers, catalog): (LayersArgs, CatalogArgs),
    ) -> Self {
        let (kinds, os, only) = (vec![kind], vec![os], Vec::new());
        let (refresh, check, explain, at, json, jobs) = (false, false, None, None, false, JOBS);
        Self {
            kinds,
            os,
            arch,
            only,
            refresh,
            check,
            explain,
            at,
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
    if args.image.is_some() && targets.iter().any(|target| target.arch != targets[0].arch) {
        return Err("--image is of one architecture: choose it with --arch".into());
    }
    let (store, client) = (args.network.store()?, args.network.client(&sources)?);
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
        image: args.image,
        partition: args.partition,
        cache: Cache::default(),
        received: progress.counter("received"),
    };
    let local_files = target::local_files(&layers, &targets)?;
    let request = UpdateRequest {
        packages: target::requests(&layers, &targets)?,
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

/// Parses a day or timestamp that is not in the future.
fn past(text: &str) -> Result<Timestamp, String> {
    let day = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    // `Date` would accept a timestamp and ignore its time.
    let found = if text.contains(['T', 't']) { text.parse().ok() } else { day() };
    let found: Timestamp = found.ok_or("not a day such as 2026-09-01 or a timestamp such as 2026-09-01T12:00:00Z")?;
    let second = Timestamp::from_second(found.as_second()).map_err(|error| error.to_string())?;
    if second > Timestamp::now() { Err("is in the future".to_owned()) } else { Ok(second) }
}

/// Fails before anything is downloaded if no manifest could be written.
fn check_folder(folder: &Path, check: bool) -> Result<(), Failure> {
    if folder.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(TargetError::NotFolder { path: folder.to_owned() }.into());
    }
    if check {
        return Ok(());
    }
    let unusable = |source| PublishError::Create { path: folder.to_owned(), source };
    let absolute = std::path::absolute(folder).map_err(unusable)?;
    // What is missing will be made when there is something to write.
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
