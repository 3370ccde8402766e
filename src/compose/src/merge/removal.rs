//! Removes packages with their configuration, as `dpkg --purge` does (Debian Policy 6.8). Packages of the base are removed before any layer
//! is applied; those that an earlier layer installs, before the packages of the layer that removes them are unpacked.

mod files;
mod unneeded;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use vmbake_disk::tree::Origin;

use super::database::Database;
use super::maintainer::Call;
use super::place::Target;
use super::status::{Status, state};
use super::upgrade::Old;
use super::{MAX_TEXT, MergeError, RECORD, RemovalFault, auto_installed, relations, triggers};
use crate::stage::{Control, StagedArtifact, StagedContent};
use vmbake_layer::{AuditedScript, Layer};
use vmbake_manifest::Manifest;

/// Fields that forbid removing a package.
const UNREMOVABLE: [&str; 3] = ["Essential", "Protected", "Important"];

/// The packages that layers remove.
#[derive(Debug)]
pub(super) struct Removals {
    /// The first layer that removes each package: its index and its name.
    of: BTreeMap<String, (usize, String)>,
    /// Packages that an earlier bake removed from the base.
    left_base: BTreeSet<String>,
    /// Packages that are removed by now.
    removed: BTreeSet<String>,
    /// Packages that nothing needed before.
    unneeded: BTreeSet<String>,
}

impl Removals {
    /// Reads what layers remove.
    pub(super) fn of(target: &Target, packages: &Database, layers: &[Layer]) -> Result<Self, MergeError> {
        let mut of = BTreeMap::new();
        for (index, layer) in layers.iter().enumerate() {
            for name in &layer.schema.remove_packages {
                of.entry(name.clone()).or_insert_with(|| (index, layer.schema.name.clone()));
            }
        }
        let (mut left_base, mut unneeded) = (BTreeSet::new(), BTreeSet::new());
        if !of.is_empty() {
            let text = target.tree.read(RECORD.as_bytes(), MAX_TEXT).ok();
            let manifest = text.and_then(|text| Manifest::parse(Path::new(RECORD), text).ok());
            left_base.extend(manifest.iter().flat_map(|one| one.content().removed_packages()).map(str::to_owned));
            unneeded = unneeded::find(&packages.status, &auto_installed::read(target)?);
        }
        Ok(Self { of, left_base, removed: BTreeSet::new(), unneeded })
    }

    /// Whether `remove_packages` is empty in every layer.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether a layer removes a package.
    pub(super) fn has(&self, package: &str) -> bool {
        self.of.contains_key(package)
    }

    /// The first layer that removes anything.
    pub(super) fn first_layer(&self) -> Option<usize> {
        self.of.values().map(|(index, _)| *index).min()
    }

    /// The layer that removes a package.
    pub(super) fn layer_of(&self, package: &str) -> &str {
        self.of.get(package).map_or("", |(_, layer)| layer)
    }

    /// Fails where a layer installs what an earlier one, or the layer itself, removes.
    pub(super) fn check_artifacts(&self, artifacts: &[StagedArtifact], layers: &[Layer]) -> Result<(), MergeError> {
        for artifact in artifacts {
            let StagedContent::Deb(deb) = &artifact.content else { continue };
            let removed = self.of.get(deb.name()).filter(|(index, _)| *index <= artifact.layer);
            if let Some((layer, name)) = layers.get(artifact.layer).zip(removed.map(|(_, name)| name)) {
                let fault = RemovalFault::Installed { layer: layer.schema.name.clone() };
                return Err(MergeError::Removes { package: deb.name().to_owned(), layer: name.clone(), fault });
            }
        }
        Ok(())
    }

    /// Removes the packages of earlier layers that the layer `index` lists; returns their names.
    pub(super) fn remove_from_layers(
        &mut self,
        target: &mut Target,
        packages: &mut Database,
        index: usize,
        audited: &[AuditedScript],
    ) -> Result<BTreeSet<String>, MergeError> {
        let is_left =
            |name: &&String| !self.removed.contains(*name) && self.of.get(*name).is_some_and(|(of, _)| *of == index);
        let mut controls = Vec::new();
        let names: BTreeSet<String> = self.of.keys().filter(is_left).cloned().collect();
        for name in &names {
            match named(packages, name) {
                Some(control) => controls.push(self.checked(control)?),
                None if self.left_base.contains(name) => {}
                None => return Err(self.refused(name, RemovalFault::Missing)),
            }
        }
        packages.remove(target, controls, audited)?;
        self.removed.extend(names.iter().cloned());
        Ok(names)
    }

    /// A warning about packages that only removed ones needed, as apt gives it.
    pub(super) fn warning(&self, target: &Target, packages: &Database) -> Result<Option<String>, MergeError> {
        if self.of.is_empty() {
            return Ok(None);
        }
        let mut names = unneeded::find(&packages.status, &auto_installed::read(target)?);
        names.retain(|name| !self.unneeded.contains(name));
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        Ok((!names.is_empty()).then(|| {
            format!(
                "{names}: installed automatically and no longer required, but kept: `remove_packages` can list them too"
            )
        }))
    }

