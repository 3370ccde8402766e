//! Compares the desired files of layers with a machine, and derives actions, ordered so that each directory precedes its files.

mod removals;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vmbake_firstboot::plan::{Ownership, Plan};

use super::desired::{Desired, DesiredNode, owned_by_root, split};
use super::machine::{ACTIVE, Found, Installed};
use super::resolve::{self, ResolvedPath};
use super::state::{SentFile, State};
use super::{NewImage, SyncNote, is_changed};
use vmbake_common::digest::Digest;
use vmbake_compose::merge;
use vmbake_layer::Layer;

/// A step on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum SyncAction {
    /// Create a missing parent directory.
    Directory {
        path: String,
        /// Mode and owner.
        #[serde(flatten)]
        ownership: Ownership,
    },
    /// Write a missing or different file.
    Write {
        path: String,
        /// Mode and owner.
        #[serde(flatten)]
        ownership: Ownership,
        layer: String,
        #[serde(skip)]
        content: Vec<u8>,
    },
    /// Create a missing or different link.
    Link { path: String, target: String, layer: String },
    /// Remove a file or link that sync had sent.
    Remove {
        path: String,
        layer: String,
        /// Its content, so that a changed one is not removed.
        #[serde(skip)]
        digest: Digest,
    },
    /// Remove an empty directory that sync had created.
    RemoveDirectory { path: String },
    /// Unmask a unit that sync had masked.
    Unmask {
        /// Its name.
        unit: String,
    },
    /// Start a unit that ran before sync masked it.
    Start {
        /// Its name.
        unit: String,
    },
    /// Enable a unit.
    Enable {
        /// Its name.
        unit: String,
    },
    /// Disable a unit.
    Disable {
        /// Its name.
        unit: String,
    },
    /// Mask a unit.
    Mask {
        /// Its name.
        unit: String,
    },
}

/// Actions, refusals, and the state for the machine.
#[derive(Debug, Default)]
pub(super) struct Actions {
    pub(super) list: Vec<SyncAction>,
    pub(super) new_image: Vec<NewImage>,
    pub(super) left: Vec<SyncNote>,
    pub(super) state: State,
    /// Units handled by the first-boot program.
    pub(super) planned: BTreeSet<String>,
    /// Enabled units whose files change, so that their links can change.
    pub(super) relinked: BTreeSet<String>,
}

/// Compares `desired` with the machine. `scope` are the layers whose files are sent, and `plan` is the new plan.
pub(super) fn compare(
    desired: &BTreeMap<String, Desired>,
    scope: &[&Layer],
    plan: &Plan,
    installed: &Installed,
    found: &Found,
) -> Actions {
    let state = State { pending: false, ..installed.state.clone() };
    let planned = plan.services.iter().map(|service| service.unit.clone()).collect();
    let mut actions = Actions { state, planned, ..Actions::default() };
    let removals = removals::removals(&mut actions, desired, plan, scope, installed, found);
    let rest = removals::without(found, &removals);
    for (path, desired) in desired {
        match actions.file(path, desired, scope, installed, &rest) {
            Ok(Some((missing, action))) => {
                for above in missing.into_iter().filter(|above| actions.state.directories.insert(above.clone())) {
                    let ownership = directory(&above, scope);
                    actions.list.push(SyncAction::Directory { path: above, ownership });
                }
                actions.list.push(action);
            }
            Ok(None) => {}
            Err(why) => actions.new_image.push(NewImage::of(&desired.layer, path, why)),
        }
    }
    actions.list = removals::ordered(removals, std::mem::take(&mut actions.list));
    actions.dropped(desired, scope, installed, found);
    actions.units(scope, installed, found);
    actions
}

/// Mode and owner of a missing parent directory, as a bake would create it.
fn directory(path: &str, scope: &[&Layer]) -> Ownership {
    let rules = scope.iter().rev().filter_map(|layer| layer.schema.directories.get(path));
    rules.map(|rule| rule.ownership()).next().unwrap_or_else(|| owned_by_root(0o755))
}

