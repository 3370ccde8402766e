//! Removes what sync sent and layers no longer have: files, links, and the directories that become empty.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_firstboot::plan::Plan;
use vmbake_layer::Layer;

use super::{Actions, SyncAction};
use crate::sync::desired::Desired;
use crate::sync::machine::{Found, Installed};
use crate::sync::{SyncNote, resolve};

/// The removals, files before their directories. Also updates the state, and adds notes about what stays.
pub(super) fn removals(
    actions: &mut Actions,
    desired: &BTreeMap<String, Desired>,
    plan: &Plan,
    scope: &[&Layer],
    installed: &Installed,
    found: &Found,
) -> Vec<SyncAction> {
    let wanted: BTreeSet<String> =
        desired.keys().filter_map(|path| resolve::resolve(path, found).ok()).map(|resolved| resolved.path).collect();
    let gone = actions.state.files.iter().filter(|(path, sent)| {
        !wanted.contains(*path)
            && !installed.is_plan_file(path)
            && scope.iter().any(|layer| layer.schema.name == sent.layer)
    });
    let gone: Vec<String> = gone.map(|(path, _)| path.clone()).collect();
    let mut removals: Vec<SyncAction> =
        gone.into_iter().filter_map(|path| obsolete(actions, path, installed, found)).collect();
    let parents = desired.keys().flat_map(|path| resolve::questions(path));
    let kept: BTreeSet<String> = parents.filter(|path| !desired.contains_key(path)).collect();
    let mut removed: BTreeSet<String> = removals.iter().filter_map(target).map(str::to_owned).collect();
    // A directory precedes what is in it.
    for path in installed.state.directories.iter().rev() {
        let mut entries = found.entries.iter().filter(|entry| super::split(entry).0 == path);
        let is_directory = found.nodes.get(path).is_some_and(|node| node.kind == "d");
        if !is_directory {
            actions.state.directories.remove(path);
        } else if !kept.contains(path)
            && !plan.directories.contains_key(path)
            && entries.all(|entry| removed.contains(entry))
        {
            actions.state.directories.remove(path);
            removed.insert(path.clone());
            removals.push(SyncAction::RemoveDirectory { path: path.clone() });
        }
    }
    removals
}

/// The removal of a sent file that its layer no longer has.
fn obsolete(actions: &mut Actions, path: String, installed: &Installed, found: &Found) -> Option<SyncAction> {
    let sent = actions.state.files.get(&path)?.clone();
    let leads_there = resolve::resolve(&path, found).is_ok_and(|resolved| resolved.path == path);
    let note = match found.nodes.get(&path) {
        None => None,
        Some(_) if !sent.created => Some("the sent file replaced a file of the image; bake a new image to restore it"),
        Some(there) if !installed.sent(&path, there) || !leads_there => Some(
            "removed from the layer, but changed on the machine after it was sent; remove it there if it is not needed",
        ),
        Some(_) => {
            actions.state.files.remove(&path);
            if path.contains("/sysctl.d/") {
                let note = "removed, but the kernel keeps the values of its settings until the next boot".to_owned();
                actions.left.push(SyncNote { path: path.clone(), note });
            }
            return Some(SyncAction::Remove { path, layer: sent.layer, digest: sent.digest });
        }
    };
    match note {
        Some(note) => actions.left.push(SyncNote { path, note: note.to_owned() }),
        None => drop(actions.state.files.remove(&path)),
    }
    None
}

/// The machine after the removals.
pub(super) fn without(found: &Found, removals: &[SyncAction]) -> Found {
    let mut rest = found.clone();
    removals.iter().filter_map(target).for_each(|path| drop(rest.nodes.remove(path)));
    rest
}

/// Puts removals that make room for other files first, and the others last: a unit whose file moves keeps running.
pub(super) fn ordered(removals: Vec<SyncAction>, others: Vec<SyncAction>) -> Vec<SyncAction> {
    let new: BTreeSet<&str> = others.iter().filter_map(target).collect();
    let is_in_the_way = |action: &SyncAction| {
        target(action).is_some_and(|path| resolve::questions(path).any(|above| new.contains(above.as_str())))
    };
    let (mut first, last): (Vec<_>, Vec<_>) = removals.into_iter().partition(is_in_the_way);
    first.extend(others);
    first.extend(last);
    first
}

/// The path of an action.
fn target(action: &SyncAction) -> Option<&str> {
    match action {
        SyncAction::Directory { path, .. }
        | SyncAction::Write { path, .. }
        | SyncAction::Link { path, .. }
        | SyncAction::Remove { path, .. }
        | SyncAction::RemoveDirectory { path } => Some(path),
        SyncAction::Unmask { .. }
        | SyncAction::Start { .. }
        | SyncAction::Enable { .. }
        | SyncAction::Disable { .. }
        | SyncAction::Mask { .. } => None,
    }
}
