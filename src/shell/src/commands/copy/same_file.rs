//! Whether source and destination of `cp`, `mv` and `install` are the same file, as coreutils decides it.

use super::super::targets::same_entry;
use super::Dereference;
use crate::files::{Follow, Node};
use crate::shell::Shell;

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Replaced {
    pub(in super::super) dereference: Dereference,
    pub(in super::super) moves: bool,
    pub(in super::super) hard: bool,
    pub(in super::super) symbolic: bool,
    pub(in super::super) backs_up: bool,
    /// The destination is unlinked before it is opened.
    pub(in super::super) removes: bool,
}

/// What a program does with its source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum SameFile {
    /// Goes on.
    No,
    /// Fails.
    Yes,
    /// Has nothing to do.
    Done,
    /// `mv` of one hard link to a symbolic link onto another: the source is removed.
    Unlink,
}

/// `node` and `old` are what the program found at both paths.
pub(in super::super) fn same_file(
    shell: &Shell<'_>,
    (source, node): (&[u8], &Node),
    (place, old): (&[u8], &Node),
    how: &Replaced,
) -> SameFile {
    let same = node.id == old.id;
    let ok = |fits: bool| if fits { SameFile::No } else { SameFile::Yes };
    if same && how.hard {
        return SameFile::Done;
    }
    let never = how.dereference == Dereference::Never;
    let (mut node_link, mut old_link) = (*node, *old);
    if never {
        if node.is_symlink() && old.is_symlink() {
            let entry = same_entry(shell, source, place);
            let unlinks = !entry && !how.backs_up && same && how.moves;
            return if unlinks { SameFile::Unlink } else { ok(!entry) };
        }
    } else {
        if !same {
            return SameFile::No;
        }
        let (Ok(one), Ok(other)) = (shell.stat(source, Follow::No), shell.stat(place, Follow::No)) else {
            return SameFile::No;
        };
        (node_link, old_link) = (one, other);
        if node_link.is_symlink() && old_link.is_symlink() && how.removes {
            return SameFile::No;
        }
    }
    let same_link = node_link.id == old_link.id;
    let entry = same_entry(shell, source, place);
    if how.backs_up {
        let dangles = !how.moves && !never && node_link.is_symlink() && !old_link.is_symlink();
        return ok(if same_link { !entry } else { !dangles });
    }
    if how.moves || how.removes {
        if old_link.is_symlink() {
            return SameFile::No;
        }
        // With one name, it is the same entry by way of a link to its directory.
        let has_names = shell.files.link_count(&shell.path(place)).is_ok_and(|count| count > 1);
        if same_link && !entry && has_names {
            return ok(!how.moves);
        }
    }
    if !node_link.is_symlink() && !old_link.is_symlink() {
        if !same_link {
            return SameFile::No;
        }
        if how.hard {
            return SameFile::Done;
        }
    }
    if how.symbolic && old_link.is_symlink() {
        return SameFile::No;
    }
    if never {
        let target = |path: &[u8], found: Node| shell.stat(path, Follow::Yes).unwrap_or(found).id;
        if target(source, node_link) != target(place, old_link) {
            return SameFile::No;
        }
        if how.hard {
            return if old_link.is_symlink() { SameFile::No } else { SameFile::Done };
        }
    }
    SameFile::Yes
}
