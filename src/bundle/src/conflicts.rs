//! Conflicts of bundles with an image and with each other: the layers of the image and all bundles in, all conflicts with both sides out.
//!
//! Only layers and documents are compared, before any artifact is downloaded. The bake detects two archives that contain the same file.

use std::collections::{BTreeMap, BTreeSet};

use super::contents::BundleContents;
use super::document::{BundleDocument, Need};
use super::foreign_units::UNITS;
use vmbake_layer::effects::{Effect, EffectKind, effects};
use vmbake_layer::first_boot::foreign_reads;
use vmbake_layer::real_path::is_below;
use vmbake_layer::{Layer, Ownership, sysctl_entries};
use vmbake_manifest::Target;

/// One side: the image itself, or a bundle.
struct Side<'a> {
    /// What messages call it.
    name: String,
    layers: Vec<&'a Layer>,
    effects: Vec<Effect>,
    document: Option<&'a BundleDocument>,
}

/// All conflicts of an image of `target`, whose own layers these are, with bundles and between them; sorted.
pub fn conflicts<'a>(target: &Target, layers: &'a [Layer], bundles: &[&'a BundleContents]) -> Vec<String> {
    let image = Side {
        name: format!("the image {}", target.kind),
        layers: layers.iter().collect(),
        effects: layers.iter().flat_map(effects).collect(),
        document: None,
    };
    let of_bundle = |bundle: &&'a BundleContents| Side {
        name: format!("bundle {}", bundle.document.title()),
        layers: bundle.own.iter().collect(),
        effects: bundle.own.iter().flat_map(effects).collect(),
        document: Some(&bundle.document),
    };
    let sides: Vec<Side<'a>> = std::iter::once(image).chain(bundles.iter().map(of_bundle)).collect();
    let mut found = twice(bundles);
    unheard(&sides, &mut found);
    for (at, one) in sides.iter().enumerate() {
        for other in sides.iter().skip(at.saturating_add(1)) {
            between(one, other, &mut found);
        }
        if let Some(document) = one.document {
            alone(target, one, document, &sides, &mut found);
            foreign_variables(one, document, &sides, &mut found);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// What two lists of layers cannot both do, each with its name for messages; sorted.
pub fn collisions((one, first): (&str, &[Layer]), (other, second): (&str, &[Layer])) -> Vec<String> {
    let side = |name: &str, layers: &[Layer]| (name.to_owned(), layers.iter().flat_map(effects).collect::<Vec<_>>());
    let ((name, effects), (other_name, other_effects)) = (side(one, first), side(other, second));
    let first = Side { name, layers: first.iter().collect(), effects, document: None };
    let second = Side { name: other_name, layers: second.iter().collect(), effects: other_effects, document: None };
    let mut found = Vec::new();
    between(&first, &second, &mut found);
    found.sort();
    found.dedup();
    found
}

/// Bundles that are there more than once.
fn twice(bundles: &[&BundleContents]) -> Vec<String> {
    let mut titles: Vec<String> = bundles.iter().map(|bundle| bundle.document.title()).collect();
    titles.sort();
    titles
        .windows(2)
        .filter(|pair| pair.first() == pair.last())
        .map(|pair| format!("duplicate bundle {}", pair.first().map_or("", String::as_str)))
        .collect()
}

/// What a bundle needs and the image does not have.
fn alone(target: &Target, own: &Side<'_>, document: &BundleDocument, sides: &[Side<'_>], found: &mut Vec<String>) {
    let mut say = |what: String| found.push(format!("{}: {what}", own.name));
    let is_for = |list: &BTreeSet<String>, value: &String| list.is_empty() || list.contains(value);
    for (what, list, value) in [
        ("os", &document.os, &target.os),
        ("architecture", &document.arch, &target.arch),
        ("kind", &document.kinds, &target.kind),
    ] {
        if !is_for(list, value) {
            let known = list.iter().cloned().collect::<Vec<_>>().join(", ");
            say(format!("does not support {what} {value}: expected one of: {known}"));
        }
    }
    if let (Some(demand), Ok(version)) = (&document.vmbake, env!("CARGO_PKG_VERSION").parse())
        && !demand.admits(&version)
    {
        say(format!("requires vmbake {demand}, found {version}"));
    }
    for need in &document.requires {
        let Need { layer: Some(name), version, .. } = need else { continue };
        let there = sides.iter().flat_map(|side| &side.layers).find(|layer| layer.schema.name == *name);
        match (there, version) {
            (None, _) => say(format!("requires {}, which is missing", need.describe())),
            (Some(layer), Some(demand)) => {
                let version = &layer.schema.version;
                if !version.parse().is_ok_and(|version| demand.admits(&version)) {
                    say(format!("requires {}, found {version}", need.describe()));
                }
            }
            (Some(_), None) => {}
        }
    }
}

/// Variables of other sides that a bundle reads without requiring the layer that declares them.
fn foreign_variables(own: &Side<'_>, document: &BundleDocument, sides: &[Side<'_>], found: &mut Vec<String>) {
    let layers: Vec<&Layer> = sides.iter().flat_map(|side| side.layers.iter().copied()).collect();
    let template = |path: &str| {
        let file = layers.iter().rev().find_map(|layer| layer.files.get(path))?;
        Some(String::from_utf8_lossy(&file.content).into_owned())
    };
    for read in foreign_reads(&own.layers, &document.required_layers().collect(), &layers, &template) {
        let is_other = |side: &&Side<'_>| side.layers.iter().any(|layer| layer.schema.name == read.declared_by);
        let other = sides.iter().find(is_other).map_or("", |side| side.name.as_str());
        let file = read.file.map(|file| format!(", {file}")).unwrap_or_default();
        found.push(format!(
            "{} (layer {}, `{}`{file}) reads variable {}, which {other} (layer {}) declares: expected the layer in `requires`",
            own.name,
            read.layer,
            read.pointer.trim_start_matches('/'),
            read.variable,
            read.declared_by
        ));
    }
}

