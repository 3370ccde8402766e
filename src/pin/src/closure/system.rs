//! The packages of a system without a base image, as debootstrap and mmdebstrap select them.

use std::collections::BTreeSet;

use vmbake_common::message;
use vmbake_manifest::package_request::{PackagePattern, System, Variant};
use vmbake_proof::apt::{PackageIndex, Stanza};

use super::world::Archive;
use super::{ClosureError, Requests};
use crate::resolve::ManifestContext;
use crate::sources::Sources;

/// The package manager, which is not among the required packages.
const APT: &str = "apt";

/// The packages that provide `/bin`, `/sbin` and `/lib`, and the one that requires them to be links into `/usr`. Since
/// Debian 13 the former contains the links, and provides the latter. In Debian 12 the bake creates them, as debootstrap
/// does, and the package replaces `usrmerge`, which would move files of a running system.
const BASE_FILES: &str = "base-files";
const MERGED: &str = "usr-is-merged";

/// Adds the packages of systems to requests.
pub(super) fn complete(
    requests: &Requests,
    sources: &Sources,
    place: ManifestContext<'_>,
    archives: &[Archive<'_>],
) -> Result<Requests, ClosureError> {
    let mut requests = requests.clone();
    for (layer, request) in &mut requests {
        let Some(system) = &request.system else { continue };
        let own = system.archive.as_deref().or(place.system.archive.as_deref()).unwrap_or_default();
        let of_system: BTreeSet<&str> = sources.archives_for(own).collect();
        let archives = archives.iter().filter(|(name, _)| of_system.contains(name));
        let names = names(archives.map(|(_, index)| *index), system);
        if names.is_empty() {
            return Err(message!("layer {layer}: no package of archive {own} is essential").into());
        }
        request.packages.extend(names.into_iter().map(|name| PackagePattern { name: name.to_owned(), version: None }));
    }
    Ok(requests)
}

/// The names of the packages of a system.
fn names<'a>(archives: impl Iterator<Item = &'a PackageIndex> + Clone, system: &System) -> BTreeSet<&'a str> {
    let mut names: BTreeSet<&str> =
        archives.clone().flat_map(PackageIndex::iter).filter_map(|one| name(one, system)).collect();
    let has_links = |package: Stanza<'_>| {
        let provided = package.get("Provides").unwrap_or_default().split(',');
        provided.filter_map(|one| one.split_whitespace().next()).any(|name| name == MERGED)
    };
    let is_linked = archives.clone().any(|index| index.named(BASE_FILES).any(has_links));
    if names.contains(BASE_FILES) && !is_linked && archives.clone().any(|index| index.named(MERGED).next().is_some()) {
        names.insert(MERGED);
    }
    names
}

/// The name of a package, if it is part of the system.
fn name<'a>(package: Stanza<'a>, system: &System) -> Option<&'a str> {
    let name = package.get("Package")?;
    let is_essential = package.get("Essential") == Some("yes");
    let is_required = || package.get("Priority") == Some("required") || name == APT;
    (is_essential || (system.variant == Variant::Minimal && is_required())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(packages: &[(&str, &str)]) -> PackageIndex {
        let stanza = |(name, fields): &(&str, &str)| {
            format!("Package: {name}\nVersion: 1\nArchitecture: amd64\n{fields}Filename: {name}.deb\nSize: 1\n\n")
        };
        PackageIndex::unsigned(&packages.iter().map(stanza).collect::<String>(), "amd64")
    }

    /// Debian 12 has the package that does not move files, and Debian 13 needs none.
    #[test]
    fn a_system_with_a_merged_usr_does_not_merge_it() {
        let essential = "Essential: yes\nPriority: required\n";
        let provides = format!("{essential}Provides: base, usr-is-merged (= 38)\n");
        let others = [("apt", ""), ("passwd", "Priority: required\n"), ("usrmerge", ""), ("usr-is-merged", "")];
        for (base_files, variant, expected) in [
            (essential, Variant::Minimal, "apt base-files passwd usr-is-merged"),
            (essential, Variant::Essential, "base-files usr-is-merged"),
            (&provides, Variant::Minimal, "apt base-files passwd"),
            (&provides, Variant::Essential, "base-files"),
        ] {
            let index = index(&[&[("base-files", base_files)], &others[..]].concat());
            let found = names([&index].into_iter(), &System { archive: None, variant });
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected, "{variant:?}: {base_files}");
        }
    }
}
