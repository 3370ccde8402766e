//! Units as systemd 257 loads them: the file, and the drop-ins of all names of the unit, in the order in which they are read.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::Kind;

use super::lookup::{ConfigLinks, Lookup, dirs, is_masked, lookup};
use super::{Scope, UnitFault};
use crate::merge::MergeError;
use crate::merge::place::Target;
pub use vmbake_layer::{is_wants, unit_file, unit_form, unit_refusal};

/// All names of units, by the name of the unit that they lead to.
pub(in crate::merge) struct Names(BTreeMap<String, BTreeSet<String>>);

/// The files of a unit: path and content.
pub(super) type Files = Vec<(String, Vec<u8>)>;

impl Names {
    /// Finds the names of the system's units: those of files, links and directories of drop-ins, and those that others want.
    pub(in crate::merge) fn find(target: &Target) -> Self {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in candidates(target) {
            if let Ok(Lookup::Unit(unit)) = lookup(target, Scope::System, &name, ConfigLinks::Follow) {
                found.entry(unit.name).or_default().insert(name);
            }
        }
        Self(found)
    }

    /// The names of all units that are not aliases.
    pub(super) fn units(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The unit's file and its drop-ins.
    pub(super) fn files(&self, target: &Target, unit: &str) -> Option<Files> {
        let Ok(Lookup::Unit(found)) = lookup(target, Scope::System, unit, ConfigLinks::Follow) else { return None };
        let aliases = self.0.get(&found.name).into_iter().flatten().filter(|name| **name != found.name);
        let names: Vec<&str> = [found.name.as_str()].into_iter().chain(aliases.map(String::as_str)).collect();
        let paths = [found.file].into_iter().chain(drop_ins(target, &names));
        Some(
            paths
                .filter_map(|path| Some((target.bytes(&path).ok()?, path)))
                .map(|(bytes, path)| (path, bytes))
                .collect(),
        )
    }

    /// Fails if systemd refuses a unit together with its drop-ins, of which a layer has some.
    pub(in crate::merge) fn check(&self, target: &Target) -> Result<(), MergeError> {
        for unit in self.0.keys() {
            let Some(files) = self.files(target, unit).filter(|files| files.len() > 1) else { continue };
            let Some(layer) = files.iter().rev().find_map(|(path, _)| target.layer_at(path)) else { continue };
            let Some(refusal) = unit_refusal(unit, &files) else { continue };
            let (layer, unit) = (layer.to_owned(), unit.clone());
            let fault = UnitFault::Refused { place: refusal.place, message: refusal.message };
            return Err(MergeError::Unit { layer, unit, fault });
        }
        Ok(())
    }
}

/// The units that others want or need, by links.
pub(super) fn wanted(target: &Target) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for dir in dirs(Scope::System) {
        for (name, _) in entries(target, dir).into_iter().filter(|(name, is_directory)| *is_directory && is_wants(name))
        {
            names.extend(entries(target, &format!("{dir}/{name}")).into_iter().map(|(name, _)| name.to_owned()));
        }
    }
    names
}

fn entries<'a>(target: &'a Target, dir: &str) -> Vec<(&'a str, bool)> {
    let Ok(id) = target.tree.resolve(dir.as_bytes()) else { return Vec::new() };
    let Kind::Directory(entries) = &target.tree.inode(id).kind else { return Vec::new() };
    let is_directory = |id| matches!(target.tree.inode(id).kind, Kind::Directory(_));
    entries.iter().filter_map(|(name, id)| Some((str::from_utf8(name).ok()?, is_directory(*id)))).collect()
}

fn candidates(target: &Target) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for dir in dirs(Scope::System) {
        for (name, is_directory) in entries(target, dir) {
            match (is_directory, name.strip_suffix(".d")) {
                (false, _) => {
                    names.insert(name.to_owned());
                }
                (true, Some(unit)) => {
                    names.insert(unit.to_owned());
                }
                (true, None) => {}
            }
        }
    }
    names.extend(wanted(target));
    names.retain(|name| unit_form(name).is_some());
    names
}

/// The drop-ins of a unit with these names, by their own names. A directory of an earlier path hides files of the same name in later ones,
/// and in each path the unit's own directory those of its template and its prefixes; those of all units of the type come last.
fn drop_ins(target: &Target, names: &[&str]) -> Vec<String> {
    let kind = names.first().and_then(|name| name.rsplit_once('.')).map_or("", |(_, kind)| kind);
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let levels = names.iter().map(|name| levels(name)).chain([vec![kind.to_owned()]]);
    for level in levels {
        for dir in dirs(Scope::System).iter().flat_map(|dir| level.iter().map(move |name| format!("{dir}/{name}.d"))) {
            for (name, _) in entries(target, &dir) {
                if name.ends_with(".conf") && !name.starts_with('.') {
                    found.entry(name.to_owned()).or_insert_with(|| format!("{dir}/{name}"));
                }
            }
        }
    }
    found.into_values().filter(|path| !is_masked(target, path)).collect()
}

/// The names of a unit for directories of drop-ins: its own, that of its template, and those of its prefixes, which end with a dash.
fn levels(unit: &str) -> Vec<String> {
    let mut found = vec![unit.to_owned()];
    let template = Some(unit_file(unit)).filter(|template| template != unit);
    for name in template.into_iter().chain(prefix(unit)) {
        let more: Vec<String> = levels(&name).into_iter().filter(|name| !found.contains(name)).collect();
        found.extend(more);
    }
    found
}

/// The name with the next shorter prefix: `a-b-.service` of `a-b-c.service`. That of a template is not one.
fn prefix(unit: &str) -> Option<String> {
    let (stem, kind) = unit.rsplit_once('.')?;
    let (stem, instance) = stem.find('@').map_or((stem, ""), |at| stem.split_at(at));
    let instance = if instance == "@" { "" } else { instance };
    let at = stem.strip_suffix('-').unwrap_or(stem).rfind('-')?;
    Some(format!("{}{instance}.{kind}", &stem[..=at]))
}

#[cfg(test)]
mod tests {
    use super::levels;

    #[test]
    fn levels_are_those_of_systemd() {
        for (unit, expected) in [
            ("a.service", &["a.service"][..]),
            ("a-b-c.service", &["a-b-c.service", "a-b-.service", "a-.service"]),
            ("a-.service", &["a-.service"]),
            ("a-b@x-y.service", &["a-b@x-y.service", "a-b@.service", "a-.service", "a-@x-y.service", "a-@.service"]),
            (
                "p-q-t@1.service",
                &[
                    "p-q-t@1.service",
                    "p-q-t@.service",
                    "p-q-.service",
                    "p-.service",
                    "p-q-@1.service",
                    "p-q-@.service",
                    "p-@1.service",
                    "p-@.service",
                ],
            ),
            ("-.mount", &["-.mount"]),
        ] {
            assert_eq!(levels(unit), expected, "{unit}");
        }
    }
}