    /// The package, unless it may not be removed.
    fn checked(&self, control: &Control) -> Result<Control, MergeError> {
        let package = control.get("Package").unwrap_or_default();
        let is_there = state(control) != "config-files";
        let field = UNREMOVABLE.into_iter().find(|field| is_there && control.get(field) == Some("yes"));
        if let Some(field) = field {
            return Err(self.refused(package, RemovalFault::Unremovable { field }));
        }
        if control.get("Status").is_some_and(|status| status.starts_with("hold ")) {
            return Err(self.refused(package, RemovalFault::Held));
        }
        match state(control) {
            "installed" | "triggers-pending" | "unpacked" | "config-files" => Ok(control.clone()),
            _ => Err(Status::unfinished(control)),
        }
    }

    fn refused(&self, package: &str, fault: RemovalFault) -> MergeError {
        MergeError::Removes { package: package.to_owned(), layer: self.layer_of(package).to_owned(), fault }
    }
}

/// Removes the packages of the base that layers remove.
pub(super) fn from_base(
    target: &mut Target,
    packages: &mut Database,
    removals: &mut Removals,
    layers: &[Layer],
    audited: &[AuditedScript],
) -> Result<(), MergeError> {
    for (index, layer) in layers.iter().enumerate() {
        let own = removals.of.iter().filter(|(_, (of, _))| *of == index).map(|(name, _)| name);
        let found = own.filter_map(|name| Some((name.clone(), named(packages, name)?)));
        let checked = found.map(|(name, control)| removals.checked(control).map(|control| (name, control)));
        let found = checked.collect::<Result<Vec<_>, _>>()?;
        if found.is_empty() {
            continue;
        }
        target.enter(Origin { layer: layer.schema.name.clone(), ..Origin::default() });
        let (names, controls): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        packages.remove(target, controls, audited)?;
        removals.removed.extend(names);
    }
    Ok(())
}

/// The package of that name and of the image's architecture, or what is left of it.
fn named<'a>(packages: &'a Database, name: &'a str) -> Option<&'a Control> {
    let is_own =
        |control: &&Control| control.get("Architecture").is_some_and(|found| found == packages.arch || found == "all");
    packages.status.named(name).find(is_own)
}

impl Database {
    /// Removes packages, each after those that depend on it.
    fn remove(
        &mut self,
        target: &mut Target,
        controls: Vec<Control>,
        audited: &[AuditedScript],
    ) -> Result<(), MergeError> {
        if controls.is_empty() {
            return Ok(());
        }
        let mut names = BTreeSet::new();
        for control in dependants_first(controls)? {
            self.purge(target, &Old::read(target, &control)?, audited)?;
            names.extend(control.get("Package").map(str::to_owned));
        }
        auto_installed::forget(target, &names)?;
        self.debconf.write(target)?;
        self.status.write(target)
    }

    fn purge(&mut self, target: &mut Target, old: &Old, audited: &[AuditedScript]) -> Result<(), MergeError> {
        let left = match state(&old.control) {
            "config-files" => old.list.clone(),
            _ => self.remove_files(target, old, audited)?,
        };
        self.owners.forget(&old.stem);
        let touched = files::remove_conffiles(target, self, old, &left)?;
        triggers::activate_removed(target, self, old, &touched)?;
        self.removal_script(target, old, "postrm", "purge", audited)?;
        files::remove_directories(target, self, old, &left)?;
        old.forget(target)?;
        self.status.remove(&old.control);
        self.pending.remove(&old.stem);
        self.left.remove(&old.stem);
        self.waiting.remove(&old.stem);
        Ok(())
    }

    /// Removes a package without its configuration; gives the lines of its list that are left.
    fn remove_files(
        &mut self,
        target: &mut Target,
        old: &Old,
        audited: &[AuditedScript],
    ) -> Result<Vec<Vec<u8>>, MergeError> {
        if state(&old.control) != "unpacked" {
            self.status.set_status(&old.stem, "purge ok half-configured")?;
            self.removal_script(target, old, "prerm", "remove", audited)?;
        }
        self.status.set_status(&old.stem, "purge ok half-installed")?;
        self.owners.forget(&old.stem);
        let (left, touched) = files::remove_files(target, self, old)?;
        triggers::activate_removed(target, self, old, &touched)?;
        self.removal_script(target, old, "postrm", "remove", audited)?;
        triggers::forget(target, old)?;
        files::remove_info(target, old)?;
        self.status.set_status(&old.stem, "purge ok config-files")?;
        Ok(left)
    }

    fn removal_script(
        &mut self,
        target: &mut Target,
        old: &Old,
        script: &'static str,
        action: &str,
        audited: &[AuditedScript],
    ) -> Result<(), MergeError> {
        let Some(source) = old.scripts.get(script) else { return Ok(()) };
        let [package, arch] = ["Package", "Architecture"].map(|field| old.control.get(field).unwrap_or_default());
        let args = [action];
        let call = Call { package, stem: &old.stem, arch, script, source, args: &args, control: None };
        self.script(target, &call, audited).map(|_| ())
    }
}

/// Whether a line of a package's list is one of its conffiles.
fn is_conffile(old: &Old, line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|name| old.conffiles.contains_key(name))
}

/// The packages in the order of their removal: by name, but each after those that depend on it. Packages that depend on each other keep the
/// order of their names.
fn dependants_first(mut left: Vec<Control>) -> Result<Vec<Control>, MergeError> {
    left.sort_by(|a, b| a.get("Package").cmp(&b.get("Package")));
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut next = 0;
        for (at, control) in left.iter().enumerate() {
            let mut is_needed = false;
            for (by, other) in left.iter().enumerate() {
                is_needed |= by != at && relations::needs(other, control)?;
            }
            if !is_needed {
                next = at;
                break;
            }
        }
        order.push(left.remove(next));
    }
    Ok(order)
}
