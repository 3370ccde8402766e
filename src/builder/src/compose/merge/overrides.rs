//! What an administrator, or a package, said about files of other packages: diversions (dpkg-divert(1)), which put them
//! elsewhere, and dpkg-statoverride(1), which gives them another owner and mode.

use std::collections::BTreeMap;

use vmbake_disk::tree::Metadata;

use super::accounts::lookup;
use super::place::Target;
use super::{DatabaseFault, MergeError};

const DIVERSIONS: &str = "/var/lib/dpkg/diversions";
const OVERRIDES: &str = "/var/lib/dpkg/statoverride";

/// One diversion.
#[derive(Clone, Debug)]
pub(super) struct Diversion {
    /// Where a file of any other package goes.
    pub(super) to: String,
    /// The package whose file stays; `None` where an administrator diverted them all.
    pub(super) package: Option<String>,
}

/// Both kinds, by absolute path as packages list it.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    diversions: BTreeMap<String, Diversion>,
    stats: BTreeMap<String, (String, String, u16)>,
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

    /// The path whose files are diverted to this one: no package may bring it.
    pub(super) fn diverted_from(&self, path: &str) -> Option<&str> {
        self.diversions.iter().find(|(_, found)| found.to == path).map(|(from, _)| from.as_str())
    }

    /// Gives a file the owner and mode that are set for its path.
    pub(super) fn apply(&self, target: &Target, path: &str, meta: &mut Metadata) -> Result<(), MergeError> {
        if let Some((user, group, mode)) = self.stats.get(path) {
            meta.mode = *mode;
            meta.uid = id(target, "user", "/etc/passwd", user)?;
            meta.gid = id(target, "group", "/etc/group", group)?;
        }
        Ok(())
    }
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

/// `user group mode path` on each line; the names are looked up when a package brings the path.
fn stats(target: &Target) -> Result<BTreeMap<String, (String, String, u16)>, MergeError> {
    let mut stats = BTreeMap::new();
    for line in target.text_or_empty(OVERRIDES)?.lines().filter(|line| !line.is_empty()) {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (user, group, mode, path) = (next().to_owned(), next().to_owned(), next(), next().to_owned());
        match u16::from_str_radix(mode, 8) {
            Ok(mode) if mode <= 0o7777 && path.starts_with('/') => stats.insert(path, (user, group, mode)),
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
