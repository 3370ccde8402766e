//! Compares the operating system and architecture of a base image with the expected ones.
//!
//! Takes a tree with `WANTS`; refuses a base with other values. Missing values are not compared.

use std::path::{Path, PathBuf};

use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::tree::{Kind, Tree, TreeError};

use crate::disk::InspectError;
use crate::inspect::{open_some, os_release};
use vmbake_common::hint::Hint;

const STATUS: &str = "/var/lib/dpkg/status";
/// Maximum size of dpkg's status file in bytes: those of images have 1 to 10 MB.
const MAX_STATUS: u64 = 64 << 20;

/// The files to read from a base.
const WANTS: [Want<'static>; 3] = [
    Want { path: b"/etc/os-release", depth: Depth::Node },
    Want { path: b"/usr/lib/os-release", depth: Depth::Node },
    Want { path: STATUS.as_bytes(), depth: Depth::Node },
];

/// The expected operating system and architecture.
#[derive(Clone, Copy, Debug)]
pub struct BaseIdentity<'a> {
    /// Name of the operating system, such as `debian-13`.
    pub os: &'a str,
    /// Codename of its release, if `sources.json` states it.
    pub codename: Option<&'a str>,
    /// Architecture as Debian names it.
    pub arch: &'a str,
}

/// Why a base is not the expected one.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error("{path}: cannot identify the operating system of the image")]
    Tree { path: PathBuf, source: TreeError },
    #[error("{path}: image of {found}, expected {expected}")]
    System { path: PathBuf, expected: String, found: String },
    #[error("{path}: image for {found}, expected {expected}")]
    Arch { path: PathBuf, expected: String, found: String },
    #[error("{path}: not a root file system of Debian: {missing}")]
    Incomplete { path: PathBuf, missing: &'static str },
}

impl Hint for IdentityError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::System { .. } => Some("use --os to set the operating system of the image".to_owned()),
            Self::Arch { .. } => Some("use --arch to set the architecture of the image".to_owned()),
            Self::Inspect(_) | Self::Tree { .. } | Self::Incomplete { .. } => None,
        }
    }

    vmbake_common::causes!(Inspect; Tree);
}

/// Checks the disk image at `path`; `root` is the number of its root partition, if it cannot be detected.
pub fn check_image(path: &Path, root: Option<u32>, wanted: BaseIdentity<'_>) -> Result<(), IdentityError> {
    check(path, &open_some(path, root, &WANTS)?, wanted)
}

/// Checks the root file system of the disk image at `path`.
pub fn check(path: &Path, tree: &Tree, wanted: BaseIdentity<'_>) -> Result<(), IdentityError> {
    let unreadable = |source| IdentityError::Tree { path: path.to_owned(), source };
    let release = os_release(tree).map_err(unreadable)?;
    let value = |key: &str| release.get(key).map(String::as_str).filter(|value| !value.is_empty());
    if !is_system(wanted, value("ID"), value("VERSION_ID"), value("VERSION_CODENAME")) {
        let parts = [value("ID"), value("VERSION_ID"), value("VERSION_CODENAME")];
        let found = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        return Err(IdentityError::System { path: path.to_owned(), expected: wanted.os.to_owned(), found });
    }
    let status = match tree.read(STATUS.as_bytes(), MAX_STATUS) {
        Ok(status) => status,
        Err(source @ (TreeError::Read { .. } | TreeError::TooLarge { .. })) => return Err(unreadable(source)),
        Err(_) => return Ok(()),
    };
    match architecture(&String::from_utf8_lossy(&status)) {
        Some(found) if found != wanted.arch => {
            let (path, expected) = (path.to_owned(), wanted.arch.to_owned());
            Err(IdentityError::Arch { path, expected, found: found.to_owned() })
        }
        _ => Ok(()),
    }
}

