//! Changes of an upgrade: the entries of a bundle in the old and the new lock in, a comparison as JSON and text out.
//!
//! Both entries contain the footprints of their versions, so the old bundle is not needed.

use std::collections::BTreeSet;

use serde::Serialize;

use super::footprint::{BundleFootprint, LockedVariable};
use super::inspect::Lines;
use super::lock::LockedBundle;
use vmbake_common::digest::Digest;
use vmbake_release::version::Version;

/// What an upgrade does with one bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BundleUpgrade {
    /// `PUBLISHER.NAME`.
    pub name: String,
    /// The version that was locked, if one was.
    pub from: Option<Version>,
    /// The version that is locked now.
    pub to: Version,
    /// Digest of its index.
    pub digest: Digest,
    /// Whether it is the bundle that was locked before.
    pub unchanged: bool,
    /// Paths that it writes or changes.
    pub paths: PathChanges,
    pub units: NameChanges,
    /// Variables of the first boot.
    pub variables: VariableChanges,
    /// What a machine keeps.
    pub state: StateChanges,
    /// Requested permissions, each with its key.
    pub asks: NameChanges,
}

/// Paths of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathChanges {
    /// Those of the new one.
    pub added: Vec<String>,
    /// Those of the old one.
    pub removed: Vec<String>,
    /// Those of both, of which the layers say something else now.
    pub changed: Vec<String>,
}

/// Names of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NameChanges {
    /// Those of the new one.
    pub added: Vec<String>,
    /// Those of the old one.
    pub removed: Vec<String>,
}

/// Variables of two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VariableChanges {
    /// Those of the new one.
    pub added: Vec<String>,
    /// Those of the old one.
    pub removed: Vec<String>,
    /// Those without which a machine stops now, and did not before.
    pub newly_required: Vec<String>,
    /// Those of both that have another default now.
    pub defaults: Vec<String>,
}

/// Paths that a machine keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StateChanges {
    /// As before.
    pub kept: Vec<String>,
    /// From now on.
    pub declared: Vec<String>,
    /// No longer: another image may do with them what it likes.
    pub dropped: Vec<String>,
}

impl BundleUpgrade {
    /// Compares what was locked of a bundle with what is.
    pub fn between(name: &str, old: Option<&LockedBundle>, new: &LockedBundle) -> Self {
        // Of a lock that does not say what the old version brings, everything counts as new.
        let none = BundleFootprint::default();
        let brings = |locked: Option<&LockedBundle>| locked.and_then(|locked| locked.brings.clone());
        let unchanged = old.is_some_and(|old| old.digest == new.digest);
        let before = brings(if unchanged { Some(new) } else { old }).unwrap_or_default();
        let after = new.brings.as_ref().unwrap_or(&none);
        let (added, removed, both) = sorted(before.paths.keys(), after.paths.keys());
        let is_changed = |path: &String| before.paths.get(path) != after.paths.get(path);
        let changed = both.into_iter().filter(is_changed).collect();
        let (declared, dropped, kept) = sorted(&before.state, &after.state);
        let asked = |(key, value): (&str, &str)| format!("{key} {value}");
        Self {
            name: name.to_owned(),
            from: old.map(|old| old.version.clone()),
            to: new.version.clone(),
            digest: new.digest,
            unchanged,
            paths: PathChanges { added, removed, changed },
            units: names(&before.units, &after.units),
            variables: variables(&before, after),
            state: StateChanges { kept, declared, dropped },
            asks: NameChanges {
                added: after.asks.beyond(&before.asks).into_iter().map(asked).collect(),
                removed: before.asks.beyond(&after.asks).into_iter().map(asked).collect(),
            },
        }
    }

    /// Lines for people.
    pub fn to_text(&self) -> String {
        let Self { name, from, to, digest, unchanged, paths, units, variables, state, asks } = self;
        let mut lines = Lines::default();
        let versions = match from {
            _ if *unchanged => format!("{to}, unchanged"),
            Some(from) => format!("{from} -> {to}"),
            None => format!("{to}, new"),
        };
        lines.add("bundle", &format!("{name} {versions}"));
        lines.add("digest", &digest.to_string());
        for (what, how, all) in [
            ("path", "added", &paths.added),
            ("path", "removed", &paths.removed),
            ("path", "changed", &paths.changed),
            ("unit", "added", &units.added),
            ("unit", "removed", &units.removed),
            ("variable", "added", &variables.added),
            ("variable", "removed", &variables.removed),
            ("variable", "newly required", &variables.newly_required),
            ("variable", "other default", &variables.defaults),
            ("state", "kept", &state.kept),
            ("state", "newly declared", &state.declared),
            ("state", "dropped", &state.dropped),
            ("asks", "added", &asks.added),
            ("asks", "removed", &asks.removed),
        ] {
            lines.each(what, all.iter().map(|name| format!("{how}: {name}")));
        }
        lines.into_text()
    }
}

fn names(before: &BTreeSet<String>, after: &BTreeSet<String>) -> NameChanges {
    let (added, removed, _) = sorted(before, after);
    NameChanges { added, removed }
}

fn variables(before: &BundleFootprint, after: &BundleFootprint) -> VariableChanges {
    let (added, removed, both) = sorted(before.variables.keys(), after.variables.keys());
    let is_new = |(name, variable): &(&String, &LockedVariable)| {
        variable.is_demanded() && !before.variables.get(*name).is_some_and(LockedVariable::is_demanded)
    };
    let default = |of: &BundleFootprint, name: &String| of.variables.get(name).map(|variable| variable.default.clone());
    VariableChanges {
        added,
        removed,
        newly_required: after.variables.iter().filter(is_new).map(|(name, _)| name.clone()).collect(),
        defaults: both.into_iter().filter(|name| default(before, name) != default(after, name)).collect(),
    }
}

/// Those that only the new list has, those that only the old one has, and those of both.
fn sorted<'a>(
    before: impl IntoIterator<Item = &'a String>,
    after: impl IntoIterator<Item = &'a String>,
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (before, after): (BTreeSet<&String>, BTreeSet<&String>) =
        (before.into_iter().collect(), after.into_iter().collect());
    let owned = |names: Vec<&&String>| names.into_iter().map(|name| (*name).clone()).collect();
    (
        owned(after.difference(&before).collect()),
        owned(before.difference(&after).collect()),
        owned(before.intersection(&after).collect()),
    )
}
