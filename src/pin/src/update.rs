//! Updates manifests from sources and existing pins.
//!
//! Resolves only what is missing or requested by name. A file is rewritten atomically after each entry, so that an
//! interrupted update loses nothing; without changes, its bytes stay the same.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::closure::Requests;
use crate::prove::Prover;
use crate::resolve::{Resolver, WantedBase};
use crate::sources::{Sources, VersionSource};
use jiff::Timestamp;
use vmbake_common::escape;
use vmbake_common::parallel::for_each;
use vmbake_common::progress::{Event, Progress};
use vmbake_manifest::OS_IMAGE;
use vmbake_manifest::Target;
use vmbake_manifest::{Content, Manifest, ManifestError, PinnedAccounts, Proof};

use entry::{note_date, resolve};
use open::{Entry, Open, path};
use pin::Pin;

pub use check::{Newer, newer};
pub use error::{EntryError, UpdateError};
pub use packages::explain;
pub use requested::{RequestError, UpstreamRequests};

mod check;
mod entry;
mod error;
mod open;
mod order;
mod packages;
mod pin;
mod requested;

/// The parameters of an update.
#[derive(Debug)]
pub struct UpdateRequest {
    /// The manifests.
    pub targets: Vec<Target>,
    /// Their directory.
    pub folder: PathBuf,
    /// Entries to resolve again; if not empty, no others are resolved.
    pub only: BTreeSet<String>,
    /// Whether to resolve all entries again.
    pub refresh: bool,
    /// The package requests of layers, in order, by manifest.
    pub packages: BTreeMap<Target, Requests>,
    /// Manifests of images that are made of packages, in place of a base image, though no layer says so.
    pub on_packages: BTreeSet<Target>,
    /// The download requests of layers, by manifest; unknown for missing manifests.
    pub upstreams: BTreeMap<Target, UpstreamRequests>,
    /// Number of entries to resolve concurrently.
    pub threads: NonZeroUsize,
}

type Job<'a> = (&'a Open<'a>, Entry<'a>);

/// The newest `Date` of each archive and suite that the manifests of a directory have seen.
pub fn seen(
    sources: &Sources,
    folder: &Path,
    targets: &[Target],
) -> Result<BTreeMap<(String, String), Timestamp>, ManifestError> {
    let mut seen = BTreeMap::new();
    let mut add = |archive: &String, suite: &String, date: Timestamp| {
        let newest = seen.entry((archive.clone(), suite.clone())).or_insert(date);
        *newest = date.max(*newest);
    };
    let listed = sources.targets();
    let all: BTreeSet<&Target> = listed.iter().chain(targets).collect();
    for target in all {
        let path = path(folder, target);
        if path.symlink_metadata().is_err() {
            continue;
        }
        let manifest = Manifest::load(&path)?;
        let content = manifest.content();
        for (archive, suites) in &content.seen {
            suites.iter().for_each(|(suite, date)| add(archive, suite, *date));
        }
        for dependency in content.dependencies.values() {
            if let Some(Proof::Apt { archive, suite, date, .. }) = &dependency.proof {
                add(archive, suite, *date);
            }
        }
    }
    Ok(seen)
}

/// Updates manifests. Entries that cannot be resolved are reported and skipped; the others are kept.
pub fn update(request: &UpdateRequest, resolver: &Resolver<'_>, progress: &Progress) -> Result<(), UpdateError> {
    let open = request.open(resolver.sources)?;
    request.check_names(resolver.sources, &open)?;
    let of_layers = |open: &&Open<'_>| open.is_without_base && !request.on_packages.contains(open.target);
    if let Some((open, base)) = open.iter().find(of_layers).zip(resolver.base.as_ref()) {
        return Err(UpdateError::NoBase { target: open.target.name(), option: base.option() });
    }
    requested::check(request, resolver.sources)?;
    let prover = resolver.prover();
    let (mut total, mut failures) = (0, Vec::new());
    // Entries that require the version of another one come after it, when that is known.
    for second in [false, true] {
        let jobs = open.iter().flat_map(|open| request.jobs(open, resolver, &prover, second, progress));
        let jobs: Vec<Job<'_>> = jobs.collect();
        total += jobs.len();
        let results = for_each(jobs, request.threads, |(open, entry)| {
            let kept = request.pin(open, entry, resolver).and_then(|pin| {
                let result = resolve(resolver, &prover, open, entry, Some(&pin));
                let emit = |error: &EntryError| progress.emit(renewing(open, entry, error));
                result.inspect_err(|error| resolver.received.suspend(|| emit(error))).ok()
            });
            let result = kept.map_or_else(|| resolve(resolver, &prover, open, entry, None), Ok);
            let failure = result.is_err().then_some(entry);
            let event = result.unwrap_or_else(|error| failed(open, entry, &error));
            resolver.received.suspend(|| progress.emit(event));
            failure
        });
        failures.extend(results.into_iter().flatten());
    }
    resolver.received.finish_and_clear();
    if !failures.is_empty() {
        return Err(UpdateError::incomplete(&failures, total, resolver));
    }
    if request.only.is_empty() {
        open.iter().try_for_each(|open| open.update_requests(resolver.sources))?;
    }
    // The required packages depend on the base, and on other packages in the manifest.
    open.iter().try_for_each(|open| packages::resolve(request, open, resolver, &prover, progress))?;
    open.iter().flat_map(snapshots).for_each(|note| progress.emit(Event::Note { path: None, note }));
    Ok(())
}

