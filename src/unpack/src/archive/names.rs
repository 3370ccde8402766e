//! The names of an archive so far: names that readers could interpret differently are refused.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hasher};

use super::{ArchiveError, ArchiveLimits, Member, MemberFault, MemberKind, refused, show};
use vmbake_common::message;

/// Most directories within each other.
const MAX_DEPTH: usize = 128;

/// Paths of the members so far, by what they are.
#[derive(Default)]
pub(super) struct Names {
    files: BTreeSet<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
    symlinks: BTreeSet<Vec<u8>>,
    /// Hashes of the paths of all directories above members, whether they are members themselves or not.
    above: HashSet<u64>,
}

impl Names {
    pub(super) fn check(&mut self, entry: &Member, limits: &ArchiveLimits) -> Result<(), ArchiveError> {
        let path = &entry.path;
        self.count(path, limits.members)?;
        let mut prefixes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        if let Some(link) = prefixes.find(|prefix| self.symlinks.contains(*prefix)) {
            return Err(refused(
                path,
                MemberFault::Message(message!("leads through the archive's symbolic link {:?}", show(link))),
            ));
        }
        if self.files.contains(path) || self.symlinks.contains(path) {
            return Err(refused(path, MemberFault::Twice));
        }
        match &entry.kind {
            MemberKind::Directory => {
                self.directories.insert(path.clone());
                return Ok(());
            }
            MemberKind::HardLink(target) if !limits.root && !self.files.contains(target) => {
                return Err(refused(
                    path,
                    MemberFault::Message(message!(
                        "is a hard link to {:?}, which is not an earlier file of the archive",
                        show(target)
                    )),
                ));
            }
            _ if self.directories.contains(path) => return Err(refused(path, MemberFault::Twice)),
            MemberKind::Symlink(_) => self.symlinks.insert(path.clone()),
            _ => self.files.insert(path.clone()),
        };
        Ok(())
    }

    /// Counts the directories above `path`: each is a node of the tree, also where the archive does not list it.
    fn count(&mut self, path: &[u8], limit: usize) -> Result<(), ArchiveError> {
        let (mut hasher, mut depth) = (DefaultHasher::new(), 0);
        for byte in path {
            if *byte == b'/' {
                self.above.insert(hasher.finish());
                depth += 1;
            }
            hasher.write_u8(*byte);
        }
        if depth > MAX_DEPTH {
            return Err(refused(path, MemberFault::Message(message!("is more than {} directories deep", MAX_DEPTH))));
        }
        if self.above.len() > limit { Err(ArchiveError::TooMany { limit }) } else { Ok(()) }
    }
}
