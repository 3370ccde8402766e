//! Installing a package as dpkg would (deb-postinst(5), dpkg(1)), new or in the place of an older version: its files where
//! the base lets them be, its conffiles, its entry in the status file, its files below `info`, its triggers, and what its
//! scripts would do.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::source::SourceId;
use vmbake_disk::tree::Kind;

use super::effects::Effects;
use super::overrides::Overrides;
use super::owners::{Claim, INFO, Owners};
use super::place::Target;
use super::placed::Placed;
use super::status::{State, Status};
use super::upgrade::{Left, Old};
use super::{ListedFault, MergeError, SatisfiedPackage, conffiles, deferred, present, relations, scripts, triggers};
use crate::compose::stage::{Deb, Member, MemberKind, StagedArtifact};
use crate::layer::{AuditedScript, Layer};

/// dpkg's knowledge of the tree, and what the installed packages leave to do.
#[derive(Debug, Default)]
pub(super) struct Database {
    owners: Owners,
    overrides: Overrides,
    status: Status,
    deferred: bool,
}

impl Database {
    /// Reads what the base has.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        let (owners, overrides) = (Owners::read(target)?, Overrides::read(target)?);
        Ok(Self { owners, overrides, status: Status::read(target)?, ..Self::default() })
    }

    /// Takes out what the base has already, and fails where the rest does not fit to it.
    pub(super) fn satisfied(
        &self,
        artifacts: &mut Vec<StagedArtifact>,
        layers: &[Layer],
    ) -> Result<Vec<SatisfiedPackage>, MergeError> {
        let kept = present::satisfied(&self.status, artifacts, layers)?;
        relations::check(&self.status, artifacts)?;
        Ok(kept)
    }

    /// Installs `deb`, whose data archive is `source`.
    pub(super) fn install(
        &mut self,
        target: &mut Target,
        deb: &Deb,
        source: SourceId,
        audited: &[AuditedScript],
    ) -> Result<(), MergeError> {
        let old = present::replaced(&self.status, deb).map(|control| Old::read(target, control)).transpose()?;
        let mut effects = scripts::effects(deb, old.as_ref(), audited)?;
        if let Some(old) = &old {
            self.owners.forget(&old.stem);
        }
        conffiles::none_moves(&self.status, deb)?;
        let mut placed = self.placed(target, deb)?;
        let digests = conffiles::settle(target, deb, old.as_ref(), source, &mut placed)?;
        let entries: Vec<Member> =
            placed.iter().filter(|placed| !placed.kept).map(|placed| placed.entry.clone()).collect();
        let left = match &old {
            Some(old) => self.replace(target, old, &placed, &entries, source)?,
            None => target.entries(&entries, source, false).map(|()| Left::default())?,
        };
        let mut list: Vec<String> = placed.iter().map(|placed| placed.listed.clone()).collect();
        list.extend(left.obsolete.iter().map(|(path, _)| path.clone()));
        for path in &list {
            self.owners.add(&target.tree, &deb.info_stem(), path.as_bytes());
        }
        let state = if effects.defer { State::Unpacked } else { State::Installed };
        write_info(target, deb, &list, &placed, &digests)?;
        let conffiles = conffiles::field(deb, &digests, &left.obsolete);
        self.status.add(target, deb, state, conffiles, old.as_ref().map(|old| &old.control))?;
        let mut touched = left.touched;
        touched.extend(entries.into_iter().map(|entry| entry.path));
        self.set_off(target, deb, &touched, audited, &mut effects)?;
        triggers::record(target, deb)?;
        if effects.defer {
            self.defer(target)?;
        }
        scripts::apply(target, deb.name(), &effects)
    }

    /// Places the files of a newer version, and removes what the old one alone has.
    fn replace(
        &self,
        target: &mut Target,
        old: &Old,
        placed: &[Placed],
        entries: &[Member],
        source: SourceId,
    ) -> Result<Left, MergeError> {
        old.make_way(target, placed)?;
        target.entries(entries, source, false)?;
        let left = old.remove(target, placed, &self.owners, &self.overrides)?;
        old.forget(target)?;
        triggers::forget(target, old)?;
        Ok(left)
    }

    /// Brings what configures packages on the first boot, once.
    fn defer(&mut self, target: &mut Target) -> Result<(), MergeError> {
        if std::mem::replace(&mut self.deferred, true) { Ok(()) } else { deferred::apply(target) }
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

    fn set_off(
        &mut self,
        target: &mut Target,
        deb: &Deb,
        touched: &[Vec<u8>],
        audited: &[AuditedScript],
        effects: &mut Effects,
    ) -> Result<(), MergeError> {
        for set_off in triggers::activate(target, &self.status, deb, touched, audited)? {
            if set_off.entry.defer {
                self.defer(target)?;
                self.status.pend(target, &set_off.stem, &set_off.trigger)?;
            } else {
                effects.extend(set_off.entry);
            }
        }
        Ok(())
    }
}

/// A path as dpkg lists it: the package's own root is `/.`.
fn listed(path: &[u8]) -> String {
    if path.is_empty() { "/.".to_owned() } else { format!("/{}", String::from_utf8_lossy(path)) }
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
        let script = matches!(name.as_str(), "preinst" | "postinst" | "prerm" | "postrm");
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
