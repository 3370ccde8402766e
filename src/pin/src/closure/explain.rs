//! Explains why a package is required: the packages that depend on it, and the alternatives.

use std::fmt;

use super::solve::Solver;
use super::world::Node;
use super::{ARROW, ClosureError, Requests};
use vmbake_common::progress::human_bytes;
use vmbake_common::spelling::near;
use vmbake_manifest::relation;

/// Why a package is chosen or not.
#[derive(Debug)]
pub struct PackageExplanation {
    package: String,
    /// The result.
    what: String,
    /// A chain of dependencies to it, and the last relation.
    chains: Vec<(String, String)>,
    /// Other packages that would satisfy the same relations.
    instead: Vec<String>,
    /// Its versions, and the archives that have them.
    versions: Vec<String>,
}

pub(super) fn explain(
    solver: &Solver<'_>,
    requests: &Requests,
    package: &str,
) -> Result<PackageExplanation, ClosureError> {
    let world = &solver.world;
    let versions = world.versions(package);
    let installed = world.installed(package);
    let what = match (solver.pick(package), installed) {
        (Some(pick), old) => {
            let archive = pick.node.archive.map_or("", |number| world.archive(number));
            let size =
                pick.node.stanza.and_then(|stanza| stanza.get("Size")?.parse().ok()).map_or_else(String::new, size);
            let layer = requests.get(pick.layer).map_or("", |(layer, _)| layer);
            let old = old.map(|old| format!(", replacing {} of the base", old.version)).unwrap_or_default();
            format!("{}, from {archive}{size}, by layer {layer}{old}", pick.node.version)
        }
        (None, Some(old)) => format!("{}: already in the base, no other version required", old.version),
        (None, None) if versions.is_empty() => {
            let near = near(package, world.names());
            return Err(ClosureError::NoPackage { package: package.to_owned(), near });
        }
        (None, None) => "not required".to_owned(),
    };
    let versions = versions
        .iter()
        .map(|node| format!("{} ({})", node.version, node.archive.map_or("", |number| world.archive(number))));
    let (mut chains, mut instead) = (Vec::new(), Vec::new());
    if let Some(found) = solver.pick(package).map(|pick| &pick.node).or(installed) {
        if solver.pick(package).is_some_and(|pick| pick.why.is_none()) {
            chains.push((package.to_owned(), "requested by a layer".to_owned()));
        }
        for pick in solver.picks() {
            let recommends =
                requests.get(pick.layer).is_some_and(|(_, request)| request.recommends.has(&pick.node.name));
            let all = pick.node.needs.iter().map(|group| ("needs", group));
            let recommended = pick.node.recommends.iter().filter(|_| recommends).map(|group| ("recommends", group));
            for (how, group) in all.chain(recommended) {
                if group.iter().any(|relation| found.satisfies(relation, &pick.node)) {
                    let chain = solver.chain(&pick.node.name).join(ARROW);
                    chains.push((format!("{chain}{ARROW}{package}"), format!("{how} {}", relation::text(group))));
                    let others = world.solutions(group, &pick.node);
                    instead.extend(others.iter().filter(|other| other.name != package).map(|other| named(other)));
                }
            }
        }
    }
    instead.sort();
    instead.dedup();
    Ok(PackageExplanation { package: package.to_owned(), what, chains, instead, versions: versions.collect() })
}

fn size(bytes: u64) -> String {
    format!(", {}", human_bytes(bytes))
}

fn named(node: &Node<'_>) -> String {
    format!("{} {}", node.name, node.version)
}

impl fmt::Display for PackageExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.package, self.what)?;
        for (chain, relation) in &self.chains {
            writeln!(f, "    {chain}: {relation}")?;
        }
        for (what, list) in [("instead", &self.instead), ("versions", &self.versions)] {
            if !list.is_empty() {
                writeln!(f, "    {what}: {}", list.join(", "))?;
            }
        }
        Ok(())
    }
}
