//! Diversions (dpkg-divert(1)) and overrides of owner and mode (dpkg-statoverride(1)).

use std::collections::BTreeMap;

use vmbake_disk::tree::Metadata;

use super::accounts::lookup;
use super::place::Target;
use super::{DatabaseFault, MergeError};

const DIVERSIONS: &str = "/var/lib/dpkg/diversions";
const OVERRIDES: &str = "/var/lib/dpkg/statoverride";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diversion {
    /// Where a file of any other package goes.
    pub(super) to: String,
    /// The package whose file stays; `None` where an administrator diverted them all.
    pub(super) package: Option<String>,
}

/// Owner and mode of a path: the names of a user and a group, or their numbers after `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) user: String,
    pub(super) group: String,
    pub(super) mode: u16,
}

/// Both kinds, by absolute path as packages list it.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    diversions: BTreeMap<String, Diversion>,
    stats: BTreeMap<String, Stat>,
}

impl Overrides {
    /// Reads both files of the base.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        Ok(Self { diversions: diversions(target)?, stats: stats(target)? })
    }

    /// The diversion of a path, where there is one for this package.
    pub(super) fn diversion(&self, package: &str, path: &str) -> Option<&Diversion> {
        self.diversions.get(path).filter(|found| found.package.as_deref() != Some(package))
    }

    /// The package for which a path is diverted.
    pub(super) fn diverting(&self, path: &str) -> Option<&str> {
        self.diversions.get(path).map(|found| found.package.as_deref().unwrap_or_default())
    }

    /// The path whose files are diverted to this one; no package may contain it.
    pub(super) fn diverted_from(&self, path: &str) -> Option<&str> {
        self.diversions.iter().find(|(_, found)| found.to == path).map(|(from, _)| from.as_str())
    }

    /// Gives a file the owner and mode that are set for its path.
    pub(super) fn apply(&self, target: &Target, path: &str, meta: &mut Metadata) -> Result<(), MergeError> {
        if let Some(Stat { user, group, mode }) = self.stats.get(path) {
            meta.mode = *mode;
            meta.uid = id(target, "user", "/etc/passwd", user)?;
            meta.gid = id(target, "group", "/etc/group", group)?;
        }
        Ok(())
    }

    /// All diversions with the paths that they divert, in the order of dpkg's file.
    pub(super) fn diversions(&self) -> Vec<(&str, &Diversion)> {
        in_order(&self.diversions)
    }

    /// All owners and modes with their paths, in the order of dpkg's file.
    pub(super) fn stats(&self) -> Vec<(&str, &Stat)> {
        in_order(&self.stats)
    }

    /// Says where a path is diverted to, or that it is no longer, and writes dpkg's file.
    pub(super) fn divert(
        &mut self,
        target: &mut Target,
        path: &str,
        diversion: Option<Diversion>,
    ) -> Result<(), MergeError> {
        match diversion {
            Some(diversion) => self.diversions.insert(path.to_owned(), diversion),
            None => self.diversions.remove(path),
        };
        let lines = self
            .diversions()
            .into_iter()
            .map(|(from, Diversion { to, package })| format!("{from}\n{to}\n{}\n", package.as_deref().unwrap_or(":")));
        write(target, DIVERSIONS, &lines.collect::<String>())
    }

    /// Says which owner and mode a path has, or that it has its package's, and writes dpkg's file.
    pub(super) fn set_stat(&mut self, target: &mut Target, path: &str, stat: Option<Stat>) -> Result<(), MergeError> {
        match stat {
            Some(stat) => self.stats.insert(path.to_owned(), stat),
            None => self.stats.remove(path),
        };
        let stats = self.stats().into_iter();
        let lines = stats.map(|(path, Stat { user, group, mode })| format!("{user} {group} {mode:o} {path}\n"));
        write(target, OVERRIDES, &lines.collect::<String>())
    }
}

/// Replaces one of dpkg's files, and keeps what it said.
fn write(target: &mut Target, path: &str, text: &str) -> Result<(), MergeError> {
    if target.tree.resolve(path.as_bytes()).is_ok() {
        let old = target.text(path)?;
        target.set_text(&format!("{path}-old"), &old)?;
    }
    target.set_text(path, text)
}

/// dpkg writes paths in the order of the table in which it keeps them: by their FNV-1a hashes modulo its size.
fn in_order<T>(all: &BTreeMap<String, T>) -> Vec<(&str, &T)> {
    let mut all: Vec<(&str, &T)> = all.iter().map(|(path, value)| (path.as_str(), value)).collect();
    all.sort_by_key(|(path, _)| slot(path));
    all
}

/// Where dpkg's table has a path.
pub(super) fn slot(path: &str) -> u32 {
    let name = path.trim_start_matches('/').bytes();
    name.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) % 262_139
}

/// Three lines each: the path, where it goes, and the package, or `:` for none.
fn diversions(target: &Target) -> Result<BTreeMap<String, Diversion>, MergeError> {
    let text = target.text_or_empty(DIVERSIONS)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut diversions = BTreeMap::new();
    for lines in lines.chunks(3) {
        let [from, to, package] = lines else {
            return Err(MergeError::content(DIVERSIONS, DatabaseFault::Diversions));
        };
        let package = Some(*package).filter(|package| *package != ":").map(str::to_owned);
        diversions.insert((*from).to_owned(), Diversion { to: (*to).to_owned(), package });
    }
    Ok(diversions)
}

/// `user group mode path` on each line; the names are resolved when a package contains the path.
fn stats(target: &Target) -> Result<BTreeMap<String, Stat>, MergeError> {
    let mut stats = BTreeMap::new();
    for line in target.text_or_empty(OVERRIDES)?.lines().filter(|line| !line.is_empty()) {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (user, group, mode, path) = (next().to_owned(), next().to_owned(), next(), next().to_owned());
        match u16::from_str_radix(mode, 8) {
            Ok(mode) if mode <= 0o7777 && path.starts_with('/') => stats.insert(path, Stat { user, group, mode }),
            _ => {
                return Err(MergeError::content(OVERRIDES, DatabaseFault::Override { line: line.to_owned() }));
            }
        };
    }
    Ok(stats)
}

/// An id by name, or by number after `#`.
fn id(target: &Target, what: &'static str, file: &'static str, name: &str) -> Result<u32, MergeError> {
    let found = match name.strip_prefix('#') {
        Some(number) => number.parse().ok(),
        None => lookup(target, file, name)?,
    };
    let missing = || DatabaseFault::Account { what, name: name.to_owned(), file };
    found.ok_or_else(|| MergeError::content(OVERRIDES, missing()))
}
