//! Selects the members of an archive to install, and their destinations.

use std::collections::BTreeMap;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_common::paths::is_at_or_below;
use vmbake_disk::tree::{Metadata, components};

use super::{ArchiveError, Member, MemberFault, MemberKind, refused};

/// The mode of directories that are missing in the tree.
const MISSING_MODE: u16 = 0o755;

/// The members that are named (all when `names` is empty), which belong to root, with `strip` leading components dropped, below `directory`. The name of a
/// directory includes everything below it. As with tar, a member whose name is stripped completely is dropped, but not if it is named or
/// the only one; the archive's own root stands for `directory` itself. A hard link to a file that is not selected becomes a regular file.
pub fn select(
    mut entries: Vec<Member>,
    directory: &str,
    strip: usize,
    names: &[String],
) -> Result<Vec<Member>, ArchiveError> {
    entries.iter_mut().for_each(|entry| (entry.meta.uid, entry.meta.gid) = (0, 0));
    let keeps_root = |entry: &Member| entry.meta.mode != MISSING_MODE;
    choose(entries, directory, strip, names, &keeps_root)
}

/// As [`select`], but as tar(1) extracts: the archive's own root always counts, and extended attributes are not restored. Where members have a
/// leading `./`, which is a component for tar, `strip` and `names` are refused.
pub fn extract(
    mut entries: Vec<Member>,
    directory: &str,
    strip: usize,
    names: &[String],
) -> Result<Vec<Member>, ArchiveError> {
    let mut odd = entries.iter().filter(|entry| !entry.is_plain && (strip > 0 || !names.is_empty()));
    if let Some(entry) = odd.next() {
        return Err(refused(
            &entry.path,
            MemberFault::Message(Message::new(
                "name begins with `./` or has empty components: `strip` and `members` would select other members than tar does",
            )),
        ));
    }
    entries.iter_mut().for_each(|entry| entry.meta.xattrs.clear());
    choose(entries, directory, strip, names, &|_| true)
}

fn choose(
    entries: Vec<Member>,
    directory: &str,
    strip: usize,
    names: &[String],
    keeps_root: &dyn Fn(&Member) -> bool,
) -> Result<Vec<Member>, ArchiveError> {
    if let Some(name) = names.iter().find(|name| !entries.iter().any(|entry| is_at_or_below(&entry.path, name))) {
        return Err(ArchiveError::Message(message!("has no member {name:?}")));
    }
    let mut files = Files::default();
    let (mut selected, mut dropped) = (Vec::new(), None);
    for mut entry in entries {
        let first = files.resolve(&mut entry);
        if !names.is_empty() && !names.iter().any(|name| is_at_or_below(&entry.path, name)) {
            continue;
        }
        let rest: Vec<&[u8]> = components(&entry.path).skip(strip).collect();
        if rest.is_empty() {
            if entry.kind != MemberKind::Directory {
                let is_named = names.iter().any(|name| entry.path == name.as_bytes());
                dropped.get_or_insert(entry.path);
                if is_named {
                    selected.clear();
                    break;
                }
                continue;
            }
            if entry.path.is_empty() && keeps_root(&entry) {
                entry.path = directory.trim_start_matches('/').as_bytes().to_vec();
                selected.push(entry);
            }
            continue;
        }
        entry.path = [directory.trim_start_matches('/').as_bytes(), &rest.join(&b'/')].join(&b'/');
        if let Some(first) = first {
            files.place(first, &mut entry);
        }
        selected.push(entry);
    }
    match dropped.filter(|_| selected.is_empty()) {
        Some(path) => {
            Err(refused(&path, MemberFault::Message(message!("has no components left after stripping {strip}"))))
        }
        None => Ok(directories_first(selected)),
    }
}

/// Fails if a selected member is at or below one of these absolute paths.
pub fn require_absent(members: &[Member], paths: &[String]) -> Result<(), ArchiveError> {
    let is_there = |path: &&String| {
        let names: Vec<&[u8]> = components(path.as_bytes()).collect();
        members.iter().any(|member| components(&member.path).take(names.len()).eq(names.iter().copied()))
    };
    match paths.iter().find(is_there) {
        Some(path) => Err(ArchiveError::Present { path: path.clone() }),
        None => Ok(()),
    }
}

/// Puts each directory once before what is in it, with what the last member of its name says, as tar leaves it.
fn directories_first(members: Vec<Member>) -> Vec<Member> {
    let (directories, others): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|member| member.kind == MemberKind::Directory);
    let last: BTreeMap<Vec<u8>, Member> =
        directories.into_iter().map(|directory| (directory.path.clone(), directory)).collect();
    last.into_values().chain(others).collect()
}

/// The regular files of an archive, so far.
#[derive(Default)]
struct Files {
    /// Path in the archive to number of the file.
    numbers: BTreeMap<Vec<u8>, usize>,
    /// The metadata and content of each, and its path in the image once it has one.
    all: Vec<(Metadata, MemberKind, Option<Vec<u8>>)>,
}

impl Files {
    /// Turns a hard link into a file with the content and metadata of its target, which comes earlier. Returns the number of the file, if it
    /// is one.
    fn resolve(&mut self, entry: &mut Member) -> Option<usize> {
        let number = match &entry.kind {
            MemberKind::File { .. } => {
                self.all.push((entry.meta.clone(), entry.kind.clone(), None));
                self.all.len() - 1
            }
            MemberKind::HardLink(to) => {
                let number = *self.numbers.get(to)?;
                let (meta, kind, _) = self.all.get(number)?;
                (entry.meta, entry.kind) = (meta.clone(), kind.clone());
                number
            }
            _ => return None,
        };
        self.numbers.insert(entry.path.clone(), number);
        Some(number)
    }

    /// Makes `entry` a hard link if its file already has a path in the image.
    fn place(&mut self, number: usize, entry: &mut Member) {
        let Some((.., path)) = self.all.get_mut(number) else { return };
        match path {
            Some(first) => entry.kind = MemberKind::HardLink(first.clone()),
            None => *path = Some(entry.path.clone()),
        }
    }
}
