//! Packages requested by layers: resolved together, since they affect each other.

use std::collections::{BTreeMap, BTreeSet};

use super::open::Open;
use super::{EntryError, UpdateError, UpdateRequest, note_date};
use crate::closure::{Closure, ClosureError, Inputs, PackageExplanation, Requests};
use crate::prove::Prover;
use crate::resolve::Resolver;
use vmbake_common::escape;
use vmbake_common::progress::{Event, Progress};
use vmbake_manifest::{ClosureRecord, Content, Dependency, Foundation, OS_IMAGE, PackageReason, Target};

impl UpdateRequest {
    /// The requests of the layers of a target.
    fn requests(&self, target: &Target) -> Requests {
        self.packages.get(target).cloned().unwrap_or_default()
    }

    /// Whether a name is that of a requested package, or of a dependency.
    pub(super) fn knows_package(&self, open: &Open<'_>, name: &str) -> bool {
        let requests = self.requests(open.target);
        let asked = requests.iter().flat_map(|(_, request)| &request.packages).any(|wanted| wanted.name == name);
        asked || open.content().dependencies.get(name).is_some_and(|entry| entry.chosen.is_some())
    }

    /// Whether the packages of a manifest must be resolved: another base image may require others.
    fn wants_packages(&self, open: &Open<'_>) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == OS_IMAGE || self.knows_package(open, name))
    }
}

/// Resolves the packages of a manifest again, if the requests have changed, the pins cannot be verified, or all are to
/// be resolved.
pub(super) fn resolve(
    request: &UpdateRequest,
    open: &Open<'_>,
    resolver: &Resolver<'_>,
    prover: &Prover<'_>,
    progress: &Progress,
) -> Result<(), UpdateError> {
    let failed = |source: EntryError| UpdateError::Packages { target: open.target.name(), source: source.into() };
    let requests = request.requests(open.target);
    if !request.wants_packages(open) {
        return Ok(());
    }
    let content = open.content();
    if requests.is_empty() {
        return match content.closure {
            Some(_) => pin(open, prover, None, Vec::new()).map_err(failed),
            None => Ok(()),
        };
    }
    let record = record(&content, &requests).map_err(|source| failed(source.into()))?;
    let named = request.only.iter().any(|name| name != OS_IMAGE);
    let is_now = !request.refresh && resolver.at.is_none();
    let foundation = request.on_packages.contains(open.target).then_some(Foundation::Packages);
    let is_same = content.closure.as_ref() == Some(&record) && content.os.base == foundation;
    if is_now && !named && is_same && are_proven(&content, prover) {
        return Ok(());
    }
    let (closure, dates) = choose(open, &content, resolver, &requests).map_err(|source| failed(source.into()))?;
    let events = events(&open.target.name(), &closure);
    pin(open, prover, Some((record, closure, foundation)), dates).map_err(failed)?;
    events.into_iter().for_each(|event| progress.emit(event));
    Ok(())
}

/// The name of a package, the pinned version and the new one, either of which may be absent.
pub(super) type Change = (String, Option<String>, Option<String>);

/// Packages whose version would change.
pub(super) fn changes(
    request: &UpdateRequest,
    open: &Open<'_>,
    resolver: &Resolver<'_>,
) -> Result<Vec<Change>, ClosureError> {
    let (requests, content) = (request.requests(open.target), open.content());
    if requests.is_empty() || !request.wants_packages(open) {
        return Ok(Vec::new());
    }
    let (closure, _) = choose(open, &content, resolver, &requests)?;
    let gone = content.dependencies.iter().filter(|(_, entry)| entry.chosen.is_some()).map(|(name, _)| name);
    let names: BTreeSet<&String> = closure.packages.keys().chain(gone).collect();
    let version = |of: &BTreeMap<String, Dependency>, name: &String| of.get(name).map(|entry| entry.version.clone());
    let change = |name: &String| (name.clone(), version(&content.dependencies, name), version(&closure.packages, name));
    Ok(names.into_iter().map(change).filter(|(_, pinned, newest)| pinned != newest).collect())
}

/// Explains why a package would be chosen.
pub fn explain(
    request: &UpdateRequest,
    resolver: &Resolver<'_>,
    package: &str,
) -> Result<Vec<PackageExplanation>, UpdateError> {
    let mut found = Vec::new();
    for open in request.open(resolver.sources)? {
        let (requests, content, versions) = (request.requests(open.target), open.content(), open.versions());
        let place = open.place(&versions);
        let explained = Inputs::gather(resolver, place, &content, &requests)
            .and_then(|inputs| inputs.explain(resolver, place, package));
        let failed = |source| failed(&open, source);
        found.push(explained.map_err(failed)?);
    }
    Ok(found)
}

