//! Which members of an archive are installed, and where.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Metadata, components};

use super::{ArchiveError, Member, MemberFault, MemberKind, refused};

/// The regular files named by `members` (all when empty), with `strip` leading components dropped, below `directory`. A
/// hard link is the file that it leads to.
pub fn select(
    mut entries: Vec<Member>,
    directory: &str,
    strip: usize,
    members: &[String],
) -> Result<Vec<Member>, ArchiveError> {
    follow_hard_links(&mut entries);
    for name in members {
        match entries.iter().find(|entry| entry.path == name.as_bytes()).map(|entry| &entry.kind) {
            Some(MemberKind::File { .. }) => {}
            Some(_) => return Err(refused(name.as_bytes(), MemberFault::NotRegular)),
            None => return Err(ArchiveError::NoMember { path: name.clone() }),
        }
    }
    let wanted = |entry: &Member| {
        matches!(entry.kind, MemberKind::File { .. })
            && (members.is_empty() || members.iter().any(|name| name.as_bytes() == entry.path))
    };
    let mut selected: Vec<Member> = entries.into_iter().filter(wanted).collect();
    for entry in &mut selected {
        let rest: Vec<&[u8]> = components(&entry.path).skip(strip).collect();
        if rest.is_empty() {
            return Err(refused(&entry.path, MemberFault::Stripped { strip }));
        }
        entry.path = [directory.trim_start_matches('/').as_bytes(), &rest.join(&b'/')].join(&b'/');
    }
    Ok(selected)
}

/// Turns hard links into files with the content and metadata of those that they lead to, which come earlier.
fn follow_hard_links(entries: &mut [Member]) {
    let mut files: BTreeMap<Vec<u8>, (Metadata, MemberKind)> = BTreeMap::new();
    for entry in entries {
        if let MemberKind::HardLink(to) = &entry.kind
            && let Some(found) = files.get(to)
        {
            (entry.meta, entry.kind) = found.clone();
        }
        if matches!(entry.kind, MemberKind::File { .. }) {
            files.insert(entry.path.clone(), (entry.meta.clone(), entry.kind.clone()));
        }
    }
}
