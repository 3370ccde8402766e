//! Compares the packages of the manifest with those of the base: a package in the pinned version is kept, an earlier version is upgraded if
//! its layer allows it, and anything else is refused.

use debversion::Version;
use vmbake_common::message;

use super::status::{Status, state};
use super::{MergeError, OtherVersion};
use crate::stage::{Control, Deb, StagedArtifact, StagedContent};
use vmbake_layer::Layer;

/// A package that the base has in the version that the manifest pins: nothing is written for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SatisfiedPackage {
    /// The artifact of the manifest.
    pub artifact: String,
    /// The layer that would install it.
    pub layer: String,
    /// Name of the package.
    pub package: String,
    pub version: String,
}

/// Takes out of `artifacts` the packages that the base has, and fails for those that cannot take the place of another
/// version. What is left is new, or an upgrade.
pub(super) fn satisfied(
    status: &Status,
    artifacts: &mut Vec<StagedArtifact>,
    layers: &[Layer],
) -> Result<Vec<SatisfiedPackage>, MergeError> {
    once(artifacts)?;
    let mut kept = Vec::new();
    let mut rest = Vec::with_capacity(artifacts.len());
    for artifact in artifacts.drain(..) {
        let found = match (&artifact.content, layers.get(artifact.layer)) {
            (StagedContent::Deb(deb), Some(layer)) if stands(status, deb, &artifact, layer)? => {
                Some(SatisfiedPackage {
                    artifact: artifact.name.clone(),
                    layer: layer.schema.name.clone(),
                    package: deb.name().to_owned(),
                    version: deb.version().to_owned(),
                })
            }
            _ => None,
        };
        match found {
            Some(found) => kept.push(found),
            None => rest.push(artifact),
        }
    }
    *artifacts = rest;
    Ok(kept)
}

/// The package of the base whose place `deb` takes, once [`satisfied`] has let it pass.
pub(super) fn replaced<'a>(status: &'a Status, deb: &'a Deb) -> Option<&'a Control> {
    status.named(deb.name()).find(|control| state(control) == "installed")
}

/// Fails where two artifacts are one package.
fn once(artifacts: &[StagedArtifact]) -> Result<(), MergeError> {
    let debs: Vec<(&str, &Deb)> = artifacts
        .iter()
        .filter_map(|artifact| match &artifact.content {
            StagedContent::Deb(deb) => Some((artifact.name.as_str(), deb)),
            _ => None,
        })
        .collect();
    for (index, (second, deb)) in debs.iter().enumerate() {
        if let Some((first, _)) = debs.iter().take(index).find(|(_, earlier)| earlier.name() == deb.name()) {
            let [package, first, second] = [deb.name(), first, second].map(str::to_owned);
            return Err(MergeError::Message(message!("{package}: is both artifact {first} and artifact {second}")));
        }
    }
    Ok(())
}

/// Whether the base has the package as it is pinned; fails where it has it in a way that cannot be built upon.
fn stands(status: &Status, deb: &Deb, artifact: &StagedArtifact, layer: &Layer) -> Result<bool, MergeError> {
    let there: Vec<&Control> = status.named(deb.name()).collect();
    for control in &there {
        match control.get("Status").unwrap_or_default() {
            "install ok installed" | "hold ok installed" => {}
            _ => return Err(Status::unfinished(control)),
        }
    }
    let field = |control: &Control, name| control.get(name).unwrap_or_default().to_owned();
    let own = there.iter().find(|control| fits(control, deb)).copied();
    let Some(old) = own else {
        return match there.first() {
            None => Ok(false),
            Some(other) => Err(architecture(deb, other)),
        };
    };
    let (package, found, wanted) = (deb.name().to_owned(), field(old, "Version"), deb.version().to_owned());
    match (found.parse::<Version>(), wanted.parse::<Version>()) {
        (Ok(was), Ok(new)) if was > new => return Err(MergeError::Downgrade { package, found, wanted }),
        (Ok(was), Ok(new)) if was == new && field(old, "Architecture") == field(&deb.control, "Architecture") => {
            return Ok(true);
        }
        _ => {}
    }
    if !layer.schema.upgrade.has(&artifact.name) && artifact.upgrades.as_ref() != Some(&found) {
        let (layer, artifact) = (layer.schema.name.clone(), artifact.name.clone());
        let other = OtherVersion { package, found, wanted, layer, artifact };
        return Err(MergeError::Version(Box::new(other)));
    }
    match there.iter().find(|other| !std::ptr::eq(**other, old)) {
        // dpkg configures no package whose other architectures are at another version.
        Some(other) => Err(architecture(deb, other)),
        None if field(old, "Status").starts_with("hold ") => Err(MergeError::Hold { package, found }),
        None => Ok(false),
    }
}

/// Whether the package can be a version of that of the base: of the same architecture, or of all of them before or after.
fn fits(old: &Control, deb: &Deb) -> bool {
    let arch = |control: &Control| control.get("Architecture").unwrap_or_default().to_owned();
    let same = |control: &Control| control.get("Multi-Arch") == Some("same");
    let (old_arch, new_arch) = (arch(old), arch(&deb.control));
    old_arch == new_arch || ((old_arch == "all" || new_arch == "all") && !same(old) && !same(&deb.control))
}

fn architecture(deb: &Deb, other: &Control) -> MergeError {
    let field = |control: &Control, name| control.get(name).unwrap_or_default().to_owned();
    MergeError::Architecture {
        package: deb.name().to_owned(),
        found: field(other, "Architecture"),
        version: field(other, "Version"),
        wanted: field(&deb.control, "Architecture"),
    }
}