/// Settings that no machine would ever be told.
fn unheard(sides: &[Side<'_>], found: &mut Vec<String>) {
    let mut plans = sides.iter().flat_map(|side| &side.layers).filter_map(|layer| layer.schema.first_boot.as_ref());
    if plans.any(|plan| plan.inputs.is_some()) {
        return;
    }
    for (side, names) in sides.iter().filter(|side| side.document.is_some()).map(|side| (side, variables(side))) {
        if !names.is_empty() {
            let names = names.into_keys().collect::<Vec<_>>().join(", ");
            found.push(format!("{} has settings ({names}), but no layer of the image has `inputs` of the first boot, such as the layer settings", side.name));
        }
    }
}

/// What two sides cannot both have.
fn between(one: &Side<'_>, other: &Side<'_>, found: &mut Vec<String>) {
    for first in &one.effects {
        for second in &other.effects {
            if let Some(what) = clash(first, second) {
                let (key, other_key) = (first.key, second.key);
                found.push(format!(
                    "{} (layer {}, `{key}`) and {} (layer {}, `{other_key}`): {what}",
                    one.name, first.layer, other.name, second.layer
                ));
            }
        }
    }
    values(one, other, found);
    let mut both = |what: &str, first: BTreeMap<String, String>, second: BTreeMap<String, String>| {
        for (name, value) in first.iter().filter_map(|(name, value)| Some((name, (value, second.get(name)?)))) {
            if value.0 != value.1 || value.0.is_empty() {
                found.push(format!("{} and {}: both have {what} {name}", one.name, other.name));
            }
        }
    };
    both("variable", variables(one), variables(other));
    both("program of `exec`", execs(one), execs(other));
    both("id", ids(one), ids(other));
    both("unit", units(one), units(other));
    both("received file", received(one), received(other));
    both("different values of sysctl", sysctl(one), sysctl(other));
    both("a different mode or owner of directory", directories(one), directories(other));
    if let (Some(first), Some(second)) = (one.document, other.document) {
        let ports =
            |document: &BundleDocument| document.asks.ports.iter().map(|port| (port.clone(), String::new())).collect();
        both("port", ports(first), ports(second));
        for (from, from_name, to, to_name) in
            [(first, &one.name, second, &other.name), (second, &other.name, first, &one.name)]
        {
            for name in from.conflicts.iter().filter(|name| to.provides.contains_key(*name)) {
                found.push(format!("{from_name} conflicts with {name}, which {to_name} provides"));
            }
        }
    }
}

/// Variables of one side that a bundle on the other one would set.
fn values(one: &Side<'_>, other: &Side<'_>, found: &mut Vec<String>) {
    for (setter, reader) in [(one, other), (other, one)].into_iter().filter(|(setter, _)| setter.document.is_some()) {
        for name in set_values(setter).intersection(&known_names(reader)) {
            found.push(format!(
                "{} sets variable {name} in `first_boot`, which {} declares or reads",
                setter.name, reader.name
            ));
        }
    }
}

/// Why two effects of different sides do not go together.
fn clash(first: &Effect, second: &Effect) -> Option<String> {
    use EffectKind::{Change, Directory, Unpack, User, Write};
    let (one, two) = (first.value.as_str(), second.value.as_str());
    let is_same = one == two;
    match (first.kind, second.kind) {
        (User, User) if is_same => Some(format!("both create {one}")),
        (Write, Write) if is_same => Some(format!("both write {one}")),
        (Write | Directory, Write | Directory) if !is_same && one.eq_ignore_ascii_case(two) => {
            Some(format!("{one} and {two} differ only in case"))
        }
        (Write, Directory) | (Directory, Write) if is_same => Some(format!("{one} is a file and a directory")),
        (Write, Write | Directory | Unpack) if is_below(two, one) => Some(format!("{two} is below the file {one}")),
        (Write | Directory | Unpack, Write) if is_below(one, two) => Some(format!("{one} is below the file {two}")),
        (Change, Write) if first.changes(two) => Some(format!("{one} is changed, but {two} belongs to the other")),
        (Write, Change) if second.changes(one) => Some(format!("{two} is changed, but {one} belongs to the other")),
        (Change, Change) if is_same && first.pattern == second.pattern => Some(format!("both change {one}")),
        _ => None,
    }
}

fn variables(side: &Side<'_>) -> BTreeMap<String, String> {
    let plans = side.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
    plans.flat_map(|plan| plan.variables.keys().map(|name| (name.clone(), String::new()))).collect()
}

fn set_values(side: &Side<'_>) -> BTreeSet<String> {
    let plans = side.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
    plans.flat_map(|plan| plan.detect.iter().chain(&plan.values).map(|set| set.name.clone())).collect()
}

/// Every word that may name a variable: those that plans have, and what is in their templates and conditions.
fn known_names(side: &Side<'_>) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = variables(side).into_keys().chain(set_values(side)).collect();
    let mut read = |text: &str| {
        let words = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
        found.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    };
    for layer in &side.layers {
        let Some(Ok(plan)) = layer.schema.first_boot.as_ref().map(serde_json::to_value) else { continue };
        let mut todo = vec![&plan];
        while let Some(next) = todo.pop() {
            match next {
                serde_json::Value::String(text) => {
                    read(text);
                    // Templates may be files of the layer.
                    layer.files.get(text).into_iter().for_each(|file| read(&String::from_utf8_lossy(&file.content)));
                }
                serde_json::Value::Array(all) => todo.extend(all),
                serde_json::Value::Object(all) => todo.extend(all.values()),
                _ => {}
            }
        }
    }
    found
}

fn execs(side: &Side<'_>) -> BTreeMap<String, String> {
    let plans = side.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
    plans.flat_map(|plan| plan.exec.keys().map(|name| (name.clone(), String::new()))).collect()
}

/// Units that are brought, wherever they lie.
fn units(side: &Side<'_>) -> BTreeMap<String, String> {
    let written = side.effects.iter().filter(|effect| effect.kind == EffectKind::Write);
    let unit = |effect: &Effect| {
        let (folder, unit) = effect.value.rsplit_once('/')?;
        UNITS.contains(&folder).then(|| (unit.to_owned(), String::new()))
    };
    written.filter_map(unit).collect()
}

/// Files and keys that arrive on a machine.
fn received(side: &Side<'_>) -> BTreeMap<String, String> {
    let plans = side.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
    plans
        .flat_map(|plan| plan.received.keys().chain(plan.keys.keys()))
        .map(|name| (name.clone(), String::new()))
        .collect()
}

/// User and group ids.
fn ids(side: &Side<'_>) -> BTreeMap<String, String> {
    let users = side.layers.iter().flat_map(|layer| layer.schema.users.iter().map(|(name, user)| (user.id, name)));
    let groups = side.layers.iter().flat_map(|layer| layer.schema.groups.iter().map(|(name, id)| (*id, name)));
    users.chain(groups).map(|(id, name)| (id.to_string(), name.clone())).collect()
}

fn sysctl(side: &Side<'_>) -> BTreeMap<String, String> {
    side.layers.iter().flat_map(|layer| sysctl_entries(&layer.schema)).collect()
}

fn directories(side: &Side<'_>) -> BTreeMap<String, String> {
    let all = side.layers.iter().flat_map(|layer| &layer.schema.directories);
    // A directory without a mode keeps that of the other side.
    all.filter(|(_, rule)| rule.mode.is_some())
        .map(|(path, rule)| {
            let Ownership { mode, owner, group } = rule.ownership();
            (path.clone(), format!("{mode:04o} {owner}:{group}"))
        })
        .collect()
}
