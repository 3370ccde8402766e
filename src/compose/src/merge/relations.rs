//! Package relations (Debian Policy 7, deb-control(5)): checks that all packages to be installed are compatible.

use debversion::Version;
use vmbake_common::message;

use super::MergeError;
use super::status::Status;
use crate::stage::{Control, StagedArtifact, StagedContent};
use vmbake_manifest::relation::{self, Operator, Relation};

/// A package, real or provided.
struct Present<'a> {
    /// The package that is it, or provides it.
    owner: &'a Control,
    name: String,
    /// None where it is provided without one.
    version: Option<Version>,
}

/// Checks `Depends`, `Pre-Depends`, `Conflicts` and `Breaks` of all packages to be installed against those of the base
/// and each other, and of the base's against them. What they take the place of does not count.
pub(super) fn check(status: &Status, artifacts: &[StagedArtifact]) -> Result<(), MergeError> {
    let new: Vec<&Control> = artifacts
        .iter()
        .filter_map(|artifact| match &artifact.content {
            StagedContent::Deb(deb) => Some(&deb.control),
            _ => None,
        })
        .collect();
    if new.is_empty() {
        return Ok(());
    }
    let stays = |old: &&Control| !new.iter().any(|control| name(control) == name(old));
    let old: Vec<&Control> = status.installed().filter(stays).collect();
    let there: Vec<&Control> = status.unpacked().filter(stays).collect();
    let all = presents(old.iter().chain(&new).copied())?;
    let fresh = presents(new.iter().copied())?;
    let met = presents(there.iter().chain(&new).copied())?;
    for control in &new {
        if let Some(relation) = unmet(control, &all)?.into_iter().next() {
            return Err(depends(control, relation, &old));
        }
        avoids(control, &met)?;
        parse(control, "Replaces")?;
    }
    there.iter().try_for_each(|control| avoids(control, &fresh))?;
    match status.installed().count() == old.len() {
        true => Ok(()),
        false => keeps(&old, &presents(status.installed())?, &all),
    }
}

/// The error about a dependency that is not met: the base may have the package in another version.
fn depends(control: &Control, relation: String, old: &[&Control]) -> MergeError {
    let package = name(control).to_owned();
    let named: Vec<Relation> = relation::groups(&relation).into_iter().flatten().flatten().collect();
    let other = old.iter().find(|old| named.iter().any(|relation| relation.name == name(old)));
    match other.map(|old| (name(old).to_owned(), old.get("Version").unwrap_or_default().to_owned())) {
        Some((other, found)) => MergeError::DependsOther { package, relation, other, found },
        None => MergeError::Depends { package, relation },
    }
}

/// Fails where a package of the base needs what only an earlier version of an upgraded package was. What it did not have
/// before either is nothing that a bake took away.
fn keeps(old: &[&Control], before: &[Present<'_>], after: &[Present<'_>]) -> Result<(), MergeError> {
    for control in old {
        let lost = unmet(control, after)?;
        let lacked = if lost.is_empty() { Vec::new() } else { unmet(control, before)? };
        if let Some(relation) = lost.into_iter().find(|relation| !lacked.contains(relation)) {
            return Err(MergeError::Loses { package: name(control).to_owned(), relation });
        }
    }
    Ok(())
}

/// Whether `new` may take files of `old`: its `Replaces` names it, and its version fits.
pub(super) fn replaces(new: &Control, old: &Control) -> Result<bool, MergeError> {
    let present = Present { owner: old, name: name(old).to_owned(), version: version(old) };
    Ok(parse(new, "Replaces")?.iter().flatten().any(|relation| present.is(relation)))
}

impl Present<'_> {
    /// Whether it is what the relation means.
    fn is(&self, relation: &Relation) -> bool {
        self.name == relation.name && relation.accepts(self.version.as_ref())
    }
}

fn name(control: &Control) -> &str {
    control.get("Package").unwrap_or_default()
}

fn version(control: &Control) -> Option<Version> {
    control.get("Version").and_then(|version| version.parse().ok())
}

fn fits_architecture(relation: &Relation, package: &Control, found: &Control) -> bool {
    let arch = |control: &Control| control.get("Architecture").unwrap_or_default().to_owned();
    relation.fits_architecture(&arch(package), &arch(found), found.get("Multi-Arch").unwrap_or_default())
}

/// The packages themselves and what they provide: a provision is of one version or of none.
fn presents<'a>(controls: impl Iterator<Item = &'a Control>) -> Result<Vec<Present<'a>>, MergeError> {
    let mut all = Vec::new();
    for owner in controls {
        all.push(Present { owner, name: name(owner).to_owned(), version: version(owner) });
        for provided in parse(owner, "Provides")?.into_iter().flatten() {
            let version = match provided.version {
                Some((Operator::Equal, version)) => Some(version),
                Some(_) => continue,
                None => None,
            };
            all.push(Present { owner, name: provided.name, version });
        }
    }
    Ok(all)
}

/// What a package needs and `present` has not.
fn unmet(control: &Control, present: &[Present<'_>]) -> Result<Vec<String>, MergeError> {
    let mut unmet = Vec::new();
    for field in ["Pre-Depends", "Depends"] {
        for group in parse(control, field)? {
            let meets = |relation: &Relation| {
                present.iter().any(|found| found.is(relation) && fits_architecture(relation, control, found.owner))
            };
            if !group.iter().any(meets) {
                unmet.push(relation::text(&group));
            }
        }
    }
    Ok(unmet)
}

fn avoids(control: &Control, present: &[Present<'_>]) -> Result<(), MergeError> {
    for field in ["Conflicts", "Breaks"] {
        for relation in parse(control, field)?.iter().flatten() {
            // A package never conflicts with itself, nor with what it provides itself.
            let others = present.iter().filter(|found| name(found.owner) != name(control));
            if let Some(found) = others.into_iter().find(|found| found.is(relation)) {
                let found = found.owner.get("Version").unwrap_or_default().to_owned();
                let (package, relation) = (name(control).to_owned(), relation.text.clone());
                return Err(MergeError::Message(message!("{package}: conflicts with {relation}, found {found}")));
            }
        }
    }
    Ok(())
}

/// The groups of a field, each of which one of its relations satisfies.
fn parse(control: &Control, field: &'static str) -> Result<Vec<Vec<Relation>>, MergeError> {
    let text = control.get(field).unwrap_or_default();
    relation::groups(text).ok_or_else(|| {
        MergeError::Message(message!("{}: field {field} is not a valid list of relations: {text:?}", name(control)))
    })
}
