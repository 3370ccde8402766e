//! Copies a file, a link, or a directory with everything below it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::attributes::{Through, below, mark_entries};
use super::super::targets::{Created, Entry, entry, occupant, same_entry};
use super::super::{cannot, complain_exactly, join, quoted};
use super::{Copying, Dereference, Replaced, SameFile, same_file};
use crate::error::ErrorKind;
use crate::eval::Run;
use crate::files::{Aspect, Errno, Follow, Node, NodeKind};
use crate::shell::Shell;

/// Deepest directories that are copied.
const MAX_DEPTH: usize = 100;

/// One run of `cp`.
pub(super) struct Copier<'c, 'h> {
    pub(super) shell: &'c mut Shell<'h>,
    how: Copying,
    /// Whether there are several sources, which must not replace each other.
    many: bool,
    /// Sources by directory and name, so that `f` and `./f` are one.
    seen: BTreeSet<(Entry, u64)>,
    created: Created,
    /// Where a node was copied to.
    copied: BTreeMap<u64, Vec<u8>>,
    /// The directories that the current source is in.
    ancestors: Vec<u64>,
}

impl<'c, 'h> Copier<'c, 'h> {
    pub(super) fn new(shell: &'c mut Shell<'h>, how: Copying, many: bool) -> Self {
        Self {
            shell,
            how,
            many,
            seen: BTreeSet::new(),
            created: Created::default(),
            copied: BTreeMap::new(),
            ancestors: Vec::new(),
        }
    }

    /// Copies an operand.
    pub(super) fn copy(&mut self, source: &[u8], place: &[u8]) -> Run<u8> {
        let status = self.one(source, place, true)?;
        if self.many {
            self.created.add(self.shell, place);
        }
        Ok(status)
    }

    fn one(&mut self, source: &[u8], place: &[u8], top: bool) -> Run<u8> {
        self.shell.step()?;
        let node = match self.shell.stat(source, self.how.follow(top)) {
            Ok(node) => node,
            Err(error) => return cannot(self.shell, "cp", "stat", source, error),
        };
        if node.is_dir() && !self.how.recursive {
            let message = [b"-r not specified; omitting directory '", source, b"'"].concat();
            return complain_exactly(self.shell, "cp", &message);
        }
        if top && self.many && (node.is_dir() || !self.how.backups.are_made()) {
            let is_new = entry(self.shell, source).is_none_or(|entry| self.seen.insert((entry, node.id)));
            if !is_new && !node.is_dir() {
                let message = [b"warning: source file '", source, b"' specified more than once"].concat();
                return complain_exactly(self.shell, "cp", &message).map(|_| 0);
            }
        }
        let to = self.shell.path(place);
        self.shell.note(&to, b"");
        let mut old = match self.old(place, &node) {
            Ok(old) => Some(old),
            Err(Errno::Enoent) => None,
            Err(Errno::Eloop) if self.how.force => None,
            Err(error) => return cannot(self.shell, "cp", "stat", place, error),
        };
        let mut backup = None;
        if let Some(found) = old {
            match self.replace(source, &node, place, &found, top)? {
                Step::Over(status) => return Ok(status),
                Step::Keep => {}
                Step::Gone(name) => (old, backup) = (None, name),
            }
        }
        if top && self.many && !self.how.backups.are_made() && self.through_created(place) {
            let message = [b"will not copy '", source, b"' through just-created symlink '", place, b"'"].concat();
            return complain_exactly(self.shell, "cp", &message);
        }
        if node.is_dir() {
            return self.directory(source, place, &node, old, top);
        }
        self.report_copy(source, place, backup.as_deref())?;
        if let Some(status) = self.earlier(place, &node)? {
            return Ok(status);
        }
        self.file(source, place, &node, old, top)
    }

    fn old(&self, place: &[u8], node: &Node) -> Result<Node, Errno> {
        let how = &self.how;
        let name = !node.is_file() || how.symbolic || how.hard || how.backups.are_made() || how.remove;
        let depends = how.no_clobber || how.update || node.is_dir() || how.hard || how.symbolic;
        match (depends, name) {
            (true, true) => self.shell.stat(place, Follow::No),
            (true, false) => self.shell.stat(place, Follow::Yes),
            (false, true) => occupant(self.shell, place),
            (false, false) => self.shell.destination(place),
        }
    }

    fn through_created(&self, place: &[u8]) -> bool {
        occupant(self.shell, place).is_ok_and(|node| node.is_symlink() && self.created.has(place, &node))
    }

