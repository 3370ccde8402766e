//! Dependency resolution: the packages that layers require in addition to those of the base.
//!
//! From the requests of layers, verified indexes of archives and the status file of the base, determines packages and
//! the reason for each (`Solver`), or why there is no solution ([`Refusal`]). `solve` follows the rules of apt.

mod base;
mod removal;
mod system;
mod error;
mod explain;
mod refusal;
mod solve;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;

pub use error::ClosureError;
pub use explain::PackageExplanation;
pub use refusal::{ARROW, Refusal};

use crate::resolve::{ManifestContext, Offer, Resolver};
use crate::sources::{Sources, VersionSource};
use removal::Removals;
use solve::Solver;
use vmbake_common::digest::Digest;
use vmbake_common::message::Message;
use vmbake_common::spelling::near;
use vmbake_manifest::package_request::{PackagePattern, PackageRequest};
use vmbake_manifest::{ArtifactType, Content, Dependency, Document, PackageReason, Target};
use vmbake_proof::apt::PackageIndex;
use world::{Archive, Node, World};

/// Stack size of the solver in bytes: 64 KiB for each package of the longest supported chain.
const STACK: usize = 64 << 20;

/// The non-empty requests of layers, in the order of the layers.
pub type Requests = Vec<(String, PackageRequest)>;

/// The inputs of a dependency resolution.
pub struct Inputs {
    offers: Vec<(String, Offer)>,
    base: PackageIndex,
    /// Packages that the base had before.
    left_base: BTreeSet<String>,
    given: BTreeMap<String, String>,
    /// The requests, with the packages of a system.
    requests: Requests,
}

/// The result of a dependency resolution.
#[derive(Debug)]
pub struct Closure {
    /// Entries of a manifest, by package name.
    pub packages: BTreeMap<String, Dependency>,
    /// The evidence of their proofs.
    pub evidence: BTreeMap<Digest, Document>,
    /// Requested packages that the base has, with their versions.
    pub kept: Vec<(String, String)>,
    /// Packages of the base without a usable upgrade, though a layer requests upgrades of all, with the reasons.
    pub left: Vec<(String, Refusal)>,
    /// Packages that layers remove: name, version and layer.
    pub removed: Vec<(String, String, String)>,
}

impl Inputs {
    /// Reads the indexes of archives and the base of a manifest.
    pub fn gather(
        resolver: &Resolver<'_>,
        place: ManifestContext<'_>,
        content: &Content,
        requests: &Requests,
    ) -> Result<Self, ClosureError> {
        let is_without_base = requests.iter().any(|(_, request)| request.system.is_some());
        let (base, left_base) = if is_without_base { Default::default() } else { base::installed(resolver, content)? };
        let mut offers = Vec::new();
        for name in archives(resolver.sources, place, requests)? {
            let offer = resolver.offer(place, &name)?;
            offers.push((name, offer));
        }
        let indexes: Vec<_> = offers.iter().map(|(name, offer)| (name.as_str(), offer.package_index())).collect();
        let requests = system::complete(requests, resolver.sources, place, &indexes)?;
        Ok(Self { offers, base, left_base, given: given(resolver.sources, content), requests })
    }

    /// Resolves the dependencies.
    pub fn choose(&self, resolver: &Resolver<'_>, place: ManifestContext<'_>) -> Result<Closure, ClosureError> {
        with_stack(|| self.chosen(&self.solve(resolver, place)?))
    }

    fn chosen(&self, solver: &Solver<'_>) -> Result<Closure, ClosureError> {
        let mut packages = BTreeMap::new();
        let mut evidence = BTreeMap::new();
        for pick in solver.picks() {
            let node = &pick.node;
            let Some((offer, stanza)) = self.offer_of(node).zip(node.stanza) else { continue };
            let mut dependency = offer.dependency(stanza)?;
            let mut reason = solver.chain(&node.name).join(ARROW);
            if pick.why.as_ref().is_some_and(|why| why.is_recommended) {
                reason += " (recommended)";
            }
            let layer = self.requests.get(pick.layer).map(|(layer, _)| layer.clone()).unwrap_or_default();
            let upgrades = solver.world.installed(&node.name).map(|old| old.version.to_string());
            dependency.chosen = Some(PackageReason { layer, reason, upgrades });
            evidence.extend(offer.evidence());
            packages.insert(node.name.clone(), dependency);
        }
        let kept = solver.kept.iter().map(|node| (node.name.clone(), node.version.to_string())).collect();
        let left = solver.left.iter().map(|left| (left.name.clone(), left.refusal.clone())).collect();
        let removed =
            solver.removed().map(|(layer, node)| (node.name.clone(), node.version.to_string(), layer.to_owned()));
        Ok(Closure { packages, evidence, kept, left, removed: removed.collect() })
    }

