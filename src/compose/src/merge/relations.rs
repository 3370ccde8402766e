//! Package relations (Debian Policy 7, deb-control(5)): checks that all packages to be installed are compatible.

use debversion::Version;
use vmbake_common::message;

use super::MergeError;
use super::removal::Removals;
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
/// and each other, and of the base's against them. What they take the place of does not count, nor what is removed.
pub(super) fn check(status: &Status, artifacts: &[StagedArtifact], removals: &Removals) -> Result<(), MergeError> {
    let debs = artifacts.iter().filter_map(|artifact| match &artifact.content {
        StagedContent::Deb(deb) => Some(&deb.control),
        _ => None,
    });
    let (passing, new): (Vec<&Control>, Vec<&Control>) = debs.partition(|control| removals.has(name(control)));
    if new.is_empty() && removals.is_empty() {
        return Ok(());
    }
    let stays = |old: &&Control| !removals.has(name(old)) && !new.iter().any(|control| name(control) == name(old));
    let old: Vec<&Control> = status.installed().filter(stays).collect();
    let there: Vec<&Control> = status.unpacked().filter(stays).collect();
    let all = presents(old.iter().chain(&new).copied())?;
    let fresh = presents(new.iter().copied())?;
    let met = presents(there.iter().chain(&new).copied())?;
    let removed = presents(status.unpacked().filter(|old| removals.has(name(old))).chain(passing.iter().copied()))?;
    let is_base = |control: &Control| there.iter().any(|old| std::ptr::eq(*old, control));
    for control in &new {
        if let Some(relation) = unmet(control, &all)?.into_iter().next() {
            needs_removed(control, &relation, &removed, removals)?;
            return Err(depends(control, relation, &old));
        }
        avoids(control, &met, &is_base)?;
        parse(control, "Replaces")?;
    }
    there.iter().try_for_each(|control| avoids(control, &fresh, &is_base))?;
    // Packages that an earlier layer installs and a later one removes.
    let meanwhile = presents(old.iter().chain(&new).chain(&passing).copied())?;
    for control in &passing {
        if let Some(relation) = unmet(control, &meanwhile)?.into_iter().next() {
            return Err(depends(control, relation, &old));
        }
    }
    // What is not configured yet needs the same when that happens.
    let is_old = |control: &&&Control| old.iter().any(|old| std::ptr::eq(*old, **control));
    let waiting: Vec<&Control> = there.iter().filter(|control| !is_old(control)).copied().collect();
    if !waiting.is_empty() {
        keeps(&waiting, &presents(status.unpacked())?, &met, &removed, removals)?;
    }
    match status.installed().count() == old.len() {
        true => Ok(()),
        false => keeps(&old, &presents(status.installed())?, &all, &removed, removals),
    }
}

/// Fails if a removed package satisfies a dependency that nothing else does.
fn needs_removed(by: &Control, relation: &str, removed: &[Present<'_>], removals: &Removals) -> Result<(), MergeError> {
    let named: Vec<Relation> = relation::groups(relation).into_iter().flatten().flatten().collect();
    let found = removed.iter().find(|found| named.iter().any(|relation| found.is(relation)));
    let Some(package) = found.map(|found| name(found.owner).to_owned()) else { return Ok(()) };
    let (layer, by) = (removals.layer_of(&package).to_owned(), name(by).to_owned());
    Err(MergeError::StillNeeded { package, layer, by, relation: relation.to_owned() })
}

/// Whether a package depends on another one.
pub(super) fn needs(by: &Control, of: &Control) -> Result<bool, MergeError> {
    let presents = presents(std::iter::once(of))?;
    let mut found = false;
    for field in ["Pre-Depends", "Depends"] {
        let groups = parse(by, field)?;
        found |= groups.iter().flatten().any(|relation| presents.iter().any(|present| present.is(relation)));
    }
    Ok(found)
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
fn keeps(
    old: &[&Control],
    before: &[Present<'_>],
    after: &[Present<'_>],
    removed: &[Present<'_>],
    removals: &Removals,
) -> Result<(), MergeError> {
    for control in old {
        let lost = unmet(control, after)?;
        let lacked = if lost.is_empty() { Vec::new() } else { unmet(control, before)? };
        if let Some(relation) = lost.into_iter().find(|relation| !lacked.contains(relation)) {
            needs_removed(control, &relation, removed, removals)?;
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

fn avoids(control: &Control, present: &[Present<'_>], is_base: &dyn Fn(&Control) -> bool) -> Result<(), MergeError> {
    for field in ["Conflicts", "Breaks"] {
        for relation in parse(control, field)?.iter().flatten() {
            // A package never conflicts with itself, nor with what it provides itself.
            let others = present.iter().filter(|found| name(found.owner) != name(control));
            if let Some(found) = others.into_iter().find(|found| found.is(relation)) {
                let of_base = [control, found.owner].into_iter().find(|control| is_base(control)).map(name);
                return Err(MergeError::Conflicts {
                    package: name(control).to_owned(),
                    relation: relation.text.clone(),
                    found: found.owner.get("Version").unwrap_or_default().to_owned(),
                    of_base: of_base.map(str::to_owned),
                });
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
