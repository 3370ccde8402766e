//! Upgrades of packages of the base, as by dpkg: the files and conffiles of the old version in, the files to keep or remove out. Files that
//! the new version lacks are removed, as are directories that become empty; conffiles that it lacks are kept as obsolete.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{InodeId, Kind, Tree, components};

use super::overrides::Overrides;
use super::owners::{INFO, Owners, place};
use super::place::Target;
use super::placed::Placed;
use super::{MAX_TEXT, MergeError};
use crate::stage::{Control, MemberKind};

/// The version that is replaced.
#[derive(Debug)]
pub(super) struct Old {
    pub(super) control: Control,
    pub(super) version: String,
    /// Stem of its files below `info`.
    pub(super) stem: String,
    /// Its maintainer scripts, by name.
    pub(super) scripts: BTreeMap<String, Vec<u8>>,
    /// Text of its `triggers` control file.
    pub(super) triggers: Vec<u8>,
    /// The lines of its list, in their order.
    pub(super) list: Vec<Vec<u8>>,
    /// Its conffiles with the digests that they had when it was installed.
    pub(super) conffiles: BTreeMap<String, String>,
}

/// What an upgrade left behind.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Conffiles that the new version lacks, with their digests, in the order in which dpkg lists them.
    pub(super) obsolete: Vec<(String, String)>,
    /// Paths that set off triggers as they go.
    pub(super) touched: Vec<Vec<u8>>,
}

impl Old {
    /// Reads what dpkg knows about the installed package `control`.
    pub(super) fn read(target: &Target, control: &Control) -> Result<Self, MergeError> {
        let field = |name| control.get(name).unwrap_or_default().to_owned();
        let stem = match control.get("Multi-Arch") {
            Some("same") => format!("{}:{}", field("Package"), field("Architecture")),
            _ => field("Package"),
        };
        let file = |name: &str| {
            let path = format!("{INFO}/{stem}.{name}");
            match target.wrap(target.tree.find(path.as_bytes()))? {
                Some(_) => target.wrap(target.tree.read(path.as_bytes(), MAX_TEXT)),
                None => Ok(Vec::new()),
            }
        };
        let mut scripts = BTreeMap::new();
        for name in ["prerm", "postrm"] {
            let bytes = file(name)?;
            if !bytes.is_empty() {
                scripts.insert(name.to_owned(), bytes);
            }
        }
        let (list, triggers) = (file("list")?, file("triggers")?);
        let list = list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
        let (version, conffiles) = (field("Version"), conffiles(control));
        Ok(Self { control: control.clone(), version, stem, scripts, triggers, list, conffiles })
    }

    /// The digest that a conffile had when the old version was installed, by any of the names of its place.
    pub(super) fn conffile(&self, tree: &Tree, path: &str) -> Option<&str> {
        let at = place(tree, path.as_bytes());
        let same = || self.conffiles.iter().find(|(name, _)| place(tree, name.as_bytes()) == at);
        self.conffiles.get(path).or_else(|| same().map(|(_, digest)| digest)).map(String::as_str)
    }

    /// Removes its files where the new version has directories: dpkg replaces such a file with a directory.
    pub(super) fn make_way(&self, target: &mut Target, placed: &[Placed]) -> Result<(), MergeError> {
        let own: BTreeSet<&[u8]> = self.list.iter().map(Vec::as_slice).collect();
        let is_made = |placed: &&Placed| !placed.left_out && matches!(placed.entry.kind, MemberKind::Directory);
        for placed in placed.iter().filter(is_made) {
            let found = target.wrap(target.tree.find(&placed.entry.path))?;
            let file = found.is_some_and(|id| matches!(target.tree.inode(id).kind, Kind::File(_)));
            if file && own.contains(placed.listed.as_bytes()) {
                let removed = target.tree.remove(&placed.entry.path);
                target.wrap(removed)?;
            }
        }
        Ok(())
    }