impl Actions {
    /// Actions for a path with its missing parents, or why they are not possible.
    fn file(
        &mut self,
        path: &str,
        desired: &Desired,
        scope: &[&Layer],
        installed: &Installed,
        found: &Found,
    ) -> Result<Option<(Vec<String>, SyncAction)>, String> {
        let ResolvedPath { path, missing } = resolve::resolve(path, found)?;
        let there = found.nodes.get(&path);
        let Desired { layer, ownership, node } = desired;
        let digest = node.digest();
        let kind = match node {
            DesiredNode::File(_) => "f",
            DesiredNode::Link(_) => "l",
        };
        let is_ours = there.is_some_and(|there| installed.sent(&path, there));
        match (there.map(|node| node.kind.as_str()), kind) {
            (Some("f" | "l"), _) if is_ours => {}
            (None, _) | (Some("f"), "f") | (Some("l"), "l") => {}
            (Some("l"), _) => return Err(format!("{path} is a symbolic link on the machine")),
            (Some("d"), _) => return Err(format!("{path} is a directory on the machine")),
            (Some("f"), _) => return Err(format!("{path} is a file on the machine")),
            (Some(_), _) => {
                return Err(format!(
                    "expected a file or nothing at {path}, found a device, pipe or socket on the machine"
                ));
            }
        }
        let is_same = there.is_some_and(|there| match node {
            DesiredNode::File(_) => {
                there.kind == "f"
                    && there.digest == Some(digest)
                    && (there.mode, &there.owner, &there.group) == (ownership.mode, &ownership.owner, &ownership.group)
            }
            DesiredNode::Link(target) => there.kind == "l" && there.target == *target,
        });
        if is_same {
            if let Some(sent) = self.state.files.get_mut(&path) {
                *sent = SentFile { digest, earlier: BTreeSet::new(), ..sent.clone() };
            }
            return Ok(None);
        }
        if merge::is_processed(&path) {
            return Err("a bake processes this file, so it cannot be sent unchanged".to_owned());
        }
        if !installed.users.contains(&ownership.owner) {
            return Err(format!("user {} does not exist on the machine", ownership.owner));
        }
        if !installed.groups.contains_key(&ownership.group) {
            return Err(format!("group {} does not exist on the machine", ownership.group));
        }
        for above in &missing {
            let Ownership { owner, group, .. } = directory(above, scope);
            if !installed.users.contains(&owner) || !installed.groups.contains_key(&group) {
                return Err(format!("user {owner} or group {group} of {above} does not exist on the machine"));
            }
        }
        let created = installed.state.files.get(&path).map_or(there.is_none(), |sent| sent.created);
        self.state
            .files
            .insert(path.clone(), SentFile { layer: layer.clone(), digest, earlier: BTreeSet::new(), created });
        let (layer, ownership) = (layer.clone(), ownership.clone());
        let action = match node {
            DesiredNode::File(content) => SyncAction::Write { path, ownership, layer, content: content.clone() },
            DesiredNode::Link(target) => SyncAction::Link { path, target: target.clone(), layer },
        };
        Ok(Some((missing, action)))
    }

    /// Files of the image that are no longer in their layers.
    fn dropped(&mut self, desired: &BTreeMap<String, Desired>, scope: &[&Layer], installed: &Installed, found: &Found) {
        for path in scope.iter().flat_map(|layer| installed.own_files(&layer.schema)) {
            let is_wanted = desired.keys().any(|wanted| *wanted == path || format!("/usr{wanted}") == path);
            let is_there = found.nodes.get(&path).is_some_and(|node| node.kind == "f");
            if !is_wanted && is_there && !self.state.files.contains_key(&path) {
                let note = "removed from the layer, but dev sync only removes files that it sent; bake a new image to remove it".to_owned();
                self.left.push(SyncNote { path, note });
            }
        }
    }

    /// Units whose state differs from layers, and those to restore.
    fn units(&mut self, scope: &[&Layer], installed: &Installed, found: &Found) {
        for layer in scope {
            let name = &layer.schema.name;
            let mut known = self.state.units.remove(name).unwrap_or_default();
            for unit in self.requested(layer, &known, found) {
                let before = found.units.get(&unit).cloned().unwrap_or_default();
                known.entry(unit).or_insert(before);
            }
            known.retain(|unit, before| self.restore(unit, before, scope, found));
            if is_changed(layer, installed) && !known.is_empty() {
                self.state.units.insert(name.clone(), known);
            }
        }
    }

