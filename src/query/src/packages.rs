//! Reads dpkg's database in an image: installed packages and owners of paths.

use std::collections::BTreeMap;

use serde::Serialize;
use vmbake_common::hint::Hint;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::tree::{Kind, ROOT, Tree, TreeError};

use vmbake_compose::stage::{Control, DebError};

pub(super) const STATUS: &str = "/var/lib/dpkg/status";
const INFO: &str = "/var/lib/dpkg/info";

/// Maximum length of a database file, in bytes; `status` has 1 to 10 MB.
const MAX_TEXT: u64 = 64 << 20;

/// Error while reading the database.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("cannot read the package database")]
    Read(#[source] TreeError),
    #[error("{STATUS}: stanza {number} is malformed")]
    Stanza {
        /// Number of the stanza, from 1.
        number: usize,
        source: DebError,
    },
}

impl Hint for PackageError {
    vmbake_common::causes!(Read; Stanza);
}

/// Inputs of [`owners`]: the database, and links of the root directory with their targets.
pub(super) const WANTS: [Want<'static>; 3] = [
    Want { path: STATUS.as_bytes(), depth: Depth::Node },
    Want { path: INFO.as_bytes(), depth: Depth::Entries },
    Want { path: b"/", depth: Depth::Targets },
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstalledPackage {
    pub name: String,
    /// Architecture, or `all`.
    pub arch: String,
    /// Version; unknown if the database has its file list but not the package.
    pub version: Option<String>,
}

/// Versions of installed packages, by name and architecture; empty without a database.
pub(crate) fn installed(tree: &Tree) -> Result<BTreeMap<(String, String), String>, PackageError> {
    let mut found = BTreeMap::new();
    let Some(text) = text(tree, STATUS)? else { return Ok(found) };
    for (number, stanza) in text.split("\n\n").filter(|stanza| !stanza.trim().is_empty()).enumerate() {
        let damaged = |fault| PackageError::Stanza { number: number + 1, source: DebError::Control(fault) };
        let control = Control::parse(stanza).map_err(damaged)?;
        let field = |name| control.get(name).unwrap_or_default().to_owned();
        if field("Status").ends_with(" installed") {
            found.insert((field("Package"), field("Architecture")), field("Version"));
        }
    }
    Ok(found)
}

/// The sorted packages that list `path`, which must not contain symbolic links.
pub(super) fn owners(tree: &Tree, path: &[u8]) -> Result<Vec<InstalledPackage>, PackageError> {
    let Some(info) = tree.find(INFO.as_bytes()).map_err(PackageError::Read)? else { return Ok(Vec::new()) };
    let Kind::Directory(entries) = &tree.inode(info).kind else { return Ok(Vec::new()) };
    let versions = installed(tree)?;
    let names = aliases(tree, path);
    let mut owners = Vec::new();
    for stem in entries.keys().filter_map(|name| std::str::from_utf8(name.strip_suffix(b".list")?).ok()) {
        let Some(list) = text(tree, &format!("{INFO}/{stem}.list"))? else { continue };
        if list.lines().any(|line| names.iter().any(|name| name == line)) {
            owners.push(package(&versions, stem));
        }
    }
    Ok(owners)
}

/// The first package of each path, without directories; symbolic links of the root directory are resolved.
pub fn owned_files(tree: &Tree) -> Result<BTreeMap<Vec<u8>, String>, PackageError> {
    let mut found = BTreeMap::new();
    let Some(info) = tree.find(INFO.as_bytes()).map_err(PackageError::Read)? else { return Ok(found) };
    let Kind::Directory(entries) = &tree.inode(info).kind else { return Ok(found) };
    let links = root_links(tree);
    for stem in entries.keys().filter_map(|name| std::str::from_utf8(name.strip_suffix(b".list")?).ok()) {
        let Some(list) = text(tree, &format!("{INFO}/{stem}.list"))? else { continue };
        for line in list.lines().map(str::as_bytes) {
            let behind = links.iter().find_map(|(link, real)| {
                let rest = line.strip_prefix(link.as_slice()).filter(|rest| rest.starts_with(b"/"))?;
                Some([real, rest].concat())
            });
            let path = behind.unwrap_or_else(|| line.to_vec());
            let is_directory = |id| matches!(tree.inode(id).kind, Kind::Directory(_));
            if tree.lookup(&path).is_some_and(|id| !is_directory(id)) {
                found.entry(path).or_insert_with(|| stem.split(':').next().unwrap_or(stem).to_owned());
            }
        }
    }
    Ok(found)
}

/// The package of a file stem below `info`: its name, with the architecture for multi-arch packages.
fn package(versions: &BTreeMap<(String, String), String>, stem: &str) -> InstalledPackage {
    let (name, arch) = stem.split_once(':').map_or((stem, None), |(name, arch)| (name, Some(arch)));
    let known = versions.iter().find(|((found, of), _)| found == name && arch.is_none_or(|arch| arch == of));
    match known {
        Some(((name, arch), version)) => {
            InstalledPackage { name: name.clone(), arch: arch.clone(), version: Some(version.clone()) }
        }
        None => InstalledPackage { name: name.to_owned(), arch: arch.unwrap_or_default().to_owned(), version: None },
    }
}

/// All spellings by which a package can list a path: as is, and through a link of the root such as `/lib`, from packages
/// that predate the merged `/usr`. The root itself is listed as `/.`.
fn aliases(tree: &Tree, path: &[u8]) -> Vec<String> {
    let mut names = vec![if path.is_empty() { b"/.".to_vec() } else { path.to_vec() }];
    for (link, real) in root_links(tree) {
        if let Some(rest) = path.strip_prefix(real.as_slice()).filter(|rest| rest.starts_with(b"/")) {
            names.push([&link, rest].concat());
        }
    }
    // Paths that are not UTF-8 are not found: dpkg's lists are read as text.
    names.into_iter().filter_map(|name| String::from_utf8(name).ok()).collect()
}

/// The symbolic links of the root directory with their targets.
fn root_links(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Kind::Directory(entries) = &tree.inode(ROOT).kind else { return Vec::new() };
    let links = entries.iter().filter(|(_, id)| matches!(tree.inode(**id).kind, Kind::Symlink(_)));
    let link = |(name, _): (&Vec<u8>, _)| {
        let link = [b"/", name.as_slice()].concat();
        let (real, _) = tree.real_path(&link, true).ok().flatten()?;
        Some((link, real))
    };
    links.filter_map(link).collect()
}

/// The text of a file, with invalid UTF-8 replaced; `None` if it is missing.
pub(super) fn text(tree: &Tree, path: &str) -> Result<Option<String>, PackageError> {
    match tree.read(path.as_bytes(), MAX_TEXT) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(TreeError::NotFound { .. }) => Ok(None),
        Err(error) => Err(PackageError::Read(error)),
    }
}
