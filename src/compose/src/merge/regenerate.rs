//! Processes files that a program must convert before they take effect: the tree before `hygiene`, with the paths of layers and archives,
//! in; the tree with regenerated files, and warnings about outdated ones, out.
//!
//! [`treatment`] determines the processing of each path. Files of packages are not processed: their scripts and triggers do it.

mod boot_disk;
mod certificates;
mod mail;
mod menu;
mod modules;

pub(super) use modules::Directories;

use vmbake_disk::tree::Origin;

use super::cleaned::Brought;
use super::database::Database;
use super::place::Target;
use super::{DeferredPackage, MergeError, initrd, locales, triggers};
use boot_disk::BootDisk;
use vmbake_layer::AuditedScript;
use vmbake_layer::processed::{INITRD, Treatment, Work, treatment};
use vmbake_manifest::Manifest;

/// Paths of the base that are compared with those of the finished tree.
pub(super) struct Before {
    certificates: certificates::Before,
    menu: menu::Defaults,
    modules: modules::Before,
}

/// What was made, and what was not.
#[derive(Default)]
pub(super) struct Regenerated {
    /// Packages whose scripts do it on the first boot.
    pub(super) deferred: Vec<DeferredPackage>,
    /// What stays as it was.
    pub(super) warnings: Vec<String>,
}

/// Whether a bake makes something else of a file at `path`, or refuses it.
pub fn is_processed(path: &str) -> bool {
    matches!(treatment(path.as_bytes()), Some(Treatment::Done(_) | Treatment::Refused { .. }))
}

impl Before {
    /// Looks at the base.
    pub(super) fn find(target: &Target) -> Self {
        Self {
            certificates: certificates::Before::find(target),
            menu: menu::Defaults::find(target),
            modules: modules::Before::find(target),
        }
    }

    /// Makes what the paths of layers need.
    pub(super) fn regenerate(
        &self,
        target: &mut Target,
        packages: &mut Database,
        manifest: &Manifest,
        brought: &Brought,
        audited: &[AuditedScript],
    ) -> Result<Regenerated, MergeError> {
        let mut made = Regenerated::default();
        let mut work: Vec<(Work, String)> = Vec::new();
        for (path, layer) in brought.paths() {
            let shown = vmbake_common::escape::name(path);
            triggers::activate_path(target, packages, path)?;
            let Some(treatment) = treatment(path) else { continue };
            match treatment {
                Treatment::Nothing => {}
                Treatment::Warned(what) => made.warnings.push(format!("{shown}, of layer {layer}: {what}")),
                Treatment::Refused { what, hint } => {
                    return Err(MergeError::Unread {
                        path: shown,
                        layer: layer.to_owned(),
                        what: what.to_owned(),
                        hint,
                    });
                }
                Treatment::Done(todo) => {
                    if let Some(output) = todo.output() {
                        target.check_landing(layer, output.as_bytes())?;
                    }
                    work.push((todo, layer.to_owned()));
                }
            }
            match treatment {
                Treatment::Done(Work::Locales) => locales::check_list(target, layer, &shown)?,
                Treatment::Done(Work::Certificates) => certificates::check(target, &shown, layer)?,
                Treatment::Done(Work::Initrd) if !initrd::note(target, packages, layer, None) => {
                    made.warnings.push(format!("{shown}, of layer {layer}: {INITRD}"));
                }
                Treatment::Done(Work::Mail) => mail::check(target, packages, &shown, layer)?,
                _ => {}
            }
        }
        let last = |wanted: Work| work.iter().rev().find(|(todo, _)| *todo == wanted).map(|(_, layer)| layer.clone());
        let own = target.origin().clone();
        let changed = self.certificates.differs(target);
        if let Some(layer) = last(Work::Certificates).or_else(|| changed.then(|| own.layer.clone())) {
            certificates::update(target, packages, &layer, &mut made.warnings)?;
            target.enter(Origin { layer, ..Origin::default() });
        }
        made.deferred = packages.configure(target, Vec::new(), audited)?;
        made.warnings.extend(self.certificates.lost(target));
        let boot_disk = BootDisk::of(target, manifest);
        // A new disk gets a new menu, with all settings.
        let changed = boot_disk.is_none() && self.menu.differs(target);
        if let Some(layer) =
            last(Work::Menu).filter(|_| boot_disk.is_none()).or_else(|| changed.then(|| own.layer.clone()))
        {
            target.enter(Origin { layer: layer.clone(), ..Origin::default() });
            self.menu.update(target, &layer)?;
        }
        self.modules.update(target, packages, brought, &mut made.warnings)?;
        target.enter(own);
        if let Some(disk) = boot_disk {
            disk.write(target, &mut made.warnings)?;
        }
        Ok(made)
    }
}
