//! `ln`.

use super::backups::{Backups, Control, backups};
use super::options::{Accepted, parse};
use super::paths::missing_path;
use super::targets::{Created, occupant, same_entry, targets};
use super::{complain, complain_exactly, quoted};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node};
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"bfLnPrsS:t:Tv",
    long: &[
        ("backup?", b'B'),
        ("force", b'f'),
        ("logical", b'L'),
        ("no-dereference", b'n'),
        ("no-target-directory", b'T'),
        ("physical", b'P'),
        ("relative", b'r'),
        ("suffix=", b'S'),
        ("symbolic", b's'),
        ("target-directory=", b't'),
        ("verbose", b'v'),
    ],
    strict: false,
};

/// How links are made.
struct Linking {
    symbolic: bool,
    force: bool,
    relative: bool,
    /// Hard links to what a symbolic link leads to.
    logical: bool,
    verbose: bool,
    backups: Backups,
}

pub(super) fn ln(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut options = parse(shell, args, &OPTIONS)?;
    let Some(backups) = backups(shell, "ln", &options)? else { return Ok(1) };
    let last = options.iter().rev().find(|(letter, _)| matches!(letter, b'L' | b'P'));
    let linking = Linking {
        symbolic: options.has(b's'),
        force: options.has(b'f'),
        relative: options.has(b'r'),
        logical: last.is_some_and(|(letter, _)| letter == b'L'),
        verbose: options.has(b'v'),
        backups,
    };
    if linking.relative && !linking.symbolic {
        return complain(shell, "ln", b"cannot do --relative without --symbolic");
    }
    if options.operands.len() == 1 && !options.has(b't') && !options.has(b'T') {
        options.operands.push(b".".to_vec());
    }
    let (force, keeps) = (options.has(b'f'), options.has(b'n'));
    let is_dir = |shell: &Shell<'_>, path: &[u8]| {
        let found = if force { shell.destination(path) } else { shell.stat(path, Follow::Yes) };
        let is_link = || shell.stat(path, Follow::No).is_ok_and(|node| node.is_symlink());
        found.is_ok_and(|node| node.is_dir()) && !(keeps && is_link())
    };
    let Some(targets) = targets(shell, "ln", &options, is_dir)? else { return Ok(1) };
    let mut created = Created::default();
    let mut status = 0;
    for source in &targets.sources {
        let place = targets.place(source);
        match linking.one(shell, source, &place, &created)? {
            Ok(()) => created.add(shell, &place),
            Err(found) => status = found,
        }
    }
    Ok(status)
}

impl Linking {
    /// Makes one link. The error is the status, whose reason was written.
    fn one(&self, shell: &mut Shell<'_>, source: &[u8], place: &[u8], created: &Created) -> Run<Result<(), u8>> {
        let fail = |shell: &mut Shell<'_>, parts: &[&[u8]]| complain_exactly(shell, "ln", &parts.concat()).map(Err);
        if !self.symbolic {
            let follow = if self.logical { Follow::Yes } else { Follow::No };
            match shell.stat(source, follow) {
                Ok(node) if node.is_dir() => {
                    return fail(shell, &[source, b": hard link not allowed for directory"]);
                }
                Ok(_) => {}
                Err(error) => return fail(shell, &[b"failed to access '", source, b"': ", error.text().as_bytes()]),
            }
        }
        let path = shell.path(place);
        if self.relative && !source.is_empty() && missing_path(shell, source).is_none() {
            // ln of coreutils loops forever.
            return shell.unsupported(b"a relative link through a symlink loop");
        }
        let text = if self.relative && !source.is_empty() { relative(shell, source, place) } else { source.to_vec() };
        shell.note(&path, &text);
        if text.is_empty() {
            return fail(shell, &[b"failed to create symbolic link '", place, b"' -> '': No such file or directory"]);
        }
        let mut backup = None;
        if self.force || self.backups.are_made() {
            match occupant(shell, place) {
                Ok(old) => match self.replace(shell, source, place, &old, created)? {
                    Ok(name) => backup = name,
                    Err(status) => return Ok(Err(status)),
                },
                // A tree that is not complete may have it all the same.
                Err(Errno::Enoent) => drop(shell.files.make_way(&path)),
                Err(error) => return fail(shell, &[b"failed to access '", place, b"': ", error.text().as_bytes()]),
            }
        }
        let from = shell.path(source);
        let made = match (self.symbolic, self.logical) {
            (false, _) if self.force && self.is_linked(shell, source, place) => Ok(()),
            (true, _) => shell.files.symlink(&text, &path),
            (false, true) => {
                let from = super::real_path(shell, source).unwrap_or(from);
                shell.files.hard_link(&from, &path)
            }
            (false, false) => shell.files.hard_link(&from, &path),
        };
        if let Err(error) = made {
            let why = error.text().as_bytes();
            return match (self.symbolic, error) {
                (true, Errno::Enametoolong) => {
                    fail(shell, &[b"failed to create symbolic link '", place, b"' -> '", &text, b"': ", why])
                }
                (true, _) => fail(shell, &[b"failed to create symbolic link '", place, b"': ", why]),
                (false, Errno::Eexist) => fail(shell, &[b"failed to create hard link '", place, b"': ", why]),
                (false, _) => fail(shell, &[b"failed to create hard link '", place, b"' => '", source, b"': ", why]),
            };
        }
        if self.verbose {
            let mut line = match backup {
                Some(backup) => [&quoted(shell, &backup)?[..], b" ~ "].concat(),
                None => Vec::new(),
            };
            let arrow: &[u8] = if self.symbolic { b" -> " } else { b" => " };
            line.extend([&quoted(shell, place)?[..], arrow, &quoted(shell, &text)?, b"\n"].concat());
            shell.out(&line)?;
        }
        Ok(Ok(()))
    }

