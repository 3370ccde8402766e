//! Installing packages as dpkg does (dpkg(1), Debian Policy 6.6), new or in the place of older versions. All packages of a layer are
//! unpacked: their files where the base lets them be, their conffiles, their entries in the status file, their files below `info`. Then each
//! is configured, and at the end those that others have set off process their triggers.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::source::SourceId;
use vmbake_disk::tree::{Kind, Origin};

use super::database::Database;
use super::maintainer::{self, Call, Ran, ScriptFault};
use super::owners::{Claim, INFO};
use super::place::Target;
use super::placed::Placed;
use super::status::stem;
use super::upgrade::{Left, Old};
use super::{DeferredPackage, ListedFault, MAX_TEXT, MergeError, audited, conffiles, present, triggers};
use crate::compose::stage::{Control, Deb, Member, MemberKind};
use crate::layer::AuditedScript;
use crate::relation;

/// How often scripts may set off each other.
const MAX_ROUNDS: u32 = 20;

/// A package whose files are there, and which is not configured yet.
pub(super) struct Unpacked {
    package: String,
    stem: String,
    arch: String,
    /// The version that was configured before, or nothing.
    before: String,
    /// Its `postinst`, if it has one.
    postinst: Option<Vec<u8>>,
    origin: Origin,
}

impl Database {
    /// Unpacks `deb`, whose data archive is `source`.
    pub(super) fn unpack(
        &mut self,
        target: &mut Target,
        deb: &Deb,
        source: SourceId,
        audited: &[AuditedScript],
    ) -> Result<Unpacked, MergeError> {
        let old = present::replaced(&self.status, deb).map(|control| Old::read(target, control)).transpose()?;
        let before = old.as_ref().map_or("", |old| old.version.as_str()).to_owned();
        if let Some(old) = &old {
            self.old_script(target, old, deb, "prerm", audited)?;
        }
        let args: &[&str] = if old.is_some() { &["upgrade", &before, deb.version()] } else { &["install"] };
        let stem = deb.info_stem();
        if let Some(source) = deb.info.get("preinst") {
            let (package, arch, control) = (deb.name(), deb.arch(), Some(&deb.info));
            let call = Call { package, stem: &stem, arch, script: "preinst", source, args, control };
            self.script(target, &call, audited)?;
        }
        if let Some(old) = &old {
            self.owners.forget(&old.stem);
        }
        conffiles::none_moves(&self.status, deb)?;
        let mut placed = self.placed(target, deb)?;
        let digests = conffiles::settle(target, deb, old.as_ref(), source, &mut placed)?;
        let entries: Vec<Member> =
            placed.iter().filter(|placed| !placed.kept).map(|placed| placed.entry.clone()).collect();
        let left = match &old {
            Some(old) => {
                old.make_way(target, &placed)?;
                target.entries(&entries, source, false)?;
                self.old_script(target, old, deb, "postrm", audited)?;
                self.leave(target, old, &placed)?
            }
            None => target.entries(&entries, source, false).map(|()| Left::default())?,
        };
        let mut list: Vec<String> = placed.iter().map(|placed| placed.listed.clone()).collect();
        list.extend(left.obsolete.iter().map(|(path, _)| path.clone()));
        for path in &list {
            self.owners.add(&target.tree, &stem, path.as_bytes());
        }
        write_info(target, deb, &list, &placed, &digests)?;
        let conffiles = conffiles::field(deb, &digests, &left.obsolete);
        self.status.add(deb, conffiles, old.as_ref().map(|old| &old.control))?;
        let mut touched = left.touched;
        touched.extend(entries.into_iter().map(|entry| entry.path));
        triggers::activate(target, self, deb, &touched)?;
        triggers::record(target, deb)?;
        Ok(Unpacked {
            package: deb.name().to_owned(),
            stem,
            arch: deb.arch().to_owned(),
            before,
            postinst: deb.info.get("postinst").cloned(),
            origin: target.origin().clone(),
        })
    }

    /// Runs a script of the version that is replaced.
    fn old_script(
        &mut self,
        target: &mut Target,
        old: &Old,
        deb: &Deb,
        script: &'static str,
        audited: &[AuditedScript],
    ) -> Result<(), MergeError> {
        let Some(source) = old.scripts.get(script) else { return Ok(()) };
        let arch = old.control.get("Architecture").unwrap_or_default();
        let args = ["upgrade", deb.version()];
        let call = Call { package: deb.name(), stem: &old.stem, arch, script, source, args: &args, control: None };
        self.script(target, &call, audited).map(|_| ())
    }

