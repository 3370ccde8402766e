//! The solver: chooses packages in the order of apt, so that the result is what `apt-get install` would install.
//!
//! A package is chosen, then its dependencies depth first. An installed or chosen package satisfies a dependency;
//! otherwise its candidates are tried in apt's order, and the first possible one is chosen. Unlike apt, the solver
//! never removes a package: one that conflicts with another cannot be chosen. `upgrades` decides when packages of the
//! base are upgraded.

mod upgrades;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::ClosureError;
use super::refusal::Refusal;
use super::removal::Removals;
use super::world::{Node, Source, World};
use vmbake_manifest::package_request::PackageRequest;
use vmbake_manifest::relation::{self, Relation};

/// Maximum length of a chain of dependencies: the longest of Debian have some hundred packages.
const MAX_DEPTH: usize = 1000;
/// Prefixes of boot loaders, and of dracut, whose initial RAM disks a bake cannot make.
const BOOT: [&str; 3] = ["grub", "dracut", "shim-signed"];
/// A part of dracut that initramfs-tools uses.
const DRACUT_INSTALL: &str = "dracut-install";
/// Prefixes of kernels and of what generates their initial RAM disks. A base with a boot loader has its own.
const KERNEL: [&str; 2] = ["linux-image-", "initramfs-tools"];
/// What compiles kernel modules for the kernel of a machine.
const DKMS: &str = "dkms";

/// The package that depends on another one.
#[derive(Clone, Debug)]
pub(super) struct Why {
    pub(super) parent: String,
    /// Whether the dependency is only recommended.
    pub(super) is_recommended: bool,
}

/// A chosen package.
pub(super) struct Pick<'a> {
    pub(super) node: Rc<Node<'a>>,
    /// `None` for a requested package.
    pub(super) why: Option<Why>,
    /// Index of the layer that it is chosen for.
    pub(super) layer: usize,
}

/// A requested upgrade that is not possible.
pub(super) struct Left {
    pub(super) name: String,
    pub(super) refusal: Refusal,
}

/// The state of the solver.
pub(super) struct Solver<'a> {
    pub(super) world: World<'a>,
    layers: &'a [(String, PackageRequest)],
    hold: BTreeSet<&'a str>,
    without: BTreeSet<&'a str>,
    removals: Removals<'a>,
    /// Artifacts of the manifest, by package name.
    given: &'a BTreeMap<String, String>,
    picks: HashMap<String, Pick<'a>>,
    /// Names of chosen packages, in order.
    order: Vec<String>,
    /// Names of packages of the base that have a newer version, by its source.
    siblings: HashMap<Source, Vec<String>>,
    /// Packages by what they provide, and by what they conflict with, including those no longer chosen.
    providers: HashMap<String, Vec<Rc<Node<'a>>>>,
    avoiders: HashMap<String, Vec<Rc<Node<'a>>>>,
    /// Packages that cannot be chosen, and are not tried again.
    refused: HashMap<String, Refusal>,
    /// Requested packages that the base has.
    pub(super) kept: Vec<Rc<Node<'a>>>,
    pub(super) left: Vec<Left>,
    /// Whether the base has a package of [`BOOT`]: a bake does not add kernels to its boot menu.
    has_loader: bool,
}

/// The context of a choice: the layer, and the length of the chain.
#[derive(Clone, Copy)]
struct At {
    layer: usize,
    depth: usize,
}

/// Two conflicting packages.
struct Clash<'a> {
    other: Rc<Node<'a>>,
    /// `Breaks: x (<< 1)`
    text: String,
    /// A newer version of the other package that would solve the conflict.
    is_solved_by: Option<Rc<Node<'a>>>,
}

