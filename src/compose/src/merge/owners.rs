//! The owning package of each file, from dpkg's lists below `/var/lib/dpkg/info`. If a package contains a file of another one, it is
//! refused unless `Replaces` (Debian Policy 7.6) allows it to take over the file.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Kind, Tree, components};

use super::place::Target;
use super::relations::replaces;
use super::status::{Status, state};
use super::{DatabaseFault, MAX_TEXT, MergeError};
use crate::stage::{Control, Deb};

/// dpkg's files about packages.
pub(super) const INFO: &str = "/var/lib/dpkg/info";

/// A file as one package lists it.
#[derive(Clone, Debug)]
struct Listed {
    /// Stem of the package's files below `info`.
    stem: String,
    line: Vec<u8>,
}

/// All listed files, by their places in the tree: `/lib/x` and `/usr/lib/x` are one where `/lib` is a link.
#[derive(Debug, Default)]
pub(super) struct Owners {
    files: BTreeMap<Vec<u8>, Vec<Listed>>,
}

/// Who gets a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The new package, if no other one has it.
    Free,
    /// The new package, which replaces another one there.
    Replace,
    /// The package that has it already.
    Keep,
}

impl Owners {
    /// Reads the lists of the base.
    pub(super) fn read(target: &Target) -> Result<Self, MergeError> {
        let mut owners = Self::default();
        let dir = target.tree.resolve(INFO.as_bytes()).ok();
        let Some(Kind::Directory(names)) = dir.map(|id| &target.tree.inode(id).kind) else { return Ok(owners) };
        for name in names.keys() {
            let Some(stem) = std::str::from_utf8(name).ok().and_then(|name| name.strip_suffix(".list")) else {
                continue;
            };
            for line in read(target, &list_path(stem))?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                owners.add(&target.tree, stem, line);
            }
        }
        Ok(owners)
    }

    /// Records that a package lists a path.
    pub(super) fn add(&mut self, tree: &Tree, stem: &str, line: &[u8]) {
        let listed = Listed { stem: stem.to_owned(), line: line.to_vec() };
        self.files.entry(place(tree, line)).or_default().push(listed);
    }

    /// Forgets all that a package lists.
    pub(super) fn forget(&mut self, stem: &str) {
        for listed in self.files.values_mut() {
            listed.retain(|listed| listed.stem != stem);
        }
    }

    /// Whether a package lists exactly that path.
    pub(super) fn is_listed(&self, tree: &Tree, line: &[u8]) -> bool {
        !self.listing(tree, line).is_empty()
    }

    /// The stems of the packages that list exactly that path.
    pub(super) fn listing(&self, tree: &Tree, line: &[u8]) -> Vec<&str> {
        let listed = self.files.get(&place(tree, line)).into_iter().flatten();
        listed.filter(|listed| listed.line == line).map(|listed| listed.stem.as_str()).collect()
    }

    /// Whether the package lists the file at `path`, under any name that links at the top of the tree give it.
    pub(super) fn owns(&self, tree: &Tree, package: &str, path: &[u8]) -> bool {
        let listed = self.files.get(&place(tree, path)).into_iter().flatten();
        listed.into_iter().any(|listed| listed.stem.split(':').next() == Some(package))
    }

    /// All listed paths, and the stem of a package that lists each.
    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.files.values().flatten().map(|listed| (listed.line.as_slice(), listed.stem.as_str()))
    }

    /// Who gets a file that is not a directory, which `deb` wants to place. `diverted` names the package for which the
    /// path is diverted: it and the others do not meet there. What other packages lose goes out of their lists.
    pub(super) fn claim(
        &mut self,
        target: &mut Target,
        status: &Status,
        deb: &Deb,
        path: &[u8],
        diverted: Option<&str>,
    ) -> Result<Claim, MergeError> {
        let stem = deb.info_stem();
        let at = place(&target.tree, path);
        let others: Vec<Listed> = self.files.get(&at).into_iter().flatten().cloned().collect();
        let mut claim = Claim::Free;
        for other in others.into_iter().filter(|other| other.stem != stem) {
            let Some(control) = status.package(&other.stem) else { continue };
            let name = control.get("Package").unwrap_or_default();
            if diverted.is_some_and(|package| package == name || package == deb.name()) {
                continue;
            }
            let gone = state(control) == "config-files";
            if !gone && !replaces(&deb.control, control)? {
                if replaces(control, &deb.control)? {
                    return Ok(Claim::Keep);
                }
                return Err(overwrites(deb, path, control));
            }
            self.lose(target, &at, &other, gone)?;
            claim = Claim::Replace;
        }
        Ok(claim)
    }

    fn lose(&mut self, target: &mut Target, at: &[u8], other: &Listed, gone: bool) -> Result<(), MergeError> {
        let path = list_path(&other.stem);
        let text = read(target, &path)?;
        let kept: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| *line != other.line).collect();
        if !gone && !kept.iter().any(|line| !line.is_empty() && *line != b"/." && !is_directory(&target.tree, line)) {
            return Err(MergeError::content(path, DatabaseFault::LastFile { path: show(&other.line) }));
        }
        let meta = target.meta(0o644);
        target.file(&path, meta, kept.join(&b'\n'))?;
        if let Some(listed) = self.files.get_mut(at) {
            listed.retain(|listed| listed.stem != other.stem);
        }
        Ok(())
    }
}

fn overwrites(deb: &Deb, path: &[u8], owner: &Control) -> MergeError {
    let field = |name| owner.get(name).unwrap_or_default().to_owned();
    MergeError::Overwrites {
        package: deb.name().to_owned(),
        path: show(path),
        owner: field("Package"),
        version: field("Version"),
    }
}

fn list_path(stem: &str) -> String {
    format!("{INFO}/{stem}.list")
}

fn read(target: &Target, path: &str) -> Result<Vec<u8>, MergeError> {
    target.tree.read(path.as_bytes(), MAX_TEXT).map_err(|source| MergeError::Tree { layer: "base".to_owned(), source })
}

fn is_directory(tree: &Tree, path: &[u8]) -> bool {
    tree.resolve(path).is_ok_and(|id| matches!(tree.inode(id).kind, Kind::Directory(_)))
}

fn show(path: &[u8]) -> String {
    vmbake_common::escape::name(path)
}

/// Where a path is, when a link at the top of the tree (`/lib`, `/bin`, ...) is on its way.
pub(super) fn place(tree: &Tree, path: &[u8]) -> Vec<u8> {
    let names: Vec<&[u8]> = components(path).collect();
    match names.split_first() {
        Some((first, rest)) if !rest.is_empty() => match tree.lookup(first).map(|id| &tree.inode(id).kind) {
            Some(Kind::Symlink(to)) => components(to).chain(rest.iter().copied()).collect::<Vec<_>>().join(&b'/'),
            _ => names.join(&b'/'),
        },
        _ => names.join(&b'/'),
    }
}
