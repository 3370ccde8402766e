//! The packages of a system without a base image, as debootstrap and mmdebstrap select them.

use std::collections::BTreeSet;

use vmbake_common::message;
use vmbake_manifest::package_request::{PackagePattern, System, Variant};
use vmbake_proof::apt::Stanza;

use super::world::Archive;
use super::{ClosureError, Requests};
use crate::resolve::ManifestContext;
use crate::sources::Sources;

/// The package manager, which is not among the required packages.
const APT: &str = "apt";

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
        let names: BTreeSet<&str> =
            archives.flat_map(|(_, index)| index.iter()).filter_map(|one| name(one, system)).collect();
        if names.is_empty() {
            return Err(message!("layer {layer}: no package of archive {own} is essential").into());
        }
        request.packages.extend(names.into_iter().map(|name| PackagePattern { name: name.to_owned(), version: None }));
    }
    Ok(requests)
}

/// The name of a package, if it is part of the system.
fn name<'a>(package: Stanza<'a>, system: &System) -> Option<&'a str> {
    let name = package.get("Package")?;
    let is_essential = package.get("Essential") == Some("yes");
    let is_required = || package.get("Priority") == Some("required") || name == APT;
    (is_essential || (system.variant == Variant::Minimal && is_required())).then_some(name)
}