    /// What happens with what is at the destination.
    fn replace(&mut self, source: &[u8], node: &Node, place: &[u8], old: &Node, top: bool) -> Run<Step> {
        let how = &self.how;
        let backs_up = how.backups.are_made();
        let replaced = Replaced {
            dereference: how.dereference,
            moves: false,
            hard: how.hard,
            symbolic: how.symbolic,
            backs_up,
            removes: how.remove,
        };
        let same = same_file(self.shell, (source, node), (place, old), &replaced);
        let fail =
            |shell: &mut Shell<'_>, parts: &[&[u8]]| complain_exactly(shell, "cp", &parts.concat()).map(Step::Over);
        if same == SameFile::Yes && backs_up && (how.force || how.remove) {
            return self.shell.unsupported(b"a forced backup of a file onto itself");
        }
        if same == SameFile::Yes && !self.how.no_clobber {
            return fail(self.shell, &[b"'", source, b"' and '", place, b"' are the same file"]);
        }
        if how.update && !how.no_clobber && !node.is_dir() {
            self.shell.inspect(source, Follow::Yes, Aspect::Time);
            self.shell.inspect(place, Follow::Yes, Aspect::Time);
        }
        let same_time = how.update && !how.no_clobber && old.mtime == node.mtime && node.id != old.id;
        if same_time && !node.is_dir() && !self.has_content_of(source, place) {
            return Err(self.shell.fatal(ErrorKind::Clock { what: "which of two new files is newer".to_owned() }));
        }
        // cp -n of Debian 13 succeeds, unlike coreutils 9.2 to 9.4.
        if !node.is_dir() && (how.no_clobber || (how.update && old.mtime >= node.mtime)) || same == SameFile::Done {
            return Ok(Step::Over(0));
        }
        if node.is_dir() && !old.is_dir() {
            return fail(
                self.shell,
                &[b"cannot overwrite non-directory '", place, b"' with directory '", source, b"'"],
            );
        }
        if !node.is_dir() && old.is_dir() {
            return fail(
                self.shell,
                &[b"cannot overwrite directory '", place, b"' with non-directory '", source, b"'"],
            );
        }
        let numbered = how.backups.control == super::super::backups::Control::Numbered;
        if top && !old.is_dir() && !numbered && self.created.has(place, old) {
            return fail(self.shell, &[b"will not overwrite just-created '", place, b"' with '", source, b"'"]);
        }
        if old.is_dir() {
            return Ok(Step::Keep);
        }
        if backs_up && !matches!(super::super::paths::last_name(source), b"." | b"..") {
            if how.backups.destroys(self.shell, place, source, node.id) {
                return fail(
                    self.shell,
                    &[b"backing up '", place, b"' might destroy source;  '", source, b"' not copied"],
                );
            }
            return match self.how.backups.make(self.shell, place)? {
                Ok(name) => Ok(Step::Gone(Some(name))),
                Err(error) => cannot(self.shell, "cp", "backup", place, error).map(Step::Over),
            };
        }
        self.make_way(node, place)
    }

    /// Whether a copy of the content would change nothing.
    fn has_content_of(&self, source: &[u8], place: &[u8]) -> bool {
        let shell = &self.shell;
        let content = |path: &[u8]| shell.files.read(&shell.path(path), shell.budget.limits.file_bytes).ok();
        content(source).is_some_and(|text| Some(text) == content(place))
    }

    /// Removes the old file where a new one must take its place.
    fn make_way(&mut self, node: &Node, place: &[u8]) -> Run<Step> {
        let to = self.shell.path(place);
        let shared = || self.shell.files.link_count(&to).is_ok_and(|count| count > 1);
        let replaced = self.how.dereference == Dereference::Never && !node.is_file();
        if !(self.how.remove || replaced || (self.how.links && shared())) {
            return Ok(Step::Keep);
        }
        if let Err(error) = self.shell.files.make_way(&to) {
            return cannot(self.shell, "cp", "remove", place, error).map(Step::Over);
        }
        if self.how.verbose {
            let name = quoted(self.shell, place)?;
            self.shell.out(&[b"removed ", &name[..], b"\n"].concat())?;
        }
        Ok(Step::Gone(None))
    }

    fn report_copy(&mut self, source: &[u8], place: &[u8], backup: Option<&[u8]>) -> Run<()> {
        if !self.how.verbose {
            return Ok(());
        }
        let mut line = [&quoted(self.shell, source)?[..], b" -> ", &quoted(self.shell, place)?].concat();
        if let Some(backup) = backup {
            line.extend([b" (backup: ", &quoted(self.shell, backup)?[..], b")"].concat());
        }
        self.shell.out(&[&line[..], b"\n"].concat())
    }

    /// A hard link to where the same node was copied to before, if links are kept.
    fn earlier(&mut self, place: &[u8], node: &Node) -> Run<Option<u8>> {
        if !self.how.links || self.how.hard {
            return Ok(None);
        }
        let Some(earlier) = self.copied.get(&node.id).cloned() else {
            self.copied.insert(node.id, place.to_vec());
            return Ok(None);
        };
        let (from, to) = (self.shell.path(&earlier), self.shell.path(place));
        let made = self.shell.files.make_way(&to).and_then(|()| self.shell.files.hard_link(&from, &to));
        match made {
            Ok(()) => Ok(Some(0)),
            Err(error) => cannot(self.shell, "cp", "create hard link", place, error).map(Some),
        }
    }

