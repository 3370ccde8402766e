//! The programs of an image that Go's linker made, with what it noted in them. Of each file a few kilobytes are read.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Kind, Tree};

use super::SbomError;
use vmbake_common::escape;
use vmbake_image::elf::{BuildInfo, ElfError};

/// Smallest file that is looked at, in bytes: a program of Go has its runtime in it, of 1 MB.
const MIN_LEN: u64 = 512 << 10;

/// Most modules of all programs together: those of Kubernetes have some hundred each. A hostile one may list 100,000.
const MAX_MODULES: usize = 500_000;

/// A program of the image.
pub(super) struct GoFile {
    /// By [`escape::path`].
    pub(super) path: String,
    pub(super) info: BuildInfo,
}

/// The programs in the order of their paths, of which hard links have only the first, and what of them is damaged.
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
                    "{}: not listed, as all programs of Go together have more than {MAX_MODULES} modules",
                    escape::path(&path)
                )),
            },
            Ok(None) => {}
            Err(source @ ElfError::Read { .. }) => return Err(SbomError::Elf { path: escape::path(&path), source }),
            Err(error) => {
                notes.push(format!(
                    "{}: it is not known whether Go made it: {}",
                    escape::path(&path),
                    escape::chain(&error)
                ));
            }
        }
    }
    Ok((programs, notes))
}
