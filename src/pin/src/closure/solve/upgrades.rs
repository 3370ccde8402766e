//! Upgrades of packages of the base: requested by a layer, or required because a chosen package conflicts with the old
//! version, a dependency is replaced, or another package of the same source is upgraded.

use std::rc::Rc;

use super::super::refusal::Refusal;
use super::{At, Left, Node, Solver, Why};
use vmbake_manifest::package_request::Choice;
use vmbake_manifest::relation::{self, Relation};

impl<'a> Solver<'a> {
    /// A newer version of a package of the base that is not chosen yet.
    pub(super) fn newer(&self, of: &Rc<Node<'a>>) -> Option<Rc<Node<'a>>> {
        if self.picks.contains_key(&of.name) {
            return None;
        }
        self.world.candidate(&of.name).filter(|newer| !Rc::ptr_eq(newer, of))
    }

    /// Newer versions of packages of the base from the same source as a chosen one: they are kept in sync.
    pub(super) fn siblings(&self, node: &Node<'a>) -> Vec<Rc<Node<'a>>> {
        let names = self.siblings.get(&node.source).into_iter().flatten();
        let old = names.filter(|name| **name != node.name).filter_map(|name| self.world.installed(name));
        old.filter_map(|old| self.newer(old)).collect()
    }

    /// Newer versions of packages of the base that depend on the version which `node` replaces.
    pub(super) fn dependents(&self, node: &Node<'a>) -> Vec<Rc<Node<'a>>> {
        let Some(old) = self.world.installed(&node.name) else { return Vec::new() };
        let loses = |by: &Rc<Node<'a>>| {
            let lost = |relation: &Relation| old.satisfies(relation, by) && !node.satisfies(relation, by);
            by.name != node.name && by.needs.iter().flatten().any(lost)
        };
        self.world.base().iter().filter(|by| loses(by)).filter_map(|by| self.newer(by)).collect()
    }

    /// Upgrades packages of the base as requested by a layer.
    pub(super) fn upgrade(&mut self, at: At) -> Result<(), Refusal> {
        let Some((_, request)) = self.layers.get(at.layer) else { return Ok(()) };
        for old in self.world.base() {
            let is_wanted = request.upgrade.has(&old.name) && !self.given.contains_key(&old.name);
            let Some(newer) = self.newer(&old).filter(|_| is_wanted) else { continue };
            match (self.mark(&newer, None, at), &request.upgrade) {
                (Ok(()), _) => {}
                (Err(refusal), Choice::All(_)) => self.left.push(Left { name: old.name.clone(), refusal }),
                (Err(refusal), Choice::Some(_)) => return Err(refusal),
            }
        }
        Ok(())
    }

    /// Upgrades packages of the base whose dependencies are replaced.
    pub(super) fn upgrade_dependents(&mut self, at: At) -> Result<(), Refusal> {
        let base = self.world.base();
        while let Some((broken, group)) = base.iter().find_map(|node| Some((node, self.lost(node)?))) {
            let was = base
                .iter()
                .find(|old| !self.is_current(old) && group.iter().any(|relation| old.satisfies(relation, broken)));
            let parent = was.map_or_else(|| broken.name.clone(), |old| old.name.clone());
            let lost = Refusal::Loses {
                chain: self.chain(&parent),
                package: broken.name.clone(),
                relation: relation::text(&group),
            };
            let newer = self.newer(broken).ok_or(lost)?;
            self.mark(&newer, Some(Why { parent, is_recommended: false }), at)?;
        }
        Ok(())
    }

    /// A group of a package of the base that is satisfied by the base, but not by the chosen packages.
    fn lost(&self, node: &Rc<Node<'a>>) -> Option<Vec<Relation>> {
        if self.order.is_empty() || !self.is_current(node) {
            return None;
        }
        let held = |group: &&Vec<Relation>| {
            let base = |relation: &Relation| {
                let named = self.world.installed(&relation.name).into_iter();
                let provided =
                    self.providers.get(&relation.name).into_iter().flatten().filter(|node| node.archive.is_none());
                named.chain(provided).any(|old| old.satisfies(relation, node))
            };
            !self.is_satisfied(group, node) && group.iter().any(base)
        };
        node.needs.iter().find(held).cloned()
    }
}