impl<'a> Solver<'a> {
    pub(super) fn new(
        world: World<'a>,
        layers: &'a [(String, PackageRequest)],
        given: &'a BTreeMap<String, String>,
        removals: Removals<'a>,
    ) -> Self {
        let all = |of: fn(&PackageRequest) -> &Vec<String>| {
            layers.iter().flat_map(move |(_, request)| of(request)).map(String::as_str).collect()
        };
        let (hold, without) = (all(|request| &request.hold), all(|request| &request.without));
        let base = world.base();
        let mut solver = Self {
            world,
            layers,
            hold,
            without,
            removals,
            given,
            picks: HashMap::new(),
            order: Vec::new(),
            siblings: HashMap::new(),
            providers: HashMap::new(),
            avoiders: HashMap::new(),
            refused: HashMap::new(),
            kept: Vec::new(),
            left: Vec::new(),
            has_loader: base.iter().any(|node| is_boot(&node.name)),
        };
        for node in &base {
            solver.list(node);
            if let Some(newer) = solver.newer(node) {
                solver.siblings.entry(newer.source.clone()).or_default().push(node.name.clone());
            }
        }
        solver
    }

    /// Removes the packages that a layer removes from those of earlier layers.
    pub(super) fn remove(&mut self, layer: usize) -> Result<(), ClosureError> {
        self.removals.take_from_layers(layer, &self.world, |name| self.picks.get(name).map(|pick| pick.node.clone()))
    }

    /// The packages that layers remove, with the layers.
    pub(super) fn removed(&self) -> impl Iterator<Item = (&str, &Rc<Node<'a>>)> {
        self.removals.removed()
    }

    /// Fails where a package that stays needs what is removed.
    pub(super) fn check_removed(&self) -> Result<(), Refusal> {
        let chosen = self.picks().map(|pick| pick.node.clone());
        let all = self.world.base().into_iter().chain(chosen).filter(|node| self.is_current(node));
        for node in all {
            for group in node.needs.iter().filter(|group| !self.is_satisfied(group, &node)) {
                let met =
                    |(_, old): &(&str, &Rc<Node<'a>>)| group.iter().any(|relation| old.satisfies(relation, &node));
                if let Some((layer, old)) = self.removed().find(met) {
                    let (package, layer) = (old.name.clone(), layer.to_owned());
                    let (chain, relation) = (self.chain(&node.name), relation::text(group));
                    return Err(Refusal::StillNeeded { package, layer, chain, relation });
                }
            }
        }
        Ok(())
    }

    /// Chooses all packages that a layer requests, and their dependencies.
    pub(super) fn layer(&mut self, layer: usize, roots: Vec<Rc<Node<'a>>>) -> Result<(), Refusal> {
        let at = At { layer, depth: 0 };
        let mut placed = Vec::new();
        for root in roots {
            let installed = self.world.installed(&root.name);
            // The version of the base suffices, unless a version was requested.
            let enough = installed.filter(|installed| self.world.fits(&root.name, &installed.version.to_string()));
            if let Some(enough) = enough.cloned() {
                self.kept.push(enough);
            } else if !self.is_current(&root) {
                let upgrades = self.place(&root, None, at)?;
                placed.push((root, upgrades));
            }
        }
        placed.sort_by_key(|(root, _)| self.world.mention(&root.name));
        for (root, upgrades) in placed {
            self.pull(&root, upgrades, at)?;
        }
        self.upgrade(at)?;
        self.upgrade_dependents(at)
    }

    /// The chosen packages, in order.
    pub(super) fn picks(&self) -> impl Iterator<Item = &Pick<'a>> {
        self.order.iter().filter_map(|name| self.picks.get(name))
    }