    /// Does what a script does: what a layer says of it, or what the script says itself. Gives the reason why it waits, if it does.
    fn script(
        &mut self,
        target: &mut Target,
        call: &Call<'_>,
        audited: &[AuditedScript],
    ) -> Result<Option<String>, MergeError> {
        match audited::find(audited, call.package, call.script, call.source, call.is_upgrade()) {
            Some(entry) if entry.defer && call.script != "postinst" => Err(call.error(ScriptFault::NotPostinst)),
            Some(entry) if entry.defer => Ok(Some(format!("layer {} says so", target.origin().layer))),
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
                Some(needed) => Some(format!("it needs {needed}, which waits")),
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
        let reason = format!("what it makes of {names} is made on the machine");
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
                    reason = Some(format!("layer {} says so", target.origin().layer));
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

    /// Removes what the version that is replaced alone has.
    fn leave(&self, target: &mut Target, old: &Old, placed: &[Placed]) -> Result<Left, MergeError> {
        let left = old.remove(target, placed, &self.owners, &self.overrides)?;
        old.forget(target)?;
        triggers::forget(target, old)?;
        Ok(left)
    }

    /// Where the files of a package go: past diversions, with the owners and modes that are set for them, and without
    /// those that an installed package replaces.
    fn placed(&mut self, target: &mut Target, deb: &Deb) -> Result<Vec<Placed>, MergeError> {
        let mut all: Vec<Placed> = Vec::new();
        let mut names = BTreeSet::new();
        // dpkg leaves symbolic links to the end.
        let (links, others): (Vec<_>, Vec<_>) =
            deb.entries.iter().partition(|entry| matches!(entry.kind, MemberKind::Symlink(_)));
        for entry in others.into_iter().chain(links) {
            let mut entry = entry.clone();
            let listed = listed(&entry.path);
            if listed.contains(['\n', char::REPLACEMENT_CHARACTER]) {
                return Err(MergeError::content(listed, ListedFault::Name { package: deb.name().to_owned() }));
            }
            if let Some(from) = self.overrides.diverted_from(&listed) {
                let (from, package) = (from.to_owned(), deb.name().to_owned());
                return Err(MergeError::content(listed, ListedFault::Diverted { from, package }));
            }
            if !matches!(entry.kind, MemberKind::Directory) {
                let diverted = self.overrides.diverting(&listed).map(str::to_owned);
                let (owners, status) = (&mut self.owners, &self.status);
                match owners.claim(target, status, deb, listed.as_bytes(), diverted.as_deref())? {
                    Claim::Free => {}
                    Claim::Replace => target.release(listed.as_bytes()),
                    Claim::Keep => continue,
                }
            }
            self.overrides.apply(target, &listed, &mut entry.meta)?;
            entry.path = self.used(deb, &listed);
            if let MemberKind::HardLink(to) = &mut entry.kind {
                let first = self::listed(to);
                if !names.contains(&first) {
                    return Err(MergeError::content(listed, ListedFault::HardLink { to: first }));
                }
                *to = self.used(deb, &first);
            }
            names.insert(listed.clone());
            all.push(Placed { listed, entry, kept: false });
        }
        Ok(all)
    }

    /// Where a listed path is in the tree, without the slash in front.
    fn used(&self, deb: &Deb, listed: &str) -> Vec<u8> {
        let path = self.overrides.diversion(deb.name(), listed).map_or(listed, |found| found.to.as_str());
        path.trim_start_matches('/').as_bytes().to_vec()
    }
}

/// A path as dpkg lists it: the package's own root is `/.`.
fn listed(path: &[u8]) -> String {
    if path.is_empty() { "/.".to_owned() } else { format!("/{}", String::from_utf8_lossy(path)) }
}

/// Whether a package has that name, or provides it.
fn provides(control: &Control, name: &str) -> bool {
    let provided = control.get("Provides").and_then(relation::groups).unwrap_or_default();
    control.get("Package") == Some(name) || provided.iter().flatten().any(|relation| relation.name == name)
}

fn write_info(
    target: &mut Target,
    deb: &Deb,
    list: &[String],
    placed: &[Placed],
    digests: &BTreeMap<String, String>,
) -> Result<(), MergeError> {
    let stem = format!("{INFO}/{}", deb.info_stem());
    let list: String = list.iter().map(|path| format!("{path}\n")).collect();
    let meta = target.meta(0o644);
    target.file(&format!("{stem}.list"), meta, list.into_bytes())?;
    for (name, content) in &deb.info {
        let script = matches!(name.as_str(), "preinst" | "postinst" | "prerm" | "postrm" | "config");
        let meta = target.meta(if script { 0o755 } else { 0o644 });
        target.file(&format!("{stem}.{name}"), meta, content.clone())?;
    }
    if !deb.info.contains_key("md5sums") {
        let text = md5sums(target, placed, digests)?;
        let meta = target.meta(0o644);
        target.file(&format!("{stem}.md5sums"), meta, text.into_bytes())?;
    }
    Ok(())
}

/// The digests of all files, which dpkg writes itself when a package does not bring them. Those of conffiles are known.
fn md5sums(target: &Target, placed: &[Placed], digests: &BTreeMap<String, String>) -> Result<String, MergeError> {
    let mut text = String::new();
    for Placed { listed, entry, .. } in placed {
        if !matches!(entry.kind, MemberKind::File { .. } | MemberKind::HardLink(_)) {
            continue;
        }
        let digest = match digests.get(listed) {
            Some(digest) => digest.clone(),
            None => match &target.tree.inode(target.wrap(target.tree.resolve(&entry.path))?).kind {
                Kind::File(map) => target.wrap(conffiles::md5(target, map, listed))?,
                _ => continue,
            },
        };
        text.push_str(&format!("{digest}  {}\n", listed.trim_start_matches('/')));
    }
    Ok(text)
}
