//! Installing a package as dpkg would on a system that does not have it (deb-postinst(5), dpkg(1)): its files where the
//! base lets them be, its conffiles, its entry in the status file, its files below `info`, its triggers, and what its
//! scripts would do.

use std::collections::BTreeSet;
use std::io::{self, Read};

use md5::Digest as _;
use vmbake_disk::source::{MapReader, SourceId};
use vmbake_disk::tree::{Kind, TreeError};

use super::overrides::Overrides;
use super::owners::{Claim, INFO, Owners};
use super::place::Target;
use super::scripts::Effects;
use super::status::{State, Status};
use super::{MAX_TEXT, MergeError, deferred, scripts, triggers};
use crate::layer::AuditedScript;
use crate::stage::{Deb, Entry, EntryKind};

/// dpkg's knowledge of the tree, and what the installed packages leave to do.
#[derive(Debug, Default)]
pub(super) struct Database {
    owners: Owners,
    overrides: Overrides,
    status: Status,
    deferred: bool,
}

/// What a package lists, and where it goes.
struct Placed {
    /// Path in the package, absolute.
    listed: String,
    /// With its path in the tree.
    entry: Entry,
}

impl Database {
    /// Reads what the base has.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        let (owners, overrides) = (Owners::read(target)?, Overrides::read(target)?);
        Ok(Self { owners, overrides, status: Status::read(target)?, ..Self::default() })
    }

    /// Installs `deb`, whose data archive is `source`.
    pub(super) fn install(
        &mut self,
        target: &mut Target,
        deb: &Deb,
        source: SourceId,
        audited: &[AuditedScript],
    ) -> Result<(), MergeError> {
        let mut effects = scripts::effects(deb, audited)?;
        let placed = self.placed(target, deb)?;
        keep_conffiles(target, deb, &placed)?;
        let entries: Vec<Entry> = placed.iter().map(|placed| placed.entry.clone()).collect();
        target.entries(&entries, source, false)?;
        for placed in &placed {
            self.owners.add(&target.tree, &deb.info_stem(), placed.listed.as_bytes());
        }
        let state = if effects.defer { State::Unpacked } else { State::Installed };
        write_info(target, deb, &placed)?;
        let conffiles = conffile_digests(target, deb, &placed)?;
        self.status.add(target, deb, state, conffiles)?;
        self.set_off(target, deb, &entries, audited, &mut effects)?;
        triggers::record(target, deb)?;
        if effects.defer {
            self.defer(target)?;
        }
        scripts::apply(target, deb.name(), &effects)
    }

    /// Brings what configures packages on the first boot, once.
    fn defer(&mut self, target: &mut Target) -> Result<(), MergeError> {
        if std::mem::replace(&mut self.deferred, true) { Ok(()) } else { deferred::apply(target) }
    }

    /// Where the files of a package go: past diversions, with the owners and modes that are set for them, and without
    /// those that an installed package replaces.
    fn placed(&mut self, target: &mut Target, deb: &Deb) -> Result<Vec<Placed>, MergeError> {
        let mut all: Vec<Placed> = Vec::new();
        let mut names: BTreeSet<String> = BTreeSet::new();
        // dpkg leaves symbolic links to the end.
        let (links, others): (Vec<_>, Vec<_>) =
            deb.entries.iter().partition(|entry| matches!(entry.kind, EntryKind::Symlink(_)));
        for entry in others.into_iter().chain(links) {
            let mut entry = entry.clone();
            let listed = listed(&entry.path);
            if let Some(from) = self.overrides.diverted_from(&listed) {
                let reason = format!("is where {from} is diverted to, but {} brings it too", deb.name());
                return Err(MergeError::Content { path: listed, reason });
            }
            if !matches!(entry.kind, EntryKind::Directory) {
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
            if let EntryKind::HardLink(to) = &mut entry.kind {
                let first = self::listed(to);
                if !names.contains(&first) {
                    let reason = format!("is a hard link to {first}, which stays with another package");
                    return Err(MergeError::Content { path: listed, reason });
                }
                *to = self.used(deb, &first);
            }
            names.insert(listed.clone());
            all.push(Placed { listed, entry });
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
        entries: &[Entry],
        audited: &[AuditedScript],
        effects: &mut Effects,
    ) -> Result<(), MergeError> {
        let paths: Vec<Vec<u8>> = entries.iter().map(|entry| entry.path.clone()).collect();
        for set_off in triggers::activate(target, &self.status, deb, &paths, audited)? {
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

/// A conffile that the base has already would make dpkg ask a question; here nobody can answer.
fn keep_conffiles(target: &Target, deb: &Deb, placed: &[Placed]) -> Result<(), MergeError> {
    for path in deb.conffiles() {
        let used = placed.iter().find(|placed| placed.listed == path).map(|placed| placed.entry.path.as_slice());
        if matches!(target.tree.find(used.unwrap_or(path.as_bytes())), Ok(Some(_))) {
            let reason = format!("exists already, but is a conffile of {}", deb.name());
            return Err(MergeError::Content { path, reason });
        }
    }
    Ok(())
}

fn write_info(target: &mut Target, deb: &Deb, placed: &[Placed]) -> Result<(), MergeError> {
    let stem = format!("{INFO}/{}", deb.info_stem());
    let list: String = placed.iter().map(|placed| format!("{}\n", placed.listed)).collect();
    let meta = target.meta(0o644);
    target.file(&format!("{stem}.list"), meta, list.into_bytes())?;
    for (name, content) in &deb.info {
        let script = matches!(name.as_str(), "preinst" | "postinst" | "prerm" | "postrm");
        let meta = target.meta(if script { 0o755 } else { 0o644 });
        target.file(&format!("{stem}.{name}"), meta, content.clone())?;
    }
    if !deb.info.contains_key("md5sums") {
        let text = md5sums(target, placed)?;
        let meta = target.meta(0o644);
        target.file(&format!("{stem}.md5sums"), meta, text.into_bytes())?;
    }
    Ok(())
}

/// The digests of all files, which dpkg writes itself when a package does not bring them.
fn md5sums(target: &Target, placed: &[Placed]) -> Result<String, MergeError> {
    let mut text = String::new();
    for Placed { listed, entry } in placed {
        if !matches!(entry.kind, EntryKind::File { .. } | EntryKind::HardLink(_)) {
            continue;
        }
        let id = target.wrap(target.tree.resolve(&entry.path))?;
        if let Kind::File(map) = &target.tree.inode(id).kind {
            let content = MapReader::new(map, target.tree.sources());
            let digest = md5(content).map_err(|source| TreeError::Read { path: listed.clone(), source });
            text.push_str(&format!("{}  {}\n", target.wrap(digest)?, listed.trim_start_matches('/')));
        }
    }
    Ok(text)
}

/// The MD5 of all that a reader has to give, in hexadecimal.
fn md5(mut content: impl Read) -> io::Result<String> {
    let mut hasher = md5::Md5::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            len => hasher.update(&buffer[..len]),
        }
    }
}

/// Each conffile with its MD5, as the status file lists them: dpkg compares them when the package is upgraded.
fn conffile_digests(target: &Target, deb: &Deb, placed: &[Placed]) -> Result<String, MergeError> {
    let mut lines = String::new();
    for path in deb.conffiles() {
        let placed = placed.iter().find(|placed| placed.listed == path);
        let placed = placed.filter(|placed| matches!(placed.entry.kind, EntryKind::File { .. }));
        let content = placed.and_then(|placed| target.tree.read(&placed.entry.path, MAX_TEXT).ok());
        let content = content.ok_or_else(|| MergeError::Content {
            path: path.clone(),
            reason: format!("is listed as a conffile of {}, which does not bring it", deb.name()),
        })?;
        let digest =
            target.wrap(md5(content.as_slice()).map_err(|source| TreeError::Read { path: path.clone(), source }))?;
        lines.push_str(&format!("\n {path} {digest}"));
    }
    Ok(lines)
}