    fn file(&mut self, source: &[u8], place: &[u8], node: &Node, old: Option<Node>, top: bool) -> Run<u8> {
        let (from, to) = (self.shell.path(source), self.shell.path(place));
        if self.how.symbolic {
            return self.symbolic(source, place, &to);
        }
        if self.how.hard {
            let from = match self.how.follow(top) {
                Follow::Yes => super::super::real_path(self.shell, &from).unwrap_or(from),
                Follow::No => from,
            };
            let way = if self.how.force { self.shell.files.make_way(&to) } else { Ok(()) };
            return match way.and_then(|()| self.shell.files.hard_link(&from, &to)) {
                Ok(()) => Ok(0),
                Err(error) => cannot(self.shell, "cp", "create hard link", place, error),
            };
        }
        let done = match node.kind {
            NodeKind::File if old.is_none() && self.shell.files.dangles(&to) => {
                let message = [b"not writing through dangling symlink '", place, b"'"].concat();
                return complain_exactly(self.shell, "cp", &message);
            }
            NodeKind::File => {
                self.shell.spend(256)?;
                self.shell.note_read(node.id)?;
                if (old.is_none() && !self.how.plain_mode) || self.how.mode {
                    self.shell.inspect(source, Follow::Yes, Aspect::Mode);
                }
                let mode = if self.how.plain_mode { 0o666 } else { node.mode & 0o777 };
                let limit = self.shell.budget.limits.file_bytes;
                let way = match old {
                    None if self.how.force => self.shell.files.make_way(&to),
                    _ => Ok(()),
                };
                way.and_then(|()| self.shell.files.copy(&from, &to, mode & !self.shell.state.umask, limit))
            }
            NodeKind::Symlink => {
                let way = if self.how.force { self.shell.files.make_way(&to) } else { Ok(()) };
                let target = way.and_then(|()| self.shell.files.read_link(&from));
                target.and_then(|target| self.shell.files.symlink(&target, &to))
            }
            _ if from == b"/dev/null" && !self.how.recursive => self.shell.write_path(place, Vec::new())?,
            _ => return self.shell.unsupported(&[b"copying the device ", source].concat()),
        };
        let kept = done.and_then(|()| self.keep(&to, node)).and_then(|()| match node.kind {
            // After the owner, since a change of the owner removes capabilities.
            NodeKind::File if self.how.attributes => self.shell.files.copy_attributes(&from, &to),
            _ => Ok(()),
        });
        match kept {
            Ok(()) => Ok(0),
            Err(Errno::Eisdir) if place.is_empty() => {
                cannot(self.shell, "cp", "create regular file", place, Errno::Enoent)
            }
            Err(Errno::Eisdir) if place.ends_with(b"/") => {
                cannot(self.shell, "cp", "create regular file", place, Errno::Enotdir)
            }
            Err(error) => cannot(self.shell, "cp", "create regular file", place, error),
        }
    }

    fn symbolic(&mut self, source: &[u8], place: &[u8], to: &[u8]) -> Run<u8> {
        let here = self.shell.state.cwd.to_vec();
        let parent = place.iter().rposition(|byte| *byte == b'/').map_or(&b"."[..], |at| &place[..=at]);
        let parent = super::super::real_path(self.shell, parent);
        if !source.starts_with(b"/") && parent != super::super::real_path(self.shell, &here) {
            let message = [place, b": can make relative symbolic links only in current directory"].concat();
            return complain_exactly(self.shell, "cp", &message);
        }
        let way = if self.how.force { self.shell.files.make_way(to) } else { Ok(()) };
        match way.and_then(|()| self.shell.files.symlink(source, to)) {
            Ok(()) => Ok(0),
            Err(error) => cannot(self.shell, "cp", "create symbolic link", place, error),
        }
    }

    /// Gives a copy what it keeps of its source.
    fn keep(&mut self, to: &[u8], node: &Node) -> Result<(), Errno> {
        let files = &mut self.shell.files;
        let old = files.lookup(to, Follow::No)?;
        let mut bits = old.mode & 0o7000;
        if self.how.owner && (old.uid, old.gid) != (node.uid, node.gid) {
            files.set_owner(to, node.uid, node.gid, Follow::No)?;
            if old.is_file() && bits & 0o6000 != 0 {
                // The permissions of the group are taken away before that, without which Linux keeps the set-group-ID bit.
                bits &= if self.how.mode || old.mode & 0o010 == 0 { 0o3000 } else { 0o1000 };
                files.set_mode(to, old.mode & 0o777 | bits)?;
            }
        }
        if self.how.mode && !node.is_symlink() {
            // Permissions are kept as an access control list, which has no other bits: they are set only if the source has some.
            files.set_mode(to, if node.mode & 0o7000 == 0 { node.mode | bits } else { node.mode })?;
        }
        if self.how.time {
            files.set_mtime(to, Some(node.mtime))?;
        }
        Ok(())
    }

