//! The footprint of a bundle version: paths, units, variables, state and permissions. The lock file records it, so that the next version
//! can be compared with it when the bundle is no longer available.
//!
//! It is derived from the document and the layers alone. Therefore an archive counts as the directory that it is unpacked to.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::contents::BundleContents;
use super::document::{BundleDocument, Permissions};
use super::error::BundleError;
use super::foreign_units::UNITS;
use super::inspect::variables;
use vmbake_common::digest::Digest;
use vmbake_layer::effects::{Effect, EffectKind, effects};
use vmbake_layer::real_path::real;
use vmbake_layer::{Install, Layer};

/// The footprint of a bundle version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleFootprint {
    /// Paths that it writes or changes, with a digest of what it does there.
    pub paths: BTreeMap<String, Digest>,
    pub units: BTreeSet<String>,
    /// Variables of the first boot.
    pub variables: BTreeMap<String, LockedVariable>,
    /// What a machine keeps.
    pub state: BTreeSet<String>,
    pub asks: Permissions,
}

/// A variable of the first boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedVariable {
    /// What it is without a value.
    pub default: String,
    /// Whether a machine must be given a value.
    pub required: bool,
}

impl LockedVariable {
    /// Whether a machine without a value for it stops.
    pub fn is_demanded(&self) -> bool {
        self.required && self.default.is_empty()
    }
}

impl BundleFootprint {
    /// The footprint of a bundle.
    pub fn of(bundle: &BundleContents) -> Result<Self, BundleError> {
        let all: Vec<Effect> = bundle.own.iter().flat_map(effects).collect();
        let unit = |effect: &Effect| {
            let (folder, unit) = effect.value.rsplit_once('/')?;
            (effect.kind == EffectKind::Write && UNITS.contains(&folder)).then(|| unit.to_owned())
        };
        let locked = variables(bundle).into_iter().map(|one| {
            let variable = LockedVariable { default: one.default, required: one.required };
            (one.name, variable)
        });
        Ok(Self {
            units: all.iter().filter_map(unit).collect(),
            paths: paths(bundle, all)?,
            variables: locked.collect(),
            state: bundle.document.state.clone(),
            asks: bundle.document.asks.clone(),
        })
    }
}

/// Every path, with a digest of all that is said of it.
fn paths(bundle: &BundleContents, effects: Vec<Effect>) -> Result<BTreeMap<String, Digest>, BundleError> {
    let mut descriptions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Effect { value, pattern, key, .. } in effects.into_iter().filter(|effect| effect.kind.asked_by() == "paths") {
        descriptions.entry(pattern.unwrap_or(value)).or_default().insert(key.to_owned());
    }
    for layer in &bundle.own {
        for (path, what) in details(layer, &bundle.document)? {
            descriptions.entry(real(&path)).or_default().insert(what);
        }
    }
    let digest = |words: BTreeSet<String>| Digest::of(words.into_iter().collect::<Vec<_>>().join("\n").as_bytes());
    Ok(descriptions.into_iter().map(|(path, words)| (path, digest(words))).collect())
}

/// What a layer says of its paths: contents, modes, owners, targets and artifacts.
fn details(layer: &Layer, document: &BundleDocument) -> Result<Vec<(String, String)>, BundleError> {
    let schema = &layer.schema;
    let mut found: Vec<(String, String)> = Vec::new();
    for (path, file) in &layer.files {
        found.push((path.clone(), Digest::of(&file.content).to_string()));
    }
    for (path, rule) in &schema.files {
        found.push((path.clone(), serde_json::to_string(&rule.ownership(path))?));
    }
    for (path, rule) in &schema.directories {
        let kept = if rule.mode.is_none() { " unless it exists" } else { "" };
        found.push((path.clone(), serde_json::to_string(&rule.ownership())? + kept));
    }
    for (path, ownership) in &schema.modes {
        found.push((path.clone(), serde_json::to_string(ownership)?));
    }
    found.extend(schema.symlinks.iter().map(|(path, target)| (path.clone(), format!("-> {target}"))));
    for (_, name, install) in schema.installs() {
        let path = match install {
            Install::File { path, .. } | Install::Tar { path, .. } | Install::Zip { path, .. } => path,
            Install::Deb => "/",
        };
        for (place, all) in &document.artifacts {
            found.extend(all.get(name).map(|entry| (path.to_owned(), format!("{name} {place} {}", entry.digest))));
        }
    }
    for file in schema.first_boot.iter().flat_map(|plan| &plan.files) {
        found.push((file.path.clone(), serde_json::to_string(file)?));
    }
    Ok(found)
}
