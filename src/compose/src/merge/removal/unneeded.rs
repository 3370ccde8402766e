//! Packages that `apt-get autoremove` would remove: installed only for others, and needed by none that stays. As by default in apt, a
//! recommended or suggested package is needed.

use std::collections::{BTreeMap, BTreeSet};

use super::UNREMOVABLE;
use crate::merge::status::Status;
use crate::stage::Control;
use vmbake_manifest::relation::{self, Operator, Relation};

const NEEDS: [&str; 4] = ["Pre-Depends", "Depends", "Recommends", "Suggests"];

/// The packages that nothing needs, of those in `auto`.
pub(super) fn find(status: &Status, auto: &BTreeSet<String>) -> BTreeSet<String> {
    let all: Vec<&Control> = status.unpacked().collect();
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, control) in all.iter().enumerate() {
        for name in std::iter::once(name(control).to_owned()).chain(provided(control).map(|provided| provided.name)) {
            by_name.entry(name).or_default().push(number);
        }
    }
    let is_root = |control: &Control| {
        !auto.contains(name(control)) || UNREMOVABLE.iter().any(|field| control.get(field) == Some("yes"))
    };
    let mut todo: Vec<usize> =
        (0..all.len()).filter(|number| all.get(*number).is_some_and(|one| is_root(one))).collect();
    let mut is_needed: BTreeSet<usize> = todo.iter().copied().collect();
    while let Some(number) = todo.pop() {
        let Some(control) = all.get(number) else { continue };
        let groups = NEEDS.iter().filter_map(|field| control.get(field).and_then(relation::groups));
        for relation in groups.flatten().flatten() {
            let found = by_name.get(&relation.name).into_iter().flatten();
            let found = found.filter(|number| all.get(**number).is_some_and(|control| is_meant(control, &relation)));
            todo.extend(found.filter(|number| is_needed.insert(**number)));
        }
    }
    let rest = all.iter().enumerate().filter(|(number, _)| !is_needed.contains(number));
    rest.map(|(_, control)| name(control).to_owned()).collect()
}

fn name(control: &Control) -> &str {
    control.get("Package").unwrap_or_default()
}

fn provided(control: &Control) -> impl Iterator<Item = Relation> {
    control.get("Provides").and_then(relation::groups).unwrap_or_default().into_iter().flatten()
}

/// Whether a relation is about a package, or about what it provides.
fn is_meant(control: &Control, relation: &Relation) -> bool {
    let version = control.get("Version").and_then(|version| version.parse().ok());
    let is_itself = relation.name == name(control) && relation.accepts(version.as_ref());
    is_itself
        || provided(control).any(|provided| {
            let version = match provided.version {
                Some((Operator::Equal, version)) => Some(version),
                _ => None,
            };
            provided.name == relation.name && relation.accepts(version.as_ref())
        })
}