    /// Removes what the new version, which has been placed, does not have.
    pub(super) fn remove(
        &self,
        target: &mut Target,
        placed: &[Placed],
        owners: &Owners,
        overrides: &Overrides,
    ) -> Result<Left, MergeError> {
        let written = placed.iter().filter(|placed| !placed.left_out);
        let listed: BTreeSet<&[u8]> = written.map(|placed| placed.listed.as_bytes()).collect();
        let lookup = |tree: &Tree, path: &[u8]| tree.find(path).ok().flatten();
        let new: BTreeSet<InodeId> = listed.iter().filter_map(|path| lookup(&target.tree, path)).collect();
        let package = self.control.get("Package").unwrap_or_default();
        let mut left = Left::default();
        for line in self.list.iter().rev().filter(|line| !listed.contains(line.as_slice())) {
            let name = String::from_utf8_lossy(line).into_owned();
            let path =
                overrides.diversion(package, &name).map_or(line.as_slice(), |found| found.to.as_bytes()).to_vec();
            let leads = target.tree.resolve(&path).ok().map(|id| &target.tree.inode(id).kind);
            // Links at the top, such as `/lib`, are the way to everything; dpkg knows them as those of another package.
            let linked = |id| matches!(target.tree.inode(id).kind, Kind::Symlink(_));
            let way = components(line).count() == 1 && lookup(&target.tree, &path).is_some_and(linked);
            let shared = way || owners.is_listed(&target.tree, line);
            if matches!(leads, Some(Kind::Directory(_))) && shared {
                continue;
            }
            let Some(id) = lookup(&target.tree, &path) else { continue };
            let gone = match &target.tree.inode(id).kind {
                // The root has no other name than this.
                Kind::Directory(_) if line.as_slice() == b"/." => continue,
                Kind::Directory(entries) => entries.is_empty(),
                _ if self.conffiles.contains_key(&name) => {
                    if !new.contains(&id) {
                        let digest = self.conffiles.get(&name).cloned().unwrap_or_default();
                        left.obsolete.push((name, digest));
                    }
                    continue;
                }
                _ if new.contains(&id) => continue,
                _ => true,
            };
            if gone {
                target.check_way(&path)?;
                let removed = target.tree.remove(&path);
                target.wrap(removed)?;
            }
            left.touched.push(path);
        }
        Ok(left)
    }

    /// The names of its files below `info`.
    pub(super) fn info(&self, tree: &Tree) -> Vec<Vec<u8>> {
        let info = tree.find(INFO.as_bytes()).ok().flatten();
        let Some(Kind::Directory(names)) = info.map(|id| &tree.inode(id).kind) else { return Vec::new() };
        let own = |name: &&Vec<u8>| {
            let kind = name.strip_prefix(self.stem.as_bytes()).and_then(|rest| rest.strip_prefix(b"."));
            kind.is_some_and(|kind| !kind.contains(&b'.'))
        };
        names.keys().filter(own).cloned().collect()
    }

    /// Removes its files below `info`.
    pub(super) fn forget(&self, target: &mut Target) -> Result<(), MergeError> {
        for name in self.info(&target.tree) {
            let removed = target.tree.remove(&[INFO.as_bytes(), b"/", &name].concat());
            target.wrap(removed)?;
        }
        Ok(())
    }
}

/// The field `Conffiles`: a path, its digest and perhaps a word about it, on a line each. What an upgrade is to remove was never a file of
/// this version: another package may have it.
pub(super) fn conffiles(control: &Control) -> BTreeMap<String, String> {
    let lines = control.get("Conffiles").unwrap_or_default().lines().map(str::trim);
    let parse = |line: &str| {
        if line.ends_with(" remove-on-upgrade") {
            return None;
        }
        let line = line.strip_suffix("obsolete").map_or(line, str::trim_end);
        let (path, digest) = line.rsplit_once(' ')?;
        Some((path.to_owned(), digest.to_owned()))
    };
    lines.filter_map(parse).collect()
}
