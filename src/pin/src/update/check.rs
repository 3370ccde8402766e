//! Lists entries with a newer version upstream, without changing anything.

use serde::Serialize;

use super::open::{Entry, Open};
use super::order::is_downgrade;
use super::{Job, UpdateError, UpdateRequest, failed, packages, requested};
use crate::resolve::{ResolveError, Resolver};
use vmbake_common::parallel::for_each;
use vmbake_common::progress::Progress;

/// An entry of a manifest with a newer version upstream, or without a pinned one.
#[derive(Clone, Debug, Serialize)]
pub struct Newer {
    pub manifest: String,
    pub name: String,
    pub pinned: Option<String>,
    /// The newest version; absent if the entry is no longer required.
    pub newest: Option<String>,
}

/// Entries whose newest version is not the pinned one.
pub fn newer(request: &UpdateRequest, resolver: &Resolver<'_>, progress: &Progress) -> Result<Vec<Newer>, UpdateError> {
    let open = request.open(resolver.sources)?;
    request.check_names(resolver.sources, &open)?;
    requested::check(request, resolver.sources)?;
    let all = open.iter().flat_map(|open| open.entries(resolver.sources).map(move |entry| (open, entry)));
    let jobs: Vec<Job<'_>> = all.filter(|(_, entry)| request.asks_for(entry.name())).collect();
    let total = jobs.len();
    let results = for_each(jobs, request.threads, |(open, entry)| {
        let result = newest(resolver, open, entry);
        if let Err(error) = &result {
            progress.emit(failed(open, entry, error));
        }
        result.map_err(|_| entry)
    });
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(newer) => found.extend(newer),
            Err(entry) => failures.push(entry),
        }
    }
    if !failures.is_empty() {
        return Err(UpdateError::incomplete(&failures, total, resolver));
    }
    for open in &open {
        let changes = packages::changes(request, open, resolver).map_err(|source| packages::failed(open, source))?;
        let manifest = open.target.name();
        let newer = |(name, pinned, newest)| Newer { manifest: manifest.clone(), name, pinned, newest };
        found.extend(changes.into_iter().map(newer));
    }
    Ok(found)
}

fn newest(resolver: &Resolver<'_>, open: &Open<'_>, entry: Entry<'_>) -> Result<Option<Newer>, ResolveError> {
    let versions = open.versions();
    let place = open.place(&versions);
    let newest = match entry {
        Entry::OsImage if open.is_own() => return Ok(None),
        Entry::OsImage => resolver.version(place, &open.system.image.version)?,
        Entry::Dependency(source) => resolver.version(place, &source.upstream.version)?,
        Entry::Container(image) => resolver.version(place, &image.tag)?,
        Entry::Download(asked) => resolver.version(place, &asked.upstream.version)?,
        Entry::Image(asked) => asked.tag().to_owned(),
    };
    let pinned = open.pinned(entry);
    if let (Some(source), Some(pinned)) = (entry.version(open), &pinned)
        && is_downgrade(source, pinned, &newest)
    {
        return Ok(None);
    }
    let (manifest, name) = (open.target.name(), entry.name().to_owned());
    let is_newer = pinned.as_ref() != Some(&newest);
    Ok(is_newer.then_some(Newer { manifest, name, pinned, newest: Some(newest) }))
}
