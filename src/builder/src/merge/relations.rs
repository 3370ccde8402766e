//! Package relations (Debian Policy 7): whether everything that is going to be installed fits together.

use debversion::Version;

use super::MergeError;
use super::dpkg::Status;
use super::place::Target;
use crate::stage::{Content, Control, StagedArtifact};

/// A package, real or provided: its name and, unless it is provided without one, its version.
struct Present {
    name: String,
    version: Option<String>,
    real: bool,
}

/// Checks `Depends`, `Pre-Depends`, `Conflicts` and `Breaks` of all packages to be installed against those of the base
/// and each other, and of the base's against them.
pub(super) fn check(target: &Target, artifacts: &[StagedArtifact]) -> Result<(), MergeError> {
    let status = Status::read(target)?;
    let new: Vec<&Control> = artifacts
        .iter()
        .filter_map(|artifact| match &artifact.content {
            Content::Deb(deb) => Some(&deb.control),
            _ => None,
        })
        .collect();
    let old: Vec<&Control> = status.installed().collect();
    let name = |control: &Control| control.get("Package").unwrap_or_default().to_owned();
    for control in &new {
        if let Some(found) = old.iter().find(|old| name(old) == name(control)) {
            let found = found.get("Version").unwrap_or_default().to_owned();
            return Err(MergeError::Installed { package: name(control), found });
        }
    }
    let all: Vec<Present> = old.iter().chain(&new).flat_map(|control| presents(control)).collect();
    let fresh: Vec<Present> = new.iter().flat_map(|control| presents(control)).collect();
    for control in &new {
        needs(control, &all)?;
        avoids(control, &all)?;
    }
    old.iter().try_for_each(|control| avoids(control, &fresh))
}

/// The package itself and what it provides.
fn presents(control: &Control) -> Vec<Present> {
    let version = control.get("Version").map(str::to_owned);
    let mut all = vec![Present { name: control.get("Package").unwrap_or_default().to_owned(), version, real: true }];
    for provided in control.get("Provides").unwrap_or_default().split(',').filter_map(Relation::parse) {
        let version = provided.version.map(|(_, version)| version);
        all.push(Present { name: provided.name, version, real: false });
    }
    all
}

fn needs(control: &Control, present: &[Present]) -> Result<(), MergeError> {
    for field in ["Pre-Depends", "Depends"] {
        for group in control.get(field).unwrap_or_default().split(',').filter(|group| !group.trim().is_empty()) {
            let met = group
                .split('|')
                .filter_map(Relation::parse)
                .any(|relation| present.iter().any(|candidate| relation.matches(candidate)));
            if !met {
                let package = control.get("Package").unwrap_or_default().to_owned();
                return Err(MergeError::Depends { package, relation: group.trim().to_owned() });
            }
        }
    }
    Ok(())
}

fn avoids(control: &Control, present: &[Present]) -> Result<(), MergeError> {
    let package = control.get("Package").unwrap_or_default();
    for field in ["Conflicts", "Breaks"] {
        for text in control.get(field).unwrap_or_default().split(',') {
            let Some(relation) = Relation::parse(text) else { continue };
            // A package may conflict with what it provides itself.
            let other = |candidate: &&Present| candidate.name != package || candidate.real;
            let hit = present.iter().filter(other).find(|candidate| relation.matches(candidate));
            if let Some(found) = hit.filter(|found| found.name != package && !provides(control, &found.name)) {
                let found = found.version.clone().unwrap_or_default();
                let relation = text.trim().to_owned();
                return Err(MergeError::Conflicts { package: package.to_owned(), relation, found });
            }
        }
    }
    Ok(())
}

fn provides(control: &Control, name: &str) -> bool {
    let provided = control.get("Provides").unwrap_or_default();
    provided.split(',').filter_map(Relation::parse).any(|relation| relation.name == name)
}

/// One relation: a name, and a comparison with a version.
struct Relation {
    name: String,
    version: Option<(String, String)>,
}

impl Relation {
    /// `name[:arch] [(<op> version)] [[arches]]`; an architecture qualifier is dropped, as an image has only one.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let name = text.split([' ', '(', '[', ':']).next()?.to_owned();
        let inside = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(inside, _)| inside.trim());
        let version = inside.map(|inside| {
            let end = inside.find(|c| !matches!(c, '<' | '>' | '=')).unwrap_or(inside.len());
            (inside[..end].to_owned(), inside[end..].trim().to_owned())
        });
        (!name.is_empty()).then_some(Self { name, version })
    }

    /// Whether a present package satisfies the relation. An unversioned provision satisfies no versioned one.
    fn matches(&self, candidate: &Present) -> bool {
        if self.name != candidate.name {
            return false;
        }
        let Some((operator, wanted)) = &self.version else { return true };
        let found = candidate.version.as_ref().and_then(|version| version.parse::<Version>().ok());
        let (Some(found), Ok(wanted)) = (found, wanted.parse::<Version>()) else { return false };
        match operator.as_str() {
            "<<" => found < wanted,
            "<=" | "<" => found <= wanted,
            "=" => found == wanted,
            ">=" | ">" => found >= wanted,
            ">>" => found > wanted,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_compare_versions_as_dpkg() {
        let present = |version: Option<&str>| Present {
            name: "libc6".to_owned(),
            version: version.map(str::to_owned),
            real: true,
        };
        for (text, version, expected) in [
            ("libc6", Some("2.41-12"), true),
            ("libc6 (>= 2.38)", Some("2.41-12"), true),
            ("libc6:any (>= 2.41-12)", Some("2.41-12"), true),
            ("libc6 (>> 2.41-12)", Some("2.41-12"), false),
            ("libc6 (<< 2.41~)", Some("2.41~rc1"), false),
            ("libc6 (>= 1:1)", Some("2.41"), false),
            ("libc6 (= 2.41)", None, false),
            ("libc7", Some("2.41"), false),
        ] {
            assert_eq!(Relation::parse(text).unwrap().matches(&present(version)), expected, "{text} {version:?}");
        }
    }
}