    fn directory(&mut self, source: &[u8], place: &[u8], node: &Node, old: Option<Node>, top: bool) -> Run<u8> {
        let earlier = match top {
            true if self.copied.contains_key(&node.id) => self.copied.get(&node.id).cloned(),
            true => self.copied.insert(node.id, place.to_vec()).and(None),
            false => self.copied.get(&node.id).cloned(),
        };
        if let Some(earlier) = earlier {
            if same_entry(self.shell, source, &earlier) {
                if !top {
                    // GNU cp stops here, wherever the real file system lists it.
                    return self.shell.unsupported(b"a copy of a directory into itself");
                }
                let message = [b"cannot copy a directory, '", source, b"', into itself, '", place, b"'"].concat();
                return complain_exactly(self.shell, "cp", &message);
            }
            if same_entry(self.shell, place, &earlier) {
                let message = [b"warning: source directory '", source, b"' specified more than once"].concat();
                return complain_exactly(self.shell, "cp", &message).map(|_| 0);
            }
            if self.how.follow(top) == Follow::No {
                let message = [b"will not create hard link '", place, b"' to directory '", &earlier, b"'"].concat();
                return complain_exactly(self.shell, "cp", &message);
            }
        }
        if self.ancestors.contains(&node.id) {
            let message = [b"cannot copy cyclic symbolic link '", source, b"'"].concat();
            return complain_exactly(self.shell, "cp", &message);
        }
        if self.ancestors.len() >= MAX_DEPTH {
            return self.shell.unsupported(b"so deep a tree");
        }
        let (from, to) = (self.shell.path(source), self.shell.path(place));
        if old.is_none() {
            let mode = if self.how.plain_mode { 0o777 } else { node.mode };
            if let Err(error) = self.shell.files.create_dir(&to, mode & !self.shell.state.umask) {
                return cannot(self.shell, "cp", "create directory", place, error);
            }
            if top && let Ok(made) = self.shell.stat(place, Follow::No) {
                self.copied.insert(made.id, place.to_vec());
            }
            self.report_copy(source, place, None)?;
        }
        if self.how.verbose && top {
            let paths = below(self.shell, source, Through::Nothing)?;
            mark_entries(self.shell, &paths)?;
        }
        let names = match self.shell.files.list(&from) {
            Ok(names) => names,
            Err(error) => return cannot(self.shell, "cp", "access", source, error),
        };
        self.ancestors.push(node.id);
        let mut status = 0;
        for name in names {
            status |= self.one(&join(source, &name), &join(place, &name), false)?;
        }
        self.ancestors.pop();
        let _ = self.keep(&to, node);
        Ok(status)
    }

    /// Makes the directories of `--parents`, with the modes of those of the source.
    pub(super) fn make_parents(&mut self, target: &[u8], source: &[u8]) -> Run<Result<(), (Vec<u8>, Errno)>> {
        let source = super::super::paths::bare(source);
        let ends: Vec<usize> = (1..source.len()).filter(|at| source[*at] == b'/' && source[at - 1] != b'/').collect();
        for end in ends {
            let above = &source[..end];
            let place = join(target, above);
            let node = match self.shell.stat(above, Follow::Yes) {
                Ok(node) if node.is_dir() => node,
                Ok(_) => return Ok(Err((above.to_vec(), Errno::Enotdir))),
                Err(error) => return Ok(Err((above.to_vec(), error))),
            };
            match self.shell.stat(&place, Follow::Yes) {
                Ok(found) if found.is_dir() => continue,
                Ok(_) => return Ok(Err((place, Errno::Enotdir))),
                Err(_) => {}
            }
            let to = self.shell.path(&place);
            let mode = if self.how.plain_mode { 0o777 } else { node.mode };
            if let Err(error) = self.shell.files.create_dir(&to, mode & !self.shell.state.umask) {
                return Ok(Err((place, error)));
            }
            if self.how.verbose {
                self.shell.out(&[above, b" -> ", &place, b"\n"].concat())?;
            }
            let _ = self.keep(&to, &node);
        }
        Ok(Ok(()))
    }
}

/// How a copy goes on.
enum Step {
    /// It does not.
    Over(u8),
    /// With the old file.
    Keep,
    /// Without it; perhaps it has a backup.
    Gone(Option<Vec<u8>>),
}