/// As [`check`], for a root file system without a disk: what identifies it must exist.
pub fn check_root(path: &Path, tree: &Tree, wanted: BaseIdentity<'_>) -> Result<(), IdentityError> {
    let incomplete = |missing| Err(IdentityError::Incomplete { path: path.to_owned(), missing });
    let is_file =
        |path: &str| tree.resolve(path.as_bytes()).is_ok_and(|id| matches!(tree.inode(id).kind, Kind::File(_)));
    if !is_file("/etc/os-release") && !is_file("/usr/lib/os-release") {
        return incomplete("/etc/os-release does not exist");
    }
    if !is_file(STATUS) {
        return incomplete("/var/lib/dpkg/status does not exist");
    }
    check(path, tree, wanted)?;
    let status = tree.read(STATUS.as_bytes(), MAX_STATUS);
    let status = status.map_err(|source| IdentityError::Tree { path: path.to_owned(), source })?;
    match architecture(&String::from_utf8_lossy(&status)) {
        Some(_) => Ok(()),
        None => incomplete("/var/lib/dpkg/status does not list dpkg"),
    }
}

/// Suites used as codenames in sources, which os-release does not contain.
const SUITES: [&str; 5] = ["sid", "unstable", "testing", "stable", "oldstable"];

/// Whether os-release(5) matches: the codename if both sides have one, otherwise ID and version.
fn is_system(wanted: BaseIdentity<'_>, id: Option<&str>, version: Option<&str>, codename: Option<&str>) -> bool {
    if let (Some(wanted), Some(found)) = (wanted.codename.filter(|name| !SUITES.contains(name)), codename) {
        return wanted == found;
    }
    let Some(id) = id.filter(|id| *id != wanted.os) else { return true };
    let stated = wanted.os.strip_prefix(id).and_then(|rest| rest.strip_prefix('-'));
    stated.is_some_and(|stated| version.is_none_or(|version| version == stated))
}

/// The architecture of the package `dpkg`, which is that of the system.
fn architecture(status: &str) -> Option<&str> {
    let mut stanzas = status.split("\n\n");
    let stanza = stanzas.find(|stanza| stanza.trim_start().lines().any(|line| line == "Package: dpkg"))?;
    stanza.lines().find_map(|line| line.strip_prefix("Architecture:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_must_be_of_the_system_that_is_wanted() {
        let trixie = BaseIdentity { os: "debian-13", codename: Some("trixie"), arch: "amd64" };
        let unnamed = BaseIdentity { codename: None, ..trixie };
        for (wanted, id, version, codename, expected) in [
            (trixie, "debian", "13", "trixie", true),
            (trixie, "debian", "12", "bookworm", false),
            (trixie, "ubuntu", "24.04", "noble", false),
            (trixie, "acme", "7", "trixie", true),
            (trixie, "fedora", "42", "", false),
            (trixie, "debian", "", "", true),
            (trixie, "", "", "", true),
            (BaseIdentity { codename: Some("stable"), ..trixie }, "debian", "13", "trixie", true),
            (BaseIdentity { codename: Some("stable"), ..trixie }, "debian", "12", "bookworm", false),
            (BaseIdentity { os: "debian-sid", codename: Some("sid"), ..trixie }, "debian", "", "forky", true),
            (unnamed, "debian", "12", "bookworm", false),
            (unnamed, "debian", "13", "trixie", true),
            (BaseIdentity { os: "arch", ..unnamed }, "arch", "", "", true),
        ] {
            let value = |text: &'static str| Some(text).filter(|text| !text.is_empty());
            let found = is_system(wanted, value(id), value(version), value(codename));
            assert_eq!(found, expected, "{wanted:?} {id} {version} {codename}");
        }
    }

    #[test]
    fn the_architecture_is_that_of_dpkg() {
        let status =
            "Package: libc6\nArchitecture: i386\n\nPackage: dpkg\nStatus: install ok installed\nArchitecture: arm64\n";
        assert_eq!(architecture(status), Some("arm64"));
        assert_eq!(architecture("Package: libc6\nArchitecture: i386\n"), None);
    }
}