    /// Whether both paths are names of one file.
    fn is_linked(&self, shell: &Shell<'_>, source: &[u8], place: &[u8]) -> bool {
        let follow = if self.logical { Follow::Yes } else { Follow::No };
        let found = (shell.stat(source, follow), shell.stat(place, Follow::No));
        matches!(found, (Ok(one), Ok(other)) if one.id == other.id)
    }

    /// Takes away what is there: gives the name of its backup, or the status if it stays.
    fn replace(
        &self,
        shell: &mut Shell<'_>,
        source: &[u8],
        place: &[u8],
        old: &Node,
        created: &Created,
    ) -> Run<Result<Option<Vec<u8>>, u8>> {
        let fail = |shell: &mut Shell<'_>, parts: &[&[u8]]| complain_exactly(shell, "ln", &parts.concat()).map(Err);
        if old.is_dir() {
            return fail(shell, &[place, b": cannot overwrite directory"]);
        }
        let protects = !self.symbolic && self.force && self.backups.control != Control::Numbered;
        if protects && created.has(place, old) {
            return fail(shell, &[b"will not overwrite just-created '", place, b"' with '", source, b"'"]);
        }
        let backs_up = self.backups.are_made();
        let follow = if self.symbolic || self.logical { Follow::Yes } else { Follow::No };
        if (!backs_up || !self.symbolic)
            && shell.stat(source, follow).is_ok_and(|node| node.id == old.id)
            && (shell.files.link_count(&shell.path(place)).is_ok_and(|count| count == 1)
                || same_entry(shell, source, place))
        {
            return fail(shell, &[b"'", source, b"' and '", place, b"' are the same file"]);
        }
        let path = shell.path(place);
        let gone = if backs_up {
            self.backups.make(shell, place)?.map(Some)
        } else if !self.symbolic && self.is_linked(shell, source, place) {
            // Renaming one name of a file to another changes nothing.
            Ok(None)
        } else if self.symbolic || shell.stat(source, follow).is_ok() {
            shell.files.make_way(&path).map(|()| None)
        } else {
            Ok(None)
        };
        match gone {
            Ok(name) => Ok(Ok(name)),
            Err(error) => fail(shell, &[b"cannot replace '", place, b"': ", error.text().as_bytes()]),
        }
    }
}

/// The target of a link at `place` that leads to `source`, counted from the link's directory.
fn relative(shell: &Shell<'_>, source: &[u8], place: &[u8]) -> Vec<u8> {
    let full = |path: &[u8]| {
        let path = shell.path(path);
        let (dir, name) = path.split_at(path.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        let dir = if dir.is_empty() { b"/" } else { dir };
        let dir = super::real_path(shell, dir).unwrap_or(dir.to_vec());
        crate::builtins::normalize(&[&dir[..], name].concat())
    };
    let to = missing_path(shell, source).unwrap_or_else(|| full(source));
    let from = full(place);
    let to: Vec<&[u8]> = to.split(|byte| *byte == b'/').skip(1).collect();
    let from: Vec<&[u8]> = from.split(|byte| *byte == b'/').skip(1).collect();
    let dirs = from.len().saturating_sub(1);
    let common = to.iter().zip(&from[..dirs]).take_while(|(to, from)| to == from).count();
    let mut names = vec![&b".."[..]; dirs - common];
    names.extend(&to[common..]);
    if names.is_empty() { b".".to_vec() } else { names.join(&b'/') }
}
