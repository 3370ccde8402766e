//! Links to units that a layer removes: those that the base or a package made go with the unit, as with `systemctl disable`.

use vmbake_disk::tree::Kind;

use super::lookup::{ConfigLinks, Lookup, lookup};
use super::{Scope, fault};
use crate::merge::place::Target;
use crate::merge::{MergeError, UnitFault};
pub use vmbake_layer::is_wants;

/// A link by which a unit is wanted.
pub(in crate::merge) struct DependencyLink {
    scope: Scope,
    path: String,
    unit: String,
}

/// The links among the administrator's units to units that exist.
pub(in crate::merge) fn dependency_links(target: &Target) -> Vec<DependencyLink> {
    let mut found = Vec::new();
    let directory = |id| match &target.tree.inode(id).kind {
        Kind::Directory(entries) => Some(entries),
        _ => None,
    };
    for scope in [Scope::System, Scope::User] {
        let etc = scope.etc();
        let top = target.tree.resolve(etc.as_bytes()).ok().and_then(directory);
        for (dir, id) in top.into_iter().flatten() {
            let Some(dir) = str::from_utf8(dir).ok().filter(|dir| is_wants(dir)) else { continue };
            for unit in directory(*id).into_iter().flatten().filter_map(|(name, _)| str::from_utf8(name).ok()) {
                if !is_missing(target, scope, unit) {
                    found.push(DependencyLink { scope, path: format!("{etc}/{dir}/{unit}"), unit: unit.to_owned() });
                }
            }
        }
    }
    found
}

/// Removes the links to units that are gone. Fails if a layer enables such a unit.
pub(in crate::merge) fn unlink(target: &mut Target, before: &[DependencyLink]) -> Result<(), MergeError> {
    for DependencyLink { scope, path, unit } in before {
        let Some(id) = target.wrap(target.tree.find(path.as_bytes()))? else { continue };
        if !is_missing(target, *scope, unit) {
            continue;
        }
        let is_of_package = target.tree.origin(target.tree.inode(id).origin).artifact.is_some();
        match target.layer_of_change(id).filter(|_| !is_of_package) {
            Some(layer) => {
                let wrong = UnitFault::Removed { layer: layer.to_owned(), path: path.clone() };
                return Err(fault(target, unit, wrong));
            }
            None => target.remove(path)?,
        }
    }
    Ok(())
}

fn is_missing(target: &Target, scope: Scope, unit: &str) -> bool {
    matches!(lookup(target, scope, unit, ConfigLinks::Follow), Ok(Lookup::Missing))
}