    pub(super) fn pick(&self, name: &str) -> Option<&Pick<'a>> {
        self.picks.get(name)
    }

    /// The chain of dependencies from the requested package to this one.
    pub(super) fn chain(&self, name: &str) -> Vec<String> {
        let mut chain = vec![name.to_owned()];
        let mut at = name;
        // Terminates, as a package is chosen after the one that depends on it.
        while let Some(why) = self.picks.get(at).and_then(|pick| pick.why.as_ref()) {
            chain.push(why.parent.clone());
            at = &why.parent;
        }
        chain.reverse();
        chain
    }

    /// The chain to a package that is not chosen yet.
    fn chain_to(&self, name: &str, why: Option<&Why>) -> Vec<String> {
        let mut chain = why.map(|why| self.chain(&why.parent)).unwrap_or_default();
        chain.push(name.to_owned());
        chain
    }

    /// The chosen version, otherwise that of the base.
    fn current(&self, name: &str) -> Option<&Rc<Node<'a>>> {
        if self.removals.is_removed(name) {
            return None;
        }
        self.picks.get(name).map(|pick| &pick.node).or_else(|| self.world.installed(name))
    }

    fn is_current(&self, node: &Rc<Node<'a>>) -> bool {
        self.current(&node.name).is_some_and(|current| Rc::ptr_eq(current, node))
    }

    fn list(&mut self, node: &Rc<Node<'a>>) {
        for name in node.provided() {
            self.providers.entry(name.to_owned()).or_default().push(node.clone());
        }
        for (_, relation) in &node.avoids {
            self.avoiders.entry(relation.name.clone()).or_default().push(node.clone());
        }
    }

    /// Whether a chosen or installed package satisfies a group.
    pub(super) fn is_satisfied(&self, group: &[Relation], of: &Node<'_>) -> bool {
        group.iter().any(|relation| {
            let named = self.current(&relation.name).is_some_and(|node| node.satisfies(relation, of));
            let provided = self.providers.get(&relation.name).into_iter().flatten();
            named || provided.filter(|node| self.is_current(node)).any(|node| node.satisfies(relation, of))
        })
    }

    /// Chooses a package with all dependencies, or nothing at all.
    fn mark(&mut self, node: &Rc<Node<'a>>, why: Option<Why>, at: At) -> Result<(), Refusal> {
        if self.is_current(node) {
            return Ok(());
        }
        if let Some(refusal) = self.refused.get(&node.name) {
            return Err(refusal.clone());
        }
        let before = self.order.len();
        let placed = self.place(node, why, at).and_then(|upgrades| self.pull(node, upgrades, at));
        placed.inspect_err(|refusal| {
            for name in self.order.drain(before..) {
                self.picks.remove(&name);
            }
            self.refused.insert(node.name.clone(), refusal.clone());
        })
    }

    /// Chooses a package without dependencies; returns the packages of the base that must be upgraded for it.
    fn place(&mut self, node: &Rc<Node<'a>>, why: Option<Why>, at: At) -> Result<Vec<Rc<Node<'a>>>, Refusal> {
        let chain = || self.chain_to(&node.name, why.as_ref());
        if at.depth > MAX_DEPTH {
            return Err(Refusal::TooDeep { package: node.name.clone(), limit: MAX_DEPTH });
        }
        if let Some(layer) = self.removals.forbids(&node.name, at.layer) {
            let (package, layer) = (node.name.clone(), layer.to_owned());
            return Err(Refusal::Removed { chain: chain(), package, layer });
        }
        self.may_choose(node, &chain)?;
        for group in &node.needs {
            if !self.is_satisfied(group, node) && self.world.solutions(group, node).is_empty() {
                return Err(Refusal::Unmet { chain: chain(), relation: relation::text(group) });
            }
        }
        let mut upgrades = Vec::new();
        for Clash { other, text, is_solved_by } in self.clashes(node) {
            match is_solved_by {
                Some(newer) => upgrades.push(newer),
                None => {
                    let (package, version) = (other.name.clone(), other.version.to_string());
                    let is_new = self.picks.contains_key(&other.name);
                    let second = if is_new { self.chain(&other.name) } else { Vec::new() };
                    return Err(Refusal::Conflict { chain: chain(), text, package, version, second });
                }
            }
        }
        upgrades.extend(self.dependents(node));
        self.picks.insert(node.name.clone(), Pick { node: node.clone(), why, layer: at.layer });
        self.order.push(node.name.clone());
        self.list(node);
        Ok(upgrades)
    }

    /// Whether layers and base permit choosing a package.
    fn may_choose(&self, node: &Node<'_>, chain: &dyn Fn() -> Vec<String>) -> Result<(), Refusal> {
        let (name, package) = (node.name.as_str(), node.name.clone());
        let installed = self.world.installed(name);
        if self.without.contains(name) && installed.is_none() {
            return Err(Refusal::Without { chain: chain(), package });
        }
        if let Some(installed) = installed {
            let (found, wanted) = (installed.version.to_string(), node.version.to_string());
            if self.given.contains_key(name) {
                return Err(Refusal::Given { chain: chain(), package, found, wanted });
            }
            if self.hold.contains(name) || self.world.is_held(name) {
                let by_layer = self.hold.contains(name);
                return Err(Refusal::Held { chain: chain(), package, found, wanted, by_layer });
            }
            if installed.version > node.version {
                return Err(Refusal::Later { package, found, wanted: self.world.wanted(name) });
            }
        }
        let is_loader = is_boot(name);
        if is_loader || (self.has_loader && KERNEL.iter().any(|start| name.starts_with(start))) {
            return Err(Refusal::Boot { chain: chain(), package, is_loader });
        }
        if name == DKMS {
            return Err(Refusal::Compiles { chain: chain(), package });
        }
        Ok(())
    }

    /// Chooses the dependencies of a package, and its recommendations if its layer requests them.
    fn pull(&mut self, node: &Rc<Node<'a>>, upgrades: Vec<Rc<Node<'a>>>, at: At) -> Result<(), Refusal> {
        let why = |is_recommended| Some(Why { parent: node.name.clone(), is_recommended });
        let below = At { depth: at.depth + 1, ..at };
        for newer in self.siblings(node) {
            // A failed upgrade is ignored: nothing depends on it.
            let _ = self.mark(&newer, why(false), below);
        }
        for newer in upgrades {
            self.mark(&newer, why(false), below)?;
        }
        for group in &node.needs {
            self.satisfy(group, node, why(false), below)?;
        }
        let recommends = self.layers.get(at.layer).is_some_and(|(_, request)| request.recommends.has(&node.name));
        if recommends && self.world.installed(&node.name).is_none() {
            for group in &node.recommends {
                // A missing recommendation is ignored.
                let _ = self.satisfy(group, node, why(true), below);
            }
        }
        Ok(())
    }

    fn satisfy(&mut self, group: &[Relation], of: &Node<'_>, why: Option<Why>, at: At) -> Result<(), Refusal> {
        if self.is_satisfied(group, of) {
            return Ok(());
        }
        let mut first = None;
        for solution in self.world.solutions(group, of) {
            match self.mark(&solution, why.clone(), at) {
                Ok(()) => return Ok(()),
                Err(refusal) => first = first.or(Some(refusal)),
            }
        }
        Err(first.unwrap_or_else(|| Refusal::Unmet { chain: self.chain(&of.name), relation: relation::text(group) }))
    }

    /// All chosen or installed packages that conflict with `node`.
    fn clashes(&self, node: &Rc<Node<'a>>) -> Vec<Clash<'a>> {
        let mut found = Vec::new();
        let text = |field: &str, relation: &Relation| format!("{field} {}", relation.text);
        for (field, relation) in &node.avoids {
            let provided = self.providers.get(&relation.name).into_iter().flatten();
            for other in self.current(&relation.name).into_iter().chain(provided) {
                if other.name == node.name || !self.is_current(other) || !other.is_meant(relation) {
                    continue;
                }
                let is_solved_by = self.newer(other).filter(|newer| !newer.is_meant(relation));
                found.push(Clash { other: other.clone(), text: text(field, relation), is_solved_by });
            }
        }
        for name in std::iter::once(node.name.as_str()).chain(node.provided()) {
            for other in self.avoiders.get(name).into_iter().flatten() {
                if other.name == node.name || !self.is_current(other) {
                    continue;
                }
                let forbids = |by: &Node<'_>| by.avoids.iter().find(|(_, relation)| node.is_meant(relation)).cloned();
                let Some((field, relation)) = forbids(other) else { continue };
                let is_solved_by = self.newer(other).filter(|newer| forbids(newer).is_none());
                let text = format!("{} of {}", text(field, &relation), other.name);
                found.push(Clash { other: other.clone(), text, is_solved_by });
            }
        }
        found
    }
}

fn is_boot(name: &str) -> bool {
    name != DRACUT_INSTALL && BOOT.iter().any(|start| name.starts_with(start))
}
