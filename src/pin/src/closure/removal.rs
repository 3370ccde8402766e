//! Packages that layers remove. Those of the base are removed before any package is chosen; those that earlier layers install, such as a
//! system, when the layer begins.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::world::{Node, World};
use super::{ClosureError, Requests};
use vmbake_common::spelling::near;

/// The removals of all layers.
pub(super) struct Removals<'a> {
    /// The first layer that removes each package: its index and its name.
    of: BTreeMap<&'a str, (usize, &'a str)>,
    /// Packages that the base had before: no longer, or their configuration only.
    left_base: &'a BTreeSet<String>,
    /// Removed packages, with the names of the layers.
    removed: BTreeMap<String, (&'a str, Rc<Node<'a>>)>,
}

impl<'a> Removals<'a> {
    pub(super) fn of(requests: &'a Requests, left_base: &'a BTreeSet<String>) -> Self {
        let mut of = BTreeMap::new();
        for (index, (layer, request)) in requests.iter().enumerate() {
            for name in &request.remove_packages {
                of.entry(name.as_str()).or_insert((index, layer.as_str()));
            }
        }
        Self { of, left_base, removed: BTreeMap::new() }
    }

    /// Removes packages from the base.
    pub(super) fn take_from_base(
        &mut self,
        world: &mut World<'a>,
        given: &BTreeMap<String, String>,
    ) -> Result<(), ClosureError> {
        for (name, (_, layer)) in &self.of {
            let (layer, package) = (*layer, (*name).to_owned());
            if given.contains_key(*name) {
                return Err(ClosureError::RemovesGiven { layer: layer.to_owned(), package });
            }
            let Some(node) = world.installed(name).cloned() else { continue };
            check(&node, layer)?;
            if world.is_held(name) {
                return Err(ClosureError::RemovesHeld { layer: layer.to_owned(), package });
            }
            world.remove(name);
            self.removed.insert(package, (layer, node));
        }
        Ok(())
    }

    /// Removes packages that earlier layers install: `chosen` is the package of that name.
    pub(super) fn take_from_layers(
        &mut self,
        index: usize,
        world: &World<'a>,
        chosen: impl Fn(&str) -> Option<Rc<Node<'a>>>,
    ) -> Result<(), ClosureError> {
        let own: Vec<_> =
            self.of.iter().filter(|(_, (of, _))| *of == index).map(|(name, (_, by))| (*name, *by)).collect();
        for (name, layer) in own {
            if world.removed(name).is_some() || self.left_base.contains(name) {
                continue;
            }
            let Some(node) = chosen(name) else {
                let base = world.base();
                let near = near(name, base.iter().map(|node| node.name.as_str()));
                return Err(ClosureError::NotInstalled { layer: layer.to_owned(), package: name.to_owned(), near });
            };
            check(&node, layer)?;
            self.removed.insert(name.to_owned(), (layer, node));
        }
        Ok(())
    }

    /// Whether a package is removed by now.
    pub(super) fn is_removed(&self, name: &str) -> bool {
        self.removed.contains_key(name)
    }

    /// The layer that removes a package at the layer `index` or before: it cannot be chosen there.
    pub(super) fn forbids(&self, name: &str, index: usize) -> Option<&'a str> {
        let is_of_base = self.is_removed(name) || self.left_base.contains(name);
        self.of.get(name).filter(|(of, _)| is_of_base || *of <= index).map(|(_, layer)| *layer)
    }

    /// The removed packages, with the layers.
    pub(super) fn removed(&self) -> impl Iterator<Item = (&str, &Rc<Node<'a>>)> {
        self.removed.values().map(|(layer, node)| (*layer, node))
    }
}

/// Fails if a package may not be removed.
fn check(node: &Node<'_>, layer: &str) -> Result<(), ClosureError> {
    match node.unremovable() {
        Some(field) => {
            let (layer, package) = (layer.to_owned(), node.name.clone());
            Err(ClosureError::Unremovable { layer, package, field })
        }
        None => Ok(()),
    }
}
