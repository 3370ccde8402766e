//! Configures the packages of a layer as dpkg does (dpkg(1), Debian Policy 6): runs each `postinst` in dependency order, then processes
//! triggers. Packages that need the machine are deferred to the first boot.

use std::collections::BTreeSet;

use vmbake_disk::tree::Origin;

use super::database::Database;
use super::maintainer::{self, Call, Ran, ScriptFault};
use super::owners::INFO;
use super::place::Target;
use super::status::stem;
use super::{DeferredPackage, MAX_TEXT, MergeError, audited, triggers};
use crate::stage::Control;
use vmbake_layer::AuditedScript;
use vmbake_manifest::relation;

/// How often scripts may set off each other.
const MAX_ROUNDS: u32 = 20;

/// A package whose files are there, and which is not configured yet.
pub(super) struct Unpacked {
    pub(super) package: String,
    pub(super) stem: String,
    pub(super) arch: String,
    /// The version that was configured before, or nothing.
    pub(super) before: String,
    /// Its `postinst`, if it has one.
    pub(super) postinst: Option<Vec<u8>>,
    pub(super) origin: Origin,
}

impl Database {
    /// Does what a script does: what a layer says of it, or what the script says itself. Gives the reason why it waits, if it does.
    pub(super) fn script(
        &mut self,
        target: &mut Target,
        call: &Call<'_>,
        audited: &[AuditedScript],
    ) -> Result<Option<String>, MergeError> {
        match audited::find(audited, call.package, call.script, call.source, call.occasion()) {
            Some(entry) if entry.defer && call.script != "postinst" => Err(call.error(ScriptFault::NotPostinst)),
            Some(entry) if entry.defer => Ok(Some(format!("deferred by layer {}", target.origin().layer))),
            Some(entry) => audited::apply(target, entry).map(|()| None),
            None => match maintainer::run(target, self, call)? {
                Ran::Done => Ok(None),
                Ran::Waits(reason) => Ok(Some(reason)),
            },
        }
    }

    /// Configures packages in their order, and processes what triggers they have set off. Gives those that wait for the first boot.
    pub(super) fn configure(
        &mut self,
        target: &mut Target,
        unpacked: Vec<Unpacked>,
        audited: &[AuditedScript],
    ) -> Result<Vec<DeferredPackage>, MergeError> {
        let mut waiting = Vec::new();
        for package in unpacked {
            target.enter(package.origin.clone());
            let reason = match self.needs_waiting(&package) {
                Some(needed) => Some(format!("it depends on {needed}, which is deferred")),
                None => self.postinst(target, &package, audited)?,
            };
            match reason {
                None => {
                    self.status.configured(&package.stem)?;
                    waiting.extend(self.leave_triggers(target, &package)?);
                }
                Some(reason) => {
                    self.defer(target)?;
                    self.waiting.insert(package.stem.clone());
                    waiting.push(DeferredPackage { package: package.package, reason });
                }
            }
        }
        waiting.extend(self.process_triggers(target, audited)?);
        self.debconf.write(target)?;
        self.status.write(target)?;
        Ok(waiting)
    }

    /// Leaves to the machine what a package that is configured has to make there.
    fn leave_triggers(
        &mut self,
        target: &mut Target,
        package: &Unpacked,
    ) -> Result<Option<DeferredPackage>, MergeError> {
        let Some(names) = self.left.remove(&package.stem) else { return Ok(None) };
        names.iter().try_for_each(|name| self.status.pend(&package.stem, name))?;
        self.defer(target)?;
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let reason = format!("its trigger actions for {names} must run on the machine");
        Ok(Some(DeferredPackage { package: package.package.clone(), reason }))
    }

    fn postinst(
        &mut self,
        target: &mut Target,
        package: &Unpacked,
        audited: &[AuditedScript],
    ) -> Result<Option<String>, MergeError> {
        let Some(source) = &package.postinst else { return Ok(None) };
        let args = ["configure", &package.before];
        let Unpacked { package, stem, arch, .. } = package;
        let call = Call { package, stem, arch, script: "postinst", source, args: &args, control: None };
        self.script(target, &call, audited)
    }

    /// A package that this one depends on and that waits for the first boot, unless another one serves.
    fn needs_waiting(&self, package: &Unpacked) -> Option<String> {
        if self.waiting.is_empty() {
            return None;
        }
        let control = self.status.package(&package.stem)?;
        let groups = ["Pre-Depends", "Depends"].map(|field| control.get(field).and_then(relation::groups));
        let is_waiting = |stem: &String| stem != &package.stem && self.waiting.contains(stem);
        groups.into_iter().flatten().flatten().find_map(|group| {
            let named = |control: &Control| group.iter().any(|relation| provides(control, &relation.name));
            let found: Vec<String> = self.status.unpacked().filter(|found| named(found)).map(stem).collect();
            found.iter().all(is_waiting).then(|| found.first().cloned()).flatten()
        })
    }

    /// Runs the scripts of packages that others have set off.
    fn process_triggers(
        &mut self,
        target: &mut Target,
        audited: &[AuditedScript],
    ) -> Result<Vec<DeferredPackage>, MergeError> {
        let mut waiting = Vec::new();
        // A script may set off others.
        for _ in 0..MAX_ROUNDS {
            let pending = std::mem::take(&mut self.pending);
            if pending.is_empty() {
                return Ok(waiting);
            }
            for (stem, names) in pending {
                waiting.extend(self.triggered(target, &stem, &names, audited)?);
            }
        }
        let stems = self.pending.keys().cloned().collect::<Vec<_>>().join(", ");
        Err(MergeError::TriggerCycle { packages: stems })
    }

    fn triggered(
        &mut self,
        target: &mut Target,
        stem: &str,
        names: &BTreeSet<String>,
        audited: &[AuditedScript],
    ) -> Result<Option<DeferredPackage>, MergeError> {
        let Some(control) = self.status.package(stem) else { return Ok(None) };
        let field = |name: &str| control.get(name).unwrap_or_default().to_owned();
        let (package, arch) = (field("Package"), field("Architecture"));
        let path = format!("{INFO}/{stem}.postinst");
        let Ok(source) = target.tree.read(path.as_bytes(), MAX_TEXT) else { return Ok(None) };
        let mut left = Vec::new();
        let mut reason = None;
        for name in names {
            match triggers::answer(audited, &package, name, &source) {
                Some(entry) if entry.defer => {
                    self.status.pend(stem, name)?;
                    reason = Some(format!("deferred by layer {}", target.origin().layer));
                }
                Some(entry) => audited::apply(target, entry)?,
                None => left.push(name.as_str()),
            }
        }
        if !left.is_empty() {
            let args = ["triggered", &left.join(" ")];
            let (package, arch, source) = (&package, &arch, &source);
            let call = Call { package, stem, arch, script: "postinst", source, args: &args, control: None };
            if let Ran::Waits(why) = maintainer::run(target, self, &call)? {
                left.iter().try_for_each(|name| self.status.pend(stem, name))?;
                reason = Some(why);
            }
        }
        let Some(reason) = reason else { return Ok(None) };
        self.defer(target)?;
        Ok(Some(DeferredPackage { package, reason }))
    }
}

/// Whether a package has that name, or provides it.
fn provides(control: &Control, name: &str) -> bool {
    let provided = control.get("Provides").and_then(relation::groups).unwrap_or_default();
    control.get("Package") == Some(name) || provided.iter().flatten().any(|relation| relation.name == name)
}
