//! `mv`.

use super::backups::{Backups, Control, backups};
use super::copy::{Dereference, Replaced, SameFile, same_file};
use super::options::{Accepted, Options, parse};
use super::targets::{Created, occupant, targets};
use super::{cannot, complain, complain_exactly, quoted};
use crate::eval::Run;
use crate::files::{Aspect, Errno, Follow, Node};
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"bfnS:t:TuvZ",
    long: &[
        ("backup?", b'B'),
        ("force", b'f'),
        ("no-clobber", b'n'),
        ("no-target-directory", b'T'),
        ("strip-trailing-slashes", b'W'),
        ("suffix=", b'S'),
        ("target-directory=", b't'),
        ("update?", b'U'),
        ("verbose", b'v'),
    ],
    strict: false,
};

/// What a move does with an existing file.
struct Moving {
    no_clobber: bool,
    update: bool,
    verbose: bool,
    backups: Backups,
}

fn moving(shell: &Shell<'_>, options: &Options, backups: Backups) -> Run<Moving> {
    // The last of -f and -n counts.
    let last = options.iter().rev().find(|(letter, _)| matches!(letter, b'f' | b'n'));
    let mut moving = Moving {
        no_clobber: last.is_some_and(|(letter, _)| letter == b'n'),
        update: options.has(b'u'),
        verbose: options.has(b'v'),
        backups,
    };
    match options.value(b'U') {
        None => {}
        Some(b"" | b"older") => moving.update = true,
        Some(b"none") => moving.no_clobber = true,
        Some(b"all") => moving.update = false,
        Some(other) => return shell.unsupported(&[b"--update=", other].concat()),
    }
    Ok(moving)
}

pub(super) fn mv(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut options = parse(shell, args, &OPTIONS)?;
    let Some(backups) = backups(shell, "mv", &options)? else { return Ok(1) };
    let moving = moving(shell, &options, backups)?;
    if moving.no_clobber && moving.backups.are_made() {
        return complain(shell, "mv", b"options --backup and --no-clobber are mutually exclusive");
    }
    if options.has(b'W') {
        let sources = options.operands.len().saturating_sub(usize::from(!options.has(b't')));
        let sources = options.operands.iter_mut().take(sources);
        sources.for_each(|operand| operand.truncate(super::paths::bare(operand).len()));
    }
    let is_dir = |shell: &Shell<'_>, path: &[u8]| shell.destination(path).is_ok_and(|node| node.is_dir());
    let Some(targets) = targets(shell, "mv", &options, is_dir)? else { return Ok(1) };
    let mut created = Created::default();
    let mut status = 0;
    for source in &targets.sources {
        let place = targets.place(source);
        status |= moving.one(shell, source, &place, &created)?;
        if targets.sources.len() > 1 {
            created.add(shell, &place);
        }
    }
    Ok(status)
}

/// Whether both names are there, whatever slashes follow them: the kernel finds this first where it must not replace anything.
fn are_entries(shell: &Shell<'_>, source: &[u8], place: &[u8]) -> bool {
    let is_entry = |path: &[u8]| {
        !matches!(super::paths::last_name(path), b"." | b".." | b"/")
            && shell.stat(super::paths::bare(path), Follow::No).is_ok()
    };
    is_entry(source) && is_entry(place)
}

