//! Checks the part of a layer in the first-boot plan, with the layers that it requires and without an image.

use std::collections::{BTreeMap, BTreeSet};

use super::{Diagnostic, PlanFault, Surroundings};
use crate::findings::Found;
use crate::{Install, Layer, validate};
use vmbake_common::paths::is_at_or_below;

/// Directories of units that layers may add.
const UNIT_DIRS: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system"];

/// What a layer's part of the plan adds to what is wrong. With `accounts` off, accounts are left to the files of the image.
pub fn check(layer: &Layer, all: &BTreeMap<String, &Layer>, accounts: bool) -> Vec<Found> {
    let name = &layer.schema.name;
    let (own, others): (Vec<_>, Vec<_>) =
        faults(layer, all, accounts).into_iter().partition(|fault| fault.source.layer == *name);
    let mut found: Vec<Found> = own
        .into_iter()
        .map(|PlanFault { source, warning, message }| {
            let key = is_key(&source.pointer);
            Found { pointer: source.pointer, key, warning, message }
        })
        .collect();
    if others.is_empty() {
        return found;
    }
    // What is wrong in a layer alone is told there; what is left is wrong only when these layers come together.
    let required = layer.schema.requires.iter().filter_map(|required| all.get(&required.name));
    let known: BTreeSet<PlanFault> = required.flat_map(|layer| faults(layer, all, accounts)).collect();
    found.extend(others.into_iter().filter(|fault| !known.contains(fault)).map(|fault| Found {
        pointer: "/requires".to_owned(),
        key: false,
        warning: fault.warning,
        message: fault.to_string(),
    }));
    found
}

/// Whether an entry of the plan as a whole is meant, such as `/first_boot/variables/X`, and not a value in it.
fn is_key(pointer: &str) -> bool {
    let names: Vec<&str> = pointer.split('/').skip(2).collect();
    matches!(names.as_slice(), [] | [_]) || matches!(names.as_slice(), [map, _] if !["inputs", "receive"].contains(map))
}

/// What is wrong with the plan of a layer and those that it requires.
fn faults(layer: &Layer, all: &BTreeMap<String, &Layer>, accounts: bool) -> Vec<PlanFault> {
    let mut layers = Vec::new();
    visit(&layer.schema.name, all, &mut BTreeSet::new(), &mut layers);
    // Which architecture it is does not matter to what is checked here.
    let (compiled, clashes) = super::join(layers.iter().map(|layer| &layer.schema), "{multiarch}");
    let mut faults = super::check(&compiled, &clashes, &layers, &LayersOnly { layers: &layers, accounts });
    // Other keys of layer.json have their own rules.
    faults.retain(|fault| fault.source.is_of_part());
    faults
}

/// Puts a layer behind those that it requires, as far as they are there.
fn visit<'a>(name: &str, all: &BTreeMap<String, &'a Layer>, seen: &mut BTreeSet<String>, order: &mut Vec<&'a Layer>) {
    let Some(layer) = all.get(name).filter(|_| seen.insert(name.to_owned())) else { return };
    for required in &layer.schema.requires {
        visit(&required.name, all, seen, order);
    }
    order.push(layer);
}

/// The contents of an image, as far as they are known from layers.
struct LayersOnly<'a> {
    layers: &'a [&'a Layer],
    accounts: bool,
}

impl LayersOnly<'_> {
    /// Whether something may come from packages, whose files are not known yet.
    fn has_packages(&self) -> bool {
        let mut artifacts = self.layers.iter().flat_map(|layer| layer.schema.installs());
        artifacts.any(|(.., install)| matches!(install, Install::Deb))
    }

    fn brings(&self, path: &str) -> bool {
        self.layers.iter().any(|layer| {
            layer.files.contains_key(path) || layer.schema.installs().any(|(.., install)| places(install, path))
        })
    }
}

/// Whether an artifact becomes the file `path`, as far as that can be said without it.
fn places(install: &Install, path: &str) -> bool {
    match install {
        Install::Deb => false,
        Install::File { path: file, .. } => file == path,
        Install::Tar { path: dir, strip, members, .. } | Install::Zip { path: dir, strip, members } => {
            let Some(rest) = path.strip_prefix(dir.as_str()).and_then(|rest| rest.strip_prefix('/')) else {
                return false;
            };
            let place = |member: &String| member.splitn(strip + 1, '/').nth(*strip).map(str::to_owned);
            // A directory whose name is stripped completely may contain any path.
            members.is_empty()
                || members.iter().any(|member| place(member).is_none_or(|place| is_at_or_below(rest, place)))
        }
    }
}

impl Surroundings for LayersOnly<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let file = self.layers.iter().rev().find_map(|layer| layer.files.get(path))?;
        String::from_utf8(file.content.clone()).ok()
    }

    fn has_user(&self, name: &str) -> bool {
        let made = || self.layers.iter().any(|layer| layer.schema.users.contains_key(name));
        !self.accounts || validate::is_base_user(name) || made()
    }

    fn has_group(&self, name: &str) -> bool {
        let made = |layer: &&Layer| layer.schema.users.contains_key(name) || layer.schema.groups.contains_key(name);
        !self.accounts || validate::is_base_group(name) || self.layers.iter().any(made)
    }

    fn unit(&self, unit: &str) -> Option<Diagnostic> {
        if let Some(message) = validate::unit(unit) {
            return Some(Diagnostic { warning: false, message });
        }
        match UNIT_DIRS.iter().find_map(|dir| self.text(&format!("{dir}/{unit}"))) {
            Some(text) if validate::has_install(text.as_bytes()) => None,
            Some(_) => {
                let message = format!("unit {unit:?} has no [Install] section that would enable it");
                Some(Diagnostic { warning: false, message })
            }
            None if self.has_packages() => None,
            None => {
                let message = format!("unit {unit:?} is neither in this layer nor in a required layer");
                Some(Diagnostic { warning: true, message })
            }
        }
    }

    fn program(&self, path: &str, of_layer: bool) -> Option<Diagnostic> {
        let unknown = of_layer && !self.brings(path) && !self.has_packages();
        let message = format!("program {path:?} is neither in this layer nor in a required layer");
        unknown.then_some(Diagnostic { warning: true, message })
    }

    fn missing(&self, _path: &str) -> Option<Diagnostic> {
        None
    }

    fn unreachable(&self, _path: &str, _directory: bool) -> Option<Diagnostic> {
        None
    }
}
