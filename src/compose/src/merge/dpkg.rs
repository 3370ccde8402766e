//! Unpacks packages as dpkg does (dpkg(1), Debian Policy 6.6), new ones and upgrades: files, conffiles, entries in the status file, and
//! files below `info`. The packages of a layer are configured after all of them are unpacked.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::source::SourceId;
use vmbake_disk::tree::Kind;

use super::configure::Unpacked;
use super::database::Database;
use super::filters::{self, Filters};
use super::maintainer::Call;
use super::owners::{Claim, INFO};
use super::place::Target;
use super::placed::Placed;
use super::upgrade::{Left, Old};
use super::{ListedFault, MergeError, conffiles, present, triggers};
use crate::stage::{Deb, MemberKind};
use vmbake_layer::AuditedScript;

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
        Filters::read(target)?.apply(target, &mut placed, &deb.conffiles())?;
        let digests = conffiles::resolve_conflicts(target, deb, old.as_ref(), source, &mut placed)?;
        let entries = filters::written(&placed);
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
        touched.extend(placed.iter().filter(|placed| !placed.kept).map(|placed| placed.entry.path.clone()));
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
            all.push(Placed { listed, entry, kept: false, left_out: false });
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
    for Placed { listed, entry, .. } in placed.iter().filter(|placed| !placed.left_out) {
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