/// An error about the packages of a manifest.
pub(super) fn failed(open: &Open<'_>, source: ClosureError) -> UpdateError {
    UpdateError::Packages { target: open.target.name(), source: Box::new(source.into()) }
}

fn record(content: &Content, requests: &Requests) -> Result<ClosureRecord, ClosureError> {
    let is_without_base = requests.iter().any(|(_, request)| request.system.is_some());
    let base = match &content.os.image {
        _ if is_without_base => None,
        Some(image) => Some(image.digest),
        None => return Err(ClosureError::NoBase { manifest: content.target().name() }),
    };
    Ok(ClosureRecord { base, layers: requests.iter().cloned().collect() })
}

fn are_proven(content: &Content, prover: &Prover<'_>) -> bool {
    let mut chosen = content.dependencies.iter().filter(|(_, entry)| entry.chosen.is_some());
    chosen.all(|(name, entry)| prover.dependency(content, name, entry).is_ok())
}

/// `Date` of each archive and suite used.
type Dates = Vec<(String, String, jiff::Timestamp)>;

fn choose(
    open: &Open<'_>,
    content: &Content,
    resolver: &Resolver<'_>,
    requests: &Requests,
) -> Result<(Closure, Dates), ClosureError> {
    let versions = open.versions();
    let place = open.place(&versions);
    let inputs = Inputs::gather(resolver, place, content, requests)?;
    let closure = inputs.choose(resolver, place)?;
    let is_other = |name: &&String| content.dependencies.get(*name).is_some_and(|entry| entry.chosen.is_none());
    match closure.packages.keys().find(is_other) {
        Some(package) => Err(ClosureError::Name { package: package.clone() }),
        None => Ok((closure, inputs.dates())),
    }
}

/// Replaces the packages in the manifest, if they can be verified from the stored evidence.
fn pin(
    open: &Open<'_>,
    prover: &Prover<'_>,
    found: Option<(ClosureRecord, Closure, Option<Foundation>)>,
    dates: Dates,
) -> Result<(), EntryError> {
    open.change(|content| {
        content.dependencies.retain(|_, entry| entry.chosen.is_none());
        (content.closure, content.os.base) = (None, None);
        if found.is_none() {
            content.accounts = None;
        }
        if let Some((record, closure, foundation)) = found {
            content.os.base = foundation;
            dates.into_iter().for_each(|(archive, suite, date)| note_date(content, archive, suite, date));
            content.evidence.extend(closure.evidence);
            content.dependencies.extend(closure.packages);
            if record.base.is_none() {
                (content.os.image, content.os.boot) = (None, None);
            }
            content.closure = Some(record);
            let chosen = content.dependencies.iter().filter(|(_, entry)| entry.chosen.is_some());
            for (name, entry) in chosen {
                prover.dependency(content, name, entry)?;
            }
        }
        content.drop_unused_evidence();
        Ok(())
    })
}

/// The events for the chosen packages, one for each requested package.
fn events(manifest: &str, closure: &Closure) -> Vec<Event> {
    let manifest = || manifest.to_owned();
    let mut of: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for (chosen, entry) in closure.packages.values().filter_map(|entry| Some((entry.chosen.as_ref()?, entry))) {
        let (count, bytes) = of.entry(chosen.root()).or_default();
        *count += 1;
        *bytes = bytes.saturating_add(entry.size);
    }
    let mut events = Vec::new();
    for (root, (packages, bytes)) in of {
        let version = closure.packages.get(root).map(|entry| entry.version.clone()).unwrap_or_default();
        events.push(Event::PinnedPackages { manifest: manifest(), name: root.to_owned(), version, packages, bytes });
    }
    let kept = closure.kept.iter().cloned();
    events.extend(kept.map(|(name, version)| Event::HasPackage { manifest: manifest(), name, version }));
    for (name, entry) in &closure.packages {
        let Some(PackageReason { reason, upgrades: Some(found), .. }) = &entry.chosen else { continue };
        let (name, version) = (name.clone(), entry.version.clone());
        let (found, reason) = (found.clone(), reason.clone());
        events.push(Event::Upgrades { manifest: manifest(), name, found, version, reason });
    }
    events.extend(closure.removed.iter().cloned().map(|(name, version, layer)| Event::RemovesPackage {
        manifest: manifest(),
        name,
        version,
        layer,
    }));
    let left = closure.left.iter();
    events.extend(left.map(|(name, refusal)| Event::NotUpgraded {
        manifest: manifest(),
        name: name.clone(),
        reason: escape::chain(refusal),
    }));
    events
}