    /// Adds actions for the units of a layer and returns the units. Those of the plan are handled on the machine.
    fn requested(&mut self, layer: &Layer, known: &BTreeMap<String, String>, found: &Found) -> Vec<String> {
        let Self { list, planned, new_image, relinked, .. } = self;
        let written: BTreeSet<&str> = list.iter().filter_map(written_unit).collect();
        let is_written = |unit: &&String| written.contains(unit.as_str());
        let units = &layer.schema.units;
        let mut changed = Vec::new();
        relinked.extend(
            units
                .enable
                .iter()
                .chain(planned.iter())
                .filter(is_written)
                .filter(|unit| found.state(unit) == "enabled")
                .cloned(),
        );
        for unit in &units.enable {
            // The state of a unit that enables others, or an instance, stays indirect.
            let is_off = match found.state(unit) {
                "indirect" => !known.contains_key(unit),
                state => matches!(state, "" | "disabled" | "not-found" | "masked"),
            };
            if is_off && !planned.contains(unit) {
                list.push(SyncAction::Enable { unit: unit.clone() });
                changed.push(unit.clone());
            }
        }
        for unit in &units.disable {
            if found.state(unit).starts_with("enabled") && !planned.contains(unit) {
                list.push(SyncAction::Disable { unit: unit.clone() });
                changed.push(unit.clone());
            }
        }
        for unit in &units.mask {
            let own = format!("{}{unit}", UNITS[0]);
            if found.nodes.get(&own).is_some_and(|node| node.kind == "f") || layer.files.contains_key(&own) {
                let why = format!("{own} is a file, so `systemctl mask` refuses the unit");
                new_image.push(NewImage::of(&layer.schema.name, "units", why));
                continue;
            }
            if found.state(unit) != "masked" {
                list.push(SyncAction::Mask { unit: unit.clone() });
                changed.push(unit.clone());
            }
        }
        changed
    }

    /// Restores a unit that sync masked or disabled if no layer requests that any more; returns whether the unit is still to be recorded.
    fn restore(&mut self, unit: &String, before: &str, scope: &[&Layer], found: &Found) -> bool {
        let mut layers = scope.iter().map(|layer| &layer.schema.units);
        if layers.clone().any(|units| units.mask.contains(unit)) {
            return true;
        }
        let is_enabled = layers.clone().any(|units| units.enable.contains(unit));
        let is_disabled = layers.any(|units| units.disable.contains(unit));
        let is_planned = self.planned.contains(unit);
        let (before, was_active) = before.strip_suffix(ACTIVE).map_or((before, false), |before| (before, true));
        let was_enabled = before.starts_with("enabled");
        let is_removed = self.list.iter().any(
            |action| matches!(action, SyncAction::Remove { path, .. } if self::unit(path) == Some(placed(path)[1]) && path.ends_with(&format!("/{unit}"))),
        );
        if is_removed && !is_enabled {
            if found.state(unit) == "masked" && before != "masked" {
                self.list.push(SyncAction::Unmask { unit: unit.clone() });
            }
            return false;
        }
        if is_enabled && !is_planned {
            // Enabling a unit unmasks it.
            return true;
        }
        if !is_disabled && !is_planned && was_enabled {
            if !found.state(unit).starts_with("enabled") {
                self.list.push(SyncAction::Enable { unit: unit.clone() });
            }
            return false;
        }
        if found.state(unit) == "masked" && before != "masked" {
            self.list.push(SyncAction::Unmask { unit: unit.clone() });
            if was_active && !is_disabled && !is_planned {
                self.list.push(SyncAction::Start { unit: unit.clone() });
            }
            // The links of an enabled unit remain while it is masked.
            if is_disabled && was_enabled && !is_planned {
                self.list.push(SyncAction::Disable { unit: unit.clone() });
            }
        }
        is_enabled || is_disabled
    }
}

/// Directories of units.
const UNITS: [&str; 3] = ["/etc/systemd/system/", "/usr/lib/systemd/system/", "/usr/local/lib/systemd/system/"];

/// Types of units that can be restarted.
const TYPES: [&str; 9] = ["service", "socket", "timer", "path", "mount", "automount", "swap", "target", "slice"];

/// Whether systemd reads a file as a unit, a drop-in, or a link to one.
pub(super) fn is_of_systemd(path: &str) -> bool {
    UNITS.iter().any(|folder| path.starts_with(folder))
}

/// The unit of a unit file or drop-in, except for drop-ins of many units, as in `service.d` and `web-.service.d`.
pub(super) fn unit(path: &str) -> Option<&str> {
    let rest = UNITS.iter().find_map(|folder| path.strip_prefix(folder))?;
    let name = rest.split_once('/').map_or(Some(rest), |(folder, _)| folder.strip_suffix(".d"))?;
    let (stem, kind) = name.rsplit_once('.')?;
    (TYPES.contains(&kind) && !stem.is_empty() && !stem.ends_with('-')).then_some(name)
}

/// The unit whose file, and not only a drop-in, an action writes.
fn written_unit(action: &SyncAction) -> Option<&str> {
    match action {
        SyncAction::Write { path, .. } => unit(path).filter(|unit| placed(path)[1] == *unit),
        _ => None,
    }
}

/// The directory and name of an action's path.
pub(super) fn placed(path: &str) -> [&str; 2] {
    let (folder, name) = split(path);
    [folder, name]
}

#[cfg(test)]
mod tests;
