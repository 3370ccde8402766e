//! Go programs of an image, with their build information. A few kilobytes of each file are read.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Kind, Tree};

use super::SbomError;
use vmbake_common::escape;
use vmbake_image::elf::{BuildInfo, ElfError};

/// Minimum length of a file, in bytes; the runtime in a Go program has 1 MB.
const MIN_LEN: u64 = 512 << 10;

/// Maximum number of modules of all programs; those of Kubernetes have some hundred each. A malicious program can list 100,000.
const MAX_MODULES: usize = 500_000;

pub(super) struct GoFile {
    /// Escaped by [`escape::path`].
    pub(super) path: String,
    pub(super) info: BuildInfo,
}

/// The programs in path order, without further hard links, and notes about malformed ones.
pub(super) fn programs(tree: &Tree) -> Result<(Vec<GoFile>, Vec<String>), SbomError> {
    let (mut programs, mut notes, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut left = MAX_MODULES;
    for (path, id, inode) in tree.walk() {
        let Kind::File(map) = &inode.kind else { continue };
        if map.len() < MIN_LEN || !seen.insert(id) {
            continue;
        }
        match BuildInfo::read(map, tree.sources()) {
            Ok(Some(info)) => match left.checked_sub(info.dependencies.len() + 1) {
                Some(rest) => {
                    left = rest;
                    programs.push(GoFile { path: escape::path(&path), info });
                }
                None => notes.push(format!(
                    "{}: not listed, since all Go programs together have more than {MAX_MODULES} modules",
                    escape::path(&path)
                )),
            },
            Ok(None) => {}
            Err(source @ ElfError::Read { .. }) => return Err(SbomError::Elf { path: escape::path(&path), source }),
            Err(error) => {
                notes.push(format!(
                    "{}: unknown whether it is a Go program: {}",
                    escape::path(&path),
                    escape::chain(&error)
                ));
            }
        }
    }
    Ok((programs, notes))
}
