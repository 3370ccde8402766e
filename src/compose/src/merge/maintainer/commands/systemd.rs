//! Databases that programs of systemd compile from the files of packages: `systemd-hwdb update` and `journalctl --update-catalog`.
//!
//! The result is that of systemd 252 and 257, byte for byte. They are identified by the upstream version of the package: the programs only
//! call libsystemd-shared, so that their digests do not cover what they do, and each update and each architecture has other digests; what
//! the databases contain does not change within such a version, and is the same on all architectures. With any other version, the hardware
//! database is left to the machine, and so is the catalog, which systemd-journal-catalog-update.service compiles on the first boot.

mod catalog;
mod conf_files;
#[cfg(test)]
mod example;
mod hwdb;
mod lines;
mod strings;
mod trie;

use vmbake_shell::{Call, Errno, Files};

use super::programs::{self, is_present};
use super::{Done, System, status};
use crate::merge::database::Database;

/// Major versions that are known.
const VERSIONS: [u16; 2] = [252, 257];

/// Most bytes that are compiled into one database: Debian's hardware database is made of ten million.
const MAX_INPUT: usize = 32 << 20;

/// Longest line in bytes (`LONG_LINE_MAX`).
const MAX_LINE: usize = 1 << 20;

/// A file to compile: its path, and its content, unless it cannot be read.
type Source = (Vec<u8>, Option<Vec<u8>>);

/// The major version of the package with a program, if it is known.
fn version(database: &Database, package: &str) -> Option<u16> {
    let control = database.status.unpacked().find(|control| control.get("Package") == Some(package))?;
    let major = control.get("Version")?.split(['.', '-', '~']).next()?.parse().ok()?;
    VERSIONS.contains(&major).then_some(major)
}

/// Whether `journalctl --update-catalog` is known in the version of the image.
pub(in crate::merge) fn has_catalog(database: &Database) -> bool {
    version(database, "systemd").is_some()
}

/// Whether the environment changes what a program does.
fn is_set(call: &Call<'_>, name: &[u8]) -> bool {
    call.variables.exported().contains_key(name)
}

/// `systemd-hwdb update`, with `--usr` for the database of packages.
pub(super) fn hwdb(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let words: Vec<&[u8]> = call.args.iter().map(Vec::as_slice).collect();
    let is_of_packages = match words[..] {
        [b"update"] => false,
        [b"--usr", b"update"] | [b"update", b"--usr"] => true,
        _ => return programs::cache(system, call),
    };
    let Some(version) = version(system.database, "udev").filter(|_| is_present(call)) else {
        return programs::cache(system, call);
    };
    if is_set(call, b"SYSTEMD_HWDB_UPDATE_BYPASS") {
        return programs::cache(system, call);
    }
    match hwdb::update(call.files, version, is_of_packages) {
        Ok(()) => status(0),
        Err(_) => programs::cache(system, call),
    }
}

/// `journalctl --update-catalog`; anything else is about the log of a running system.
pub(super) fn journalctl(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let is_update = call.args.len() == 1 && call.args.iter().all(|word| word == b"--update-catalog");
    let is_other = [&b"SYSTEMD_CATALOG"[..], b"SYSTEMD_CATALOG_SOURCES"].iter().any(|name| is_set(call, name));
    if !is_update || is_other || !has_catalog(system.database) || !is_present(call) {
        return status(0);
    }
    match catalog::update(call.files) {
        Ok(()) => status(0),
        Err(fault) => {
            call.stderr.extend(format!("Failed to update catalog: {fault}\n").into_bytes());
            status(1)
        }
    }
}

/// Gives a path a new file, and creates the directories above it.
fn replace(files: &mut dyn Files, path: &[u8], content: Vec<u8>, mode: u16) -> Result<(), Errno> {
    for (at, _) in path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/') {
        files.ensure_dir(&path[..at], 0o755)?;
    }
    files.make_way(path)?;
    files.write(path, content, mode)
}

#[cfg(test)]
mod tests;
