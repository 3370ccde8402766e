//! Applies the tests and actions of `find`.

use super::format::{self, Piece};
use super::{Amount, Entry, Search, Test, links};
use crate::commands::paths::{bare, last_name};
use crate::commands::{Words, cannot, real_path};
use crate::eval::Run;
use crate::files::{Aspect, Follow, Node};
use crate::pattern::Pattern;

/// The size of the smallest directory of ext4.
const DIRECTORY_BYTES: u64 = 4096;

/// What counting the names of a file costs.
const LINKS: usize = 10_000;

/// The property of a node that a test depends on.
fn decisive(test: &Test, node: &Node) -> Option<Aspect> {
    match test {
        Test::Kind(_) | Test::OtherKind(_) | Test::Target(..) => Some(Aspect::Kind),
        Test::Mode(..) => Some(Aspect::Mode),
        Test::Empty if node.is_file() => Some(Aspect::Emptiness),
        Test::Size(..) => Some(Aspect::Size),
        Test::Newer(..) => Some(Aspect::Time),
        _ => None,
    }
}

impl Search<'_, '_> {
    /// Whether a pattern fits, if that does not depend on a random text.
    fn fits(&self, pattern: &Pattern, text: &[u8]) -> Run<bool> {
        self.shell.require_same_match(pattern, text)?;
        Ok(pattern.matches(text))
    }

    /// Whether an action would be reached.
    pub(super) fn would_act(&mut self, entry: &Entry<'_>, test: &Test) -> Run<bool> {
        match test {
            Test::And(tests) => {
                for test in tests {
                    if acts(test) {
                        return self.would_act(entry, test);
                    }
                    if !self.holds(entry, test, &mut false)? {
                        return Ok(false);
                    }
                }
                Ok(false)
            }
            Test::Or(tests) => {
                for test in tests {
                    if acts(test) && self.would_act(entry, test)? {
                        return Ok(true);
                    }
                    if !acts(test) && self.holds(entry, test, &mut false)? {
                        return Ok(false);
                    }
                }
                Ok(false)
            }
            Test::Not(inner) => self.would_act(entry, inner),
            test => Ok(acts(test)),
        }
    }