/// The snapshots that a manifest pins packages from, as text.
fn snapshots(open: &Open<'_>) -> BTreeSet<String> {
    let content = open.content();
    let proofs = content.dependencies.values().filter_map(|entry| entry.proof.as_ref());
    let text = |proof: &Proof| match proof {
        Proof::Apt { archive, suite, snapshot: Some(snapshot), .. } => {
            Some(format!("{}: archive {archive}, {suite}: {snapshot}", open.target.name()))
        }
        _ => None,
    };
    proofs.filter_map(text).collect()
}

/// Pins the IDs of accounts in the manifest of a target; returns whether the manifest has changed.
pub fn pin_accounts(
    request: &UpdateRequest,
    sources: &Sources,
    target: &Target,
    accounts: PinnedAccounts,
) -> Result<bool, UpdateError> {
    let open = Open::load(path(&request.folder, target), target, sources.system(target)?)?;
    if open.content().accounts.as_ref() == Some(&accounts) {
        return Ok(false);
    }
    let change = |content: &mut Content| {
        content.accounts = Some(accounts);
        Ok(())
    };
    open.change(change).map_err(|source| UpdateError::Packages { target: target.name(), source: Box::new(source) })?;
    Ok(true)
}

/// The event for an entry whose pinned proof is not valid.
fn renewing(open: &Open<'_>, entry: Entry<'_>, error: &(dyn std::error::Error + 'static)) -> Event {
    Event::Renewing { manifest: open.target.name(), name: entry.name().to_owned(), reason: escape::chain(error) }
}

/// The event for an entry that could not be resolved.
fn failed(open: &Open<'_>, entry: Entry<'_>, error: &(dyn std::error::Error + 'static)) -> Event {
    Event::Failed { manifest: open.target.name(), name: entry.name().to_owned(), reason: escape::chain(error) }
}

impl UpdateRequest {
    fn open<'a>(&'a self, sources: &'a Sources) -> Result<Vec<Open<'a>>, UpdateError> {
        let open = |target: &'a Target| {
            let system = sources.system(target)?;
            Ok(Open::load(path(&self.folder, target), target, system)?
                .asking(self.upstreams.get(target), self.packages.get(target)))
        };
        self.targets.iter().map(open).collect()
    }

    fn check_names(&self, sources: &Sources, open: &[Open<'_>]) -> Result<(), UpdateError> {
        let known = |name: &String| {
            let of_target = |target: &Target| {
                sources.dependencies(target).any(|source| source.name == *name)
                    || sources.images(target).any(|source| source.image == *name)
            };
            let is_asked = || open.iter().any(|open| open.requested().any(|entry| entry.name() == name));
            let is_package = || open.iter().any(|open| self.knows_package(open, name));
            name == OS_IMAGE || self.targets.iter().any(of_target) || is_asked() || is_package()
        };
        match self.only.iter().find(|name| !known(name)) {
            Some(name) => {
                let targets = self.targets.iter().map(Target::name).collect::<Vec<_>>().join(", ");
                Err(UpdateError::UnknownName { name: name.clone(), targets })
            }
            None => Ok(()),
        }
    }

    fn asks_for(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.contains(name)
    }

    /// The entries of a manifest to resolve: those requested, and those that cannot be verified.
    fn jobs<'a>(
        &self,
        open: &'a Open<'a>,
        resolver: &Resolver<'a>,
        prover: &Prover<'_>,
        second: bool,
        progress: &Progress,
    ) -> Vec<Job<'a>> {
        let is_proven = |entry: Entry<'_>| {
            open.is_proven(entry, prover).unwrap_or_else(|error| {
                // A pin that can be proven is not renewed.
                if self.pin(open, entry, resolver).is_none() {
                    progress.emit(renewing(open, entry, &error));
                }
                false
            })
        };
        let wanted = |entry: &Entry<'_>| {
            let again = self.again(open, *entry, resolver);
            entry.needs().is_some() == second && self.asks_for(entry.name()) && (again || !is_proven(*entry))
        };
        open.entries(resolver.sources).filter(wanted).map(|entry| (open, entry)).collect()
    }

    /// Whether to resolve a proven entry again.
    fn again(&self, open: &Open<'_>, entry: Entry<'_>, resolver: &Resolver<'_>) -> bool {
        let own_image = matches!(entry, Entry::OsImage)
            && match &resolver.base {
                None => false,
                Some(WantedBase::Published) => open.is_own(),
                Some(_) => true,
            };
        let is_past = resolver.at.is_some() && matches!(entry.version(open), Some(VersionSource::Apt { .. }));
        // As of a past date, only packages can be resolved again.
        let is_named = !self.only.is_empty() && resolver.at.is_none();
        self.refresh || is_named || own_image || is_past
    }

    /// The pin of an entry without a proof, which is kept if it can be proven.
    fn pin(&self, open: &Open<'_>, entry: Entry<'_>, resolver: &Resolver<'_>) -> Option<Pin> {
        if self.again(open, entry, resolver) { None } else { open.unproven(entry) }
    }
}