    /// Explains why a package is chosen.
    pub fn explain(
        &self,
        resolver: &Resolver<'_>,
        place: ManifestContext<'_>,
        package: &str,
    ) -> Result<PackageExplanation, ClosureError> {
        with_stack(|| explain::explain(&self.solve(resolver, place)?, &self.requests, package))
    }

    /// Archive, suite and `Date` of each release used.
    pub fn dates(&self) -> Vec<(String, String, Timestamp)> {
        self.offers.iter().map(|(_, offer)| offer.date()).collect()
    }

    fn offer_of(&self, node: &Node<'_>) -> Option<&Offer> {
        self.offers.get(node.archive?).map(|(_, offer)| offer)
    }

    fn solve<'a>(&'a self, resolver: &Resolver<'_>, place: ManifestContext<'_>) -> Result<Solver<'a>, ClosureError> {
        let archives = self.offers.iter().map(|(name, offer)| (name.as_str(), offer.package_index())).collect();
        let unknown = |world: &World<'_>, name: Name<'_>| self.unknown(resolver, place, world, name);
        let removals = Removals::of(&self.requests, &self.left_base);
        solve(archives, &self.base, &self.given, &self.requests, removals, &unknown)
    }

    /// The error for an unknown package name.
    fn unknown(
        &self,
        resolver: &Resolver<'_>,
        place: ManifestContext<'_>,
        world: &World<'_>,
        name: Name<'_>,
    ) -> ClosureError {
        let Name { layer, key, package } = name;
        let (layer, package) = (layer.to_owned(), package.to_owned());
        if !world.providers(&package).is_empty() {
            return unknown(world, name);
        }
        let others = place.system.arches.iter().filter(|arch| **arch != place.target.arch);
        for arch in others {
            let target = Target { arch: arch.clone(), ..place.target.clone() };
            let there = ManifestContext { target: &target, ..place };
            let has = |(name, _): &(String, Offer)| {
                resolver.offer(there, name).is_ok_and(|offer| offer.package_index().named(&package).next().is_some())
            };
            if self.offers.iter().any(has) {
                let (arch, found) = (place.target.arch.clone(), arch.clone());
                return ClosureError::OtherArch { layer, key, package, arch, found };
            }
        }
        unknown(world, name)
    }
}

/// Runs `work` on a stack that is large enough for the longest chain of packages.
fn with_stack<T: Send>(work: impl FnOnce() -> Result<T, ClosureError> + Send) -> Result<T, ClosureError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| ClosureError::Message(Message::new("cannot start a thread").by(error)))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A package name in a key of a layer.
#[derive(Clone, Copy)]
struct Name<'a> {
    layer: &'a str,
    key: &'static str,
    package: &'a str,
}

fn solve<'a>(
    archives: Vec<Archive<'a>>,
    base: &'a PackageIndex,
    given: &'a BTreeMap<String, String>,
    requests: &'a Requests,
    mut removals: Removals<'a>,
    unknown: &dyn Fn(&World<'_>, Name<'_>) -> ClosureError,
) -> Result<Solver<'a>, ClosureError> {
    let mut world = World::new(archives, base, given, requests.iter().flat_map(|(_, request)| &request.packages));
    removals.take_from_base(&mut world, given)?;
    let mut roots = Vec::new();
    for (layer, request) in requests {
        for (key, package) in named(request) {
            if world.candidate(package).is_none() {
                return Err(unknown(&world, Name { layer, key, package }));
            }
        }
        let of_layer = request.packages.iter().map(|wanted| root(&world, layer, wanted, unknown));
        roots.push(of_layer.collect::<Result<Vec<_>, _>>()?);
    }
    let mut solver = Solver::new(world, requests, given, removals);
    for (number, roots) in roots.into_iter().enumerate() {
        solver.remove(number)?;
        solver.layer(number, roots)?;
    }
    solver.check_removed()?;
    Ok(solver)
}