    pub(super) fn holds(&mut self, entry: &Entry<'_>, test: &Test, pruned: &mut bool) -> Run<bool> {
        let Entry { path, node, .. } = *entry;
        if let Some(property) = decisive(test, &node) {
            self.shell.inspect(path, self.follow, property);
        }
        Ok(match test {
            Test::And(tests) => {
                for test in tests {
                    if !self.holds(entry, test, pruned)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Or(tests) => {
                for test in tests {
                    if self.holds(entry, test, pruned)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Not(inner) => !self.holds(entry, inner, pruned)?,
            Test::Name(pattern) => self.fits(pattern, last_name(path))?,
            Test::Path(pattern) => self.fits(pattern, path)?,
            Test::SmallName(pattern) => self.fits(pattern, &last_name(path).to_ascii_lowercase())?,
            Test::SmallPath(pattern) => self.fits(pattern, &path.to_ascii_lowercase())?,
            Test::Target(_, _) if !node.is_symlink() => false,
            Test::Target(pattern, small) => {
                let target = self.shell.files.read_link(&self.shell.path(path)).unwrap_or_default();
                pattern.matches(&if *small { target.to_ascii_lowercase() } else { target })
            }
            Test::Regex(expression) => expression.is_match(self.shell, path)?,
            Test::Kind(kinds) => kinds.contains(&node.kind),
            Test::OtherKind(kinds) => {
                let follow = if entry.depth == 0 { self.follow_operands } else { self.follow };
                let other = if follow == Follow::Yes { Follow::No } else { Follow::Yes };
                self.look(path, other).is_ok_and(|node| kinds.contains(&node.kind))
            }
            Test::Mode(b'-', mode) => node.mode & mode == *mode,
            Test::Mode(b'/', mode) => *mode == 0 || node.mode & mode != 0,
            Test::Mode(_, mode) => node.mode == *mode,
            Test::User(id) => id.fits(node.uid.into()),
            Test::Group(id) => id.fits(node.gid.into()),
            Test::Unowned(true) => self.shell.commands.user_name(&*self.shell.files, node.uid).is_none(),
            Test::Unowned(false) => self.shell.commands.group_name(&*self.shell.files, node.gid).is_none(),
            Test::Empty => match node.is_dir() {
                true => self.shell.files.list(&self.shell.path(path)).is_ok_and(|names| names.is_empty()),
                false => node.is_file() && node.size == 0,
            },
            Test::Links(_) if self.shell.files.unknown().is_some() => {
                return self.shell.unsupported(b"-links over files that are not all known");
            }
            Test::Links(amount) => {
                self.shell.spend(LINKS)?;
                amount.fits(links(self.shell, path, &node))
            }
            Test::Same(id) => node.id == *id,
            Test::Newer(_, Some(id)) if node.id == *id => false,
            Test::Newer(mtime, Some(_)) => self.shell.is_newer(node.mtime, *mtime)?,
            Test::Newer(mtime, None) => node.mtime > *mtime,
            Test::Size(amount, unit) if node.is_dir() => match of_directory(*amount, *unit) {
                Some(fits) => fits,
                None => return self.shell.unsupported(b"the size of a directory"),
            },
            Test::Size(amount, unit) => {
                self.shell.require_size(path)?;
                amount.fits(node.size.div_ceil(*unit))
            }
            Test::Quit => {
                self.quits = true;
                true
            }
            Test::Prune => {
                *pruned = true;
                true
            }
            Test::Print(end) => {
                self.results += 1;
                self.shell.out(&[path, &[*end][..]].concat())?;
                true
            }
            Test::Format(pieces) => {
                self.results += 1;
                let mut text = Vec::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(piece) => text.extend_from_slice(piece),
                        Piece::Field(letter) => text.extend(format::field(self.shell, entry, *letter)?),
                    }
                }
                self.shell.out(&text)?;
                true
            }
            Test::Delete if path == b"." => true,
            Test::Delete
                if self.follow == Follow::Yes && self.look(path, Follow::No).is_ok_and(|node| node.is_symlink()) =>
            {
                // Whether it still leads to a directory depends on the order of entries.
                return self.shell.unsupported(b"-delete of a link with -L");
            }
            Test::Delete => {
                let absolute = self.shell.path(path);
                match self.shell.files.remove(&absolute) {
                    Ok(()) => true,
                    Err(error) => {
                        self.status = cannot(self.shell, "find", "delete", path, error)?;
                        false
                    }
                }
            }
            Test::Exec(command) => {
                self.note_command(command, path);
                let argv: Vec<Vec<u8>> = command.iter().map(|word| replaced(word, path)).collect();
                self.shell.invoke(&argv)? == 0
            }
            Test::ExecIn(command) => {
                self.note_command(command, path);
                let (directory, name) = last(path);
                let argv: Words = command.iter().map(|word| replaced(word, &name)).collect();
                self.invoke_in(&directory, &argv)? == 0
            }
            Test::CollectByDirectory(command) => {
                self.note_command(command, path);
                let (directory, name) = last(path);
                self.collected_in.entry((command.clone(), directory)).or_default().push(name);
                true
            }
            Test::Collect(number) => {
                if let Some((command, found)) = self.collected.get_mut(*number) {
                    found.push(path.to_vec());
                    let command = command.clone();
                    self.note_command(&command, path);
                }
                true
            }
        })
    }

    /// Runs a command in a directory.
    pub(super) fn invoke_in(&mut self, directory: &[u8], argv: &Words) -> Run<u8> {
        let cwd = self.shell.state.cwd.clone();
        let directory = self.shell.path(directory);
        self.shell.state.cwd = real_path(self.shell, &directory).unwrap_or(directory).into();
        let status = self.shell.invoke(argv);
        self.shell.state.cwd = cwd;
        status
    }
}

/// Whether the size of a directory fits, where that is the same for each directory: ext4 gives it one block at least.
fn of_directory(amount: Amount, unit: u64) -> Option<bool> {
    let least = DIRECTORY_BYTES.div_ceil(unit);
    match amount.sign {
        b'+' => (amount.number < least).then_some(true),
        b'-' => (amount.number <= least).then_some(false),
        _ => (amount.number < least).then_some(false),
    }
}

/// Whether a test does something.
fn acts(test: &Test) -> bool {
    match test {
        Test::And(tests) | Test::Or(tests) => tests.iter().any(acts),
        Test::Not(inner) => acts(inner),
        Test::Print(_) | Test::Format(_) | Test::Exec(_) | Test::ExecIn(_) => true,
        Test::Collect(_) | Test::CollectByDirectory(_) => true,
        Test::Delete | Test::Quit => true,
        _ => false,
    }
}

/// A word of a command with the path in place of each `{}`.
fn replaced(word: &[u8], path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.windows(2).position(|window| window == b"{}") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(path);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

/// The directory of a path, and its name there as `-execdir` passes it.
fn last(path: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let start = bare(path).iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let directory = if start == 0 { &b"."[..] } else { &path[..start] };
    (directory.to_vec(), [b"./", &path[start..]].concat())
}
