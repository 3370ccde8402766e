//! The files of a package that is removed: those that it alone has, its conffiles with their backups, and its files below `info`.

use vmbake_disk::tree::{Arrival, Kind, Tree, components};

use super::is_conffile;
use crate::merge::MergeError;
use crate::merge::database::Database;
use crate::merge::owners::INFO;
use crate::merge::place::Target;
use crate::merge::upgrade::Old;

/// Endings of files that dpkg removes next to each file.
const TEMPORARY: [&[u8]; 2] = [b".dpkg-tmp", b".dpkg-new"];

/// Endings of backups that dpkg removes with a conffile.
const BACKUPS: [&[u8]; 7] = [b"~", b".bak", b"%", b".dpkg-tmp", b".dpkg-new", b".dpkg-old", b".dpkg-dist"];

/// Lines of the list that are left, and paths that set off triggers.
type Removed = (Vec<Vec<u8>>, Vec<Vec<u8>>);

/// Removes all files but conffiles, and directories that are empty and of no other package. Lines of the list that are left come in
/// the order of their removal.
pub(super) fn remove_files(target: &mut Target, packages: &Database, old: &Old) -> Result<Removed, MergeError> {
    let (mut left, mut touched) = (Vec::new(), Vec::new());
    for line in old.list.iter().rev() {
        if is_conffile(old, line) {
            left.push(line.clone());
            continue;
        }
        let path = used(packages, old, line);
        touched.push(path.clone());
        for ending in TEMPORARY {
            remove(target, &[path.as_slice(), ending].concat())?;
        }
        if !remove_one(target, packages, old, line, &path)? {
            left.push(line.clone());
        }
    }
    Ok((left, touched))
}

/// Removes directories of the list that are empty by now, except for one in place of a conffile.
pub(super) fn remove_directories(
    target: &mut Target,
    packages: &Database,
    old: &Old,
    left: &[Vec<u8>],
) -> Result<(), MergeError> {
    for line in left.iter().filter(|line| !is_conffile(old, line)) {
        let path = used(packages, old, line);
        if leads_to_directory(&target.tree, &path) {
            remove_one(target, packages, old, line, &path)?;
        }
    }
    Ok(())
}

/// Removes conffiles and their backups; gives the paths that set off triggers.
pub(super) fn remove_conffiles(
    target: &mut Target,
    packages: &Database,
    old: &Old,
    left: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, MergeError> {
    let package = old.control.get("Package").unwrap_or_default();
    let is_own = |name: &&String| {
        let is_diverted = packages.overrides.diversion(package, name).is_some();
        left.iter().any(|line| line == name.as_bytes())
            && !is_diverted
            && packages.overrides.diverted_from(name).is_none()
            && !packages.owners.is_listed(&target.tree, name.as_bytes())
    };
    let names: Vec<String> = old.conffiles.keys().filter(is_own).cloned().collect();
    for name in &names {
        // A link stays, and what it leads to goes.
        let real = match target.tree.arrive(name.as_bytes(), true) {
            Ok(Arrival::Node { path, id }) if matches!(target.tree.inode(id).kind, Kind::File(_)) => path,
            Ok(Arrival::Missing { path, is_last: true, .. }) => path,
            _ => continue,
        };
        remove(target, &real)?;
        let at = real.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let (directory, base) = (&real[..at], &real[at + 1..]);
        for backup in backups(&target.tree, directory, base) {
            remove(target, &[directory, b"/", &backup].concat())?;
        }
    }
    Ok(names.into_iter().map(String::into_bytes).collect())
}

/// Removes the files below `info` that a package without its configuration does not have.
pub(super) fn remove_info(target: &mut Target, old: &Old) -> Result<(), MergeError> {
    let kept = ["list", "postrm"].map(|name| format!("{}.{name}", old.stem));
    for name in old.info(&target.tree).into_iter().filter(|name| !kept.iter().any(|kept| kept.as_bytes() == name)) {
        remove(target, &[INFO.as_bytes(), b"/", &name].concat())?;
    }
    Ok(())
}

/// Removes what a line of the list stands for; tells whether it is done with, rather than a directory that may become empty later.
fn remove_one(
    target: &mut Target,
    packages: &Database,
    old: &Old,
    line: &[u8],
    path: &[u8],
) -> Result<bool, MergeError> {
    let tree = &target.tree;
    let Some(id) = tree.find(path).ok().flatten() else { return Ok(true) };
    let kind = &tree.inode(id).kind;
    // Links at the top, such as `/lib`, are the way to everything.
    let is_way = components(line).count() <= 1 && matches!(kind, Kind::Symlink(_));
    if leads_to_directory(tree, path) && (is_way || packages.owners.is_listed(tree, line)) {
        return Ok(true);
    }
    match kind {
        Kind::Directory(_) if components(line).next().is_none() => return Ok(true),
        Kind::Directory(entries) if !entries.is_empty() => return Ok(false),
        Kind::Directory(_) => {}
        _ if is_shared(packages, tree, old, line, path) => return Ok(true),
        _ => {}
    }
    remove(target, path).map(|()| true)
}

/// Whether another package has the same file at the same place, as one for another architecture may.
fn is_shared(packages: &Database, tree: &Tree, old: &Old, line: &[u8], path: &[u8]) -> bool {
    let others = packages.owners.listing(tree, line);
    others.into_iter().filter(|stem| **stem != *old.stem).any(|stem| {
        let package = stem.split(':').next().unwrap_or_default();
        diverted(packages, package, line) == path
    })
}

/// Where a listed path of the package is.
fn used(packages: &Database, old: &Old, line: &[u8]) -> Vec<u8> {
    diverted(packages, old.control.get("Package").unwrap_or_default(), line)
}

fn diverted(packages: &Database, package: &str, line: &[u8]) -> Vec<u8> {
    let found = std::str::from_utf8(line).ok().and_then(|line| packages.overrides.diversion(package, line));
    found.map_or(line, |found| found.to.as_bytes()).to_vec()
}

fn leads_to_directory(tree: &Tree, path: &[u8]) -> bool {
    tree.resolve(path).is_ok_and(|id| matches!(tree.inode(id).kind, Kind::Directory(_)))
}

/// The names of backups of the file `base` of a directory.
fn backups(tree: &Tree, directory: &[u8], base: &[u8]) -> Vec<Vec<u8>> {
    let Some(Kind::Directory(entries)) = tree.lookup(directory).map(|id| &tree.inode(id).kind) else {
        return Vec::new();
    };
    let is_file = |id| !matches!(tree.inode(id).kind, Kind::Directory(_));
    let found = entries.iter().filter(|(name, id)| is_backup(name, base) && is_file(**id));
    found.map(|(name, _)| name.clone()).collect()
}

/// Whether a file is a backup of `base`: also `base.~1~` without the first dot, and `#base#` of an editor.
fn is_backup(name: &[u8], base: &[u8]) -> bool {
    if name.strip_prefix(b"#").and_then(|name| name.strip_suffix(b"#")) == Some(base) {
        return true;
    }
    let Some(ending) = name.strip_prefix(base) else { return false };
    let number = ending.strip_prefix(b"~").and_then(|rest| rest.strip_suffix(b"~"));
    BACKUPS.contains(&ending) || number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

fn remove(target: &mut Target, path: &[u8]) -> Result<(), MergeError> {
    if target.tree.find(path).ok().flatten().is_none() {
        return Ok(());
    }
    target.check_way(path)?;
    let removed = target.tree.remove(path);
    target.wrap(removed).map(|_| ())
}