/// The package that a layer requests.
fn root<'a>(
    world: &World<'a>,
    layer: &str,
    wanted: &PackagePattern,
    unknown: &dyn Fn(&World<'_>, Name<'_>) -> ClosureError,
) -> Result<Rc<Node<'a>>, ClosureError> {
    if let Some(node) = world.candidate(&wanted.name) {
        return Ok(node);
    }
    let mut found: Vec<String> = world.versions(&wanted.name).iter().map(|node| node.version.to_string()).collect();
    found.extend(world.installed(&wanted.name).map(|node| node.version.to_string()));
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(unknown(world, Name { layer, key: "packages", package: &wanted.name }));
    }
    Err(ClosureError::NoVersion { layer: layer.to_owned(), wanted: world.wanted(&wanted.name), found })
}

/// The error for an unknown package name.
fn unknown(world: &World<'_>, name: Name<'_>) -> ClosureError {
    let (layer, key, package) = (name.layer.to_owned(), name.key, name.package.to_owned());
    let providers = world.providers(&package);
    match providers.is_empty() {
        true => ClosureError::Unknown {
            layer,
            key,
            near: near(&package, world.names()),
            package,
            archives: world.archives(),
        },
        false => ClosureError::Virtual { layer, key, package, providers },
    }
}

/// The packages that would be chosen from unverified indexes, with their versions: for comparisons with apt.
#[doc(hidden)]
pub fn rehearse(
    archives: &[(&str, &PackageIndex)],
    base: &PackageIndex,
    requests: &Requests,
) -> Result<BTreeMap<String, String>, ClosureError> {
    with_stack(|| {
        let given = BTreeMap::new();
        let left_base = BTreeSet::new();
        let removals = Removals::of(requests, &left_base);
        let solver = solve(archives.to_vec(), base, &given, requests, removals, &unknown)?;
        Ok(solver.picks().map(|pick| (pick.node.name.clone(), pick.node.version.to_string())).collect())
    })
}

/// The other package names in a request, which must exist to detect typos.
fn named(request: &PackageRequest) -> impl Iterator<Item = (&'static str, &String)> {
    let hold = request.hold.iter().map(|name| ("hold", name));
    let without = request.without.iter().map(|name| ("without", name));
    let upgrade = request.upgrade.names().iter().map(|name| ("upgrade", name));
    let recommends = request.recommends.names().iter().map(|name| ("recommends", name));
    hold.chain(without).chain(upgrade).chain(recommends)
}

/// The archives to use: that of the operating system with its updates, and those that layers name.
fn archives(sources: &Sources, place: ManifestContext<'_>, requests: &Requests) -> Result<Vec<String>, ClosureError> {
    let os = || place.target.os.clone();
    let own = place.system.archive.as_deref().ok_or_else(|| ClosureError::NoArchive { os: os() })?;
    let mut names: Vec<String> = sources.archives_for(own).map(str::to_owned).collect();
    for (layer, request) in requests {
        let of_system = request.system.iter().filter_map(|system| system.archive.as_ref());
        for archive in of_system.chain(&request.archive) {
            if !sources.schema().archives.contains_key(archive) {
                let known = sources.schema().archives.keys().cloned().collect();
                return Err(ClosureError::UnknownArchive { layer: layer.clone(), archive: archive.clone(), known });
            }
            names.extend(sources.archives_for(archive).map(str::to_owned));
        }
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

/// The packages that a manifest has as artifacts, with their versions.
fn given(sources: &Sources, content: &Content) -> BTreeMap<String, String> {
    let target = content.target();
    let is_given = |(_, entry): &(&String, &Dependency)| entry.kind == ArtifactType::Deb && entry.chosen.is_none();
    let package = |(name, entry): (&String, &Dependency)| {
        let named = match sources.upstream(&target, name).map(|upstream| &upstream.version) {
            Some(VersionSource::Apt { package, .. }) => package.clone(),
            _ => name.clone(),
        };
        (named, entry.version.clone())
    };
    content.dependencies.iter().filter(is_given).map(package).collect()
}