impl Moving {
    fn one(&self, shell: &mut Shell<'_>, source: &[u8], place: &[u8], created: &Created) -> Run<u8> {
        if self.no_clobber && are_entries(shell, source, place) {
            return Ok(0);
        }
        let node = match shell.stat(source, Follow::No) {
            Ok(node) => node,
            Err(error) => return cannot(shell, "mv", "stat", source, error),
        };
        let depends = self.no_clobber || self.update || node.is_dir();
        let old = if depends { shell.stat(place, Follow::No) } else { occupant(shell, place) };
        let mut backup = None;
        match old {
            Ok(old) => match self.replace(shell, (source, &node), (place, &old), created)? {
                Ok(name) => backup = name,
                Err(status) => return Ok(status),
            },
            Err(Errno::Enoent) => {}
            Err(error) => return cannot(shell, "mv", "stat", place, error),
        }
        let (from, to) = (shell.path(source), shell.path(place));
        shell.note(&to, b"");
        match shell.rename(&from, &to)? {
            Ok(()) if self.verbose => {
                let (source, place) = (quoted(shell, source)?, quoted(shell, place)?);
                let mut line = [b"renamed ", &source[..], b" -> ", &place].concat();
                if let Some(backup) = backup {
                    line.extend([b" (backup: ", &quoted(shell, &backup)?[..], b")"].concat());
                }
                shell.out(&[&line[..], b"\n"].concat())?;
                Ok(0)
            }
            Ok(()) => Ok(0),
            Err(error) => {
                let error = if place.is_empty() { Errno::Enoent } else { error };
                // coreutils leaves the backup of what a directory cannot be moved into.
                if let Some(backup) = backup.filter(|_| error != Errno::Einval) {
                    let backup = shell.path(&backup);
                    let _ = shell.rename(&backup, &to)?;
                }
                let (what, place): (&[u8], _) = match error {
                    Errno::Einval => (b"' to a subdirectory of itself, '", [place, b"'"].concat()),
                    _ => (b"' to '", [place, b"': ", error.text().as_bytes()].concat()),
                };
                let message = [b"cannot move '", source, what, &place].concat();
                match error {
                    Errno::Einval | Errno::Enoent | Errno::Enotdir => complain_exactly(shell, "mv", &message),
                    _ => complain(shell, "mv", &message),
                }
            }
        }
    }

    /// What happens with what is there: the name of its backup, or the status if nothing is moved.
    fn replace(
        &self,
        shell: &mut Shell<'_>,
        (source, node): (&[u8], &Node),
        (place, old): (&[u8], &Node),
        created: &Created,
    ) -> Run<Result<Option<Vec<u8>>, u8>> {
        let backs_up = self.backups.are_made();
        let replaced = Replaced {
            dereference: Dereference::Never,
            moves: true,
            hard: false,
            symbolic: false,
            backs_up,
            removes: false,
        };
        let fail = |shell: &mut Shell<'_>, parts: &[&[u8]]| complain_exactly(shell, "mv", &parts.concat()).map(Err);
        let same = same_file(shell, (source, node), (place, old), &replaced);
        if same == SameFile::Yes && !self.no_clobber {
            return fail(shell, &[b"'", source, b"' and '", place, b"' are the same file"]);
        }
        if self.update && !self.no_clobber && !node.is_dir() {
            shell.inspect(source, Follow::No, Aspect::Time);
            shell.inspect(place, Follow::No, Aspect::Time);
        }
        // mv -n of Debian 13 succeeds, unlike coreutils 9.2 to 9.4.
        if self.no_clobber || (self.update && !node.is_dir() && old.mtime >= node.mtime) {
            return Ok(Err(0));
        }
        if same == SameFile::Unlink {
            let path = shell.path(source);
            return match shell.files.remove(&path) {
                Ok(()) => Ok(Err(0)),
                Err(error) => cannot(shell, "mv", "remove", source, error).map(Err),
            };
        }
        if node.is_dir() != old.is_dir() && !backs_up {
            if old.is_dir() {
                return fail(shell, &[b"cannot overwrite directory '", place, b"' with non-directory"]);
            }
            return fail(shell, &[b"cannot overwrite non-directory '", place, b"' with directory '", source, b"'"]);
        }
        if !old.is_dir() && self.backups.control != Control::Numbered && created.has(place, old) {
            return fail(shell, &[b"will not overwrite just-created '", place, b"' with '", source, b"'"]);
        }
        if !backs_up || matches!(super::paths::last_name(source), b"." | b"..") {
            return Ok(Ok(None));
        }
        if self.backups.destroys(shell, place, source, node.id) {
            return fail(shell, &[b"backing up '", place, b"' might destroy source;  '", source, b"' not moved"]);
        }
        match self.backups.make(shell, place)? {
            Ok(name) => Ok(Ok(Some(name))),
            Err(error) => cannot(shell, "mv", "backup", place, error).map(Err),
        }
    }
}
