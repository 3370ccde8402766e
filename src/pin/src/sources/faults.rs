//! Semantic checks of sources: undefined references, URLs without https, impossible proofs.

use std::collections::BTreeSet;

use super::merge::Merged;
use super::schema::Document;
use super::{Demand, Upstream, VersionSource};
use vmbake_manifest::Target;

/// All faults of a file, among `all` files: location and message.
pub(super) fn find(file: &Document, all: &Merged) -> Vec<(String, String)> {
    let schema = &all.schema;
    let mut faults = Vec::new();
    for (name, archive) in &file.archives {
        let place = format!("archives.{name}");
        if !archive.url.start().starts_with("https://") {
            faults.push((place.clone(), "url is not https".to_owned()));
        }
        let form = match (archive.is_flat(), &archive.component) {
            (true, Some(_)) => Some("a flat archive, whose suite ends with `/`, has no component"),
            (false, None) => Some("component is missing; only a flat archive, whose suite ends with `/`, needs none"),
            _ => None,
        };
        faults.extend(form.map(|message| (place.clone(), message.to_owned())));
        let suite = archive.suite.to_string();
        if suite.split('/').any(|part| part == "..") || suite.len() > 1 && suite.starts_with('/') {
            faults.push((place.clone(), format!("suite {suite:?} is outside of the archive")));
        }
        if let Some(other) = archive.also.iter().find(|other| *other == name || !schema.archives.contains_key(*other)) {
            faults.push((place.clone(), format!("also: archive {other} is not listed")));
        }
        if archive.keyring.is_empty() || archive.keyring.contains('/') {
            faults.push((place, format!("keyring {:?} is not the name of a file in trust/", archive.keyring)));
        }
    }
    for (name, system) in &file.systems {
        if let Some(image) = &system.image {
            upstream_faults(schema, &format!("systems.{name}.image"), image, &mut faults);
        }
        if let Some(archive) = system.archive.as_ref().filter(|archive| !schema.archives.contains_key(*archive)) {
            faults.push((format!("systems.{name}"), format!("archive {archive} is not listed")));
        }
        let merged = schema.systems.get(name).unwrap_or(system);
        for (key, lacks) in [
            ("codename", merged.codename.is_none()),
            ("arches", merged.arches.is_empty()),
            ("image", merged.image.is_none()),
        ] {
            faults.extend(lacks.then(|| (format!("systems.{name}"), format!("{key} is missing"))));
        }
    }
    for (index, source) in file.dependencies.iter().enumerate() {
        let place = format!("dependencies[{index}] ({})", source.name);
        upstream_faults(schema, &place, &source.upstream, &mut faults);
        version_faults(schema, &place, &source.upstream.version, &mut faults);
    }
    for (index, image) in file.images.iter().enumerate() {
        version_faults(schema, &format!("images[{index}] ({})", image.image), &image.tag, &mut faults);
    }
    faults.extend(repeated(file, &all.targets));
    faults
}

fn upstream_faults(schema: &Document, place: &str, upstream: &Upstream, faults: &mut Vec<(String, String)>) {
    let mut fault = |message: &str| faults.push((place.to_owned(), message.to_owned()));
    if let VersionSource::Apt { archive, .. } = &upstream.version
        && !schema.archives.contains_key(archive)
    {
        fault(&format!("archive {archive} is not listed"));
    }
    if matches!(upstream.proof, Demand::Stated(_)) {
        fault("proof stated is only for downloads of layers");
    }
    upstream.faults().into_iter().for_each(fault);
}

fn version_faults(schema: &Document, place: &str, version: &VersionSource, faults: &mut Vec<(String, String)>) {
    let Some(needed) = version.needs() else { return };
    let mut found = schema.dependencies.iter().filter(|source| source.name == needed).peekable();
    if found.peek().is_none() {
        faults.push((place.to_owned(), format!("requires the version of {needed}, which is not listed")));
    } else if found.any(|source| source.upstream.version.needs().is_some()) {
        faults.push((
            place.to_owned(),
            format!("requires the version of {needed}, which in turn requires the version of another entry"),
        ));
    }
}

/// Entries that would give a manifest two artifacts of the same name.
fn repeated(file: &Document, targets: &[Target]) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for target in targets {
        let mut seen = BTreeSet::new();
        for source in file.dependencies.iter().filter(|source| source.serves(target)) {
            if !seen.insert(&source.name) {
                let message = format!("duplicate {} for {}", source.name, target.name());
                faults.push(("dependencies".to_owned(), message));
            }
        }
    }
    faults
}
