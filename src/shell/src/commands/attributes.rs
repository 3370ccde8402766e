//! `chmod`, and the recursion that it shares with `chown`.

use std::collections::BTreeSet;

use vmbake_disk::tree::permissions;

use super::modes::Mode;
use super::options::{Accepted, parse};
use super::{Words, complain, join, quoted};
use crate::eval::Run;
use crate::files::{Aspect, Errno, Follow, Node};
use crate::shell::Shell;

/// Deepest directories that are gone through.
const MAX_DEPTH: usize = 200;

/// Links to directories that `-R` goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Through {
    Nothing,
    /// Those that operands name.
    Operands,
    All,
}

/// An operand with all that is below it, directories before their entries.
pub(super) fn below(shell: &mut Shell<'_>, operand: &[u8], through: Through) -> Run<Words> {
    let mut found = Vec::new();
    let mut todo = vec![(operand.to_vec(), 0)];
    while let Some((path, depth)) = todo.pop() {
        shell.step()?;
        let follows = through == Through::All || (through == Through::Operands && depth == 0);
        let is_dir = |follow| shell.stat(&path, follow).is_ok_and(|node| node.is_dir());
        if is_dir(if follows { Follow::Yes } else { Follow::No }) {
            if depth >= MAX_DEPTH {
                return shell.unsupported(b"so deep a tree");
            }
            let names = shell.files.list(&shell.path(&path)).unwrap_or_default();
            todo.extend(names.iter().rev().map(|name| (join(&path, name), depth + 1)));
        }
        found.push(path);
    }
    Ok(found)
}

/// Notes that there is a line for each of these paths, of [`below`], where that depends on the order in which a directory lists its entries.
pub(super) fn mark_entries(shell: &mut Shell<'_>, paths: &[Vec<u8>]) -> Run<()> {
    let parents: BTreeSet<&[u8]> = paths.iter().skip(1).map(|path| parent(path)).collect();
    let is_ordered = parents.len() + 1 >= paths.len();
    if is_ordered { Ok(()) } else { shell.mark_output() }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(b"", |at| &path[..at])
}

const OPTIONS: Accepted = Accepted {
    letters: b"Rfcv",
    long: &[
        ("recursive", b'R'),
        ("silent", b'f'),
        ("quiet", b'f'),
        ("changes", b'c'),
        ("verbose", b'v'),
        ("no-preserve-root", b'0'),
        ("reference=", b'r'),
    ],
    strict: false,
};

/// Whether an operand begins with `-` and is a mode all the same: `chmod -x`.
fn is_mode(arg: &[u8]) -> bool {
    arg.len() > 1
        && arg[0] == b'-'
        && arg[1..].iter().all(|letter| b"rwxXstugo,+=-".contains(letter))
        && !arg.starts_with(b"--")
}

/// The modes among the options, joined to one.
fn take_modes(args: &[Vec<u8>]) -> (Words, Option<Vec<u8>>) {
    let end = args.iter().position(|arg| arg == b"--").unwrap_or(args.len());
    let (modes, mut rest): (Words, Words) = args[..end].iter().cloned().partition(|arg| is_mode(arg));
    rest.extend_from_slice(&args[end..]);
    let mode = (!modes.is_empty()).then(|| modes.join(&b','));
    (rest, mode)
}

pub(super) fn chmod(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let (args, option) = take_modes(args);
    let options = parse(shell, &args, &OPTIONS)?;
    let mut operands = options.operands.iter();
    let strict = option.is_some();
    if strict && options.has(b'r') {
        return complain(shell, "chmod", b"cannot combine mode and --reference options");
    }
    let text = match (options.value(b'r'), option) {
        (Some(path), _) => match shell.stat(path, Follow::Yes) {
            Ok(node) => Some(format!("{:05o}", node.mode).into_bytes()),
            Err(error) => return unknown_reference(shell, "chmod", path, error),
        },
        (None, Some(mode)) => Some(mode),
        (None, None) => operands.next().cloned(),
    };
    let Some(text) = text.filter(|_| operands.len() > 0) else {
        return complain(shell, "chmod", b"missing operand");
    };
    let Some(mode) = Mode::new(&text) else {
        return complain(shell, "chmod", &[b"invalid mode: '", &text[..], b"'"].concat());
    };
    let last = options.iter().rev().find(|(letter, _)| matches!(letter, b'v' | b'c'));
    let reports = last.map(|(letter, _)| letter == b'v');
    let change = Change { mode, strict, reports };
    let mut status = 0;
    for operand in operands {
        let paths = if options.has(b'R') { below(shell, operand, Through::Operands)? } else { vec![operand.to_vec()] };
        if reports.is_some() {
            mark_entries(shell, &paths)?;
        }
        for path in paths {
            match change.one(shell, &path, &path == operand)? {
                Ok(fits) => status |= u8::from(!fits),
                Err(error) => {
                    status = 1;
                    if !options.has(b'f') {
                        super::cannot(shell, "chmod", "access", &path, error)?;
                    }
                    if reports == Some(true) {
                        let name = quoted(shell, &path)?;
                        shell.out(&[&name[..], b" could not be accessed\n"].concat())?;
                    }
                }
            }
        }
    }
    Ok(status)
}

/// Writes that the file of `--reference` has no attributes.
pub(super) fn unknown_reference(shell: &mut Shell<'_>, program: &str, path: &[u8], error: Errno) -> Run<u8> {
    let message = [b"failed to get attributes of '", path, b"': ", error.text().as_bytes()].concat();
    complain(shell, program, &message)
}

struct Change {
    mode: Mode,
    /// The mode was an option: a result that the umask changed is a failure.
    strict: bool,
    /// Whether changes are written, and with `true` also what stays.
    reports: Option<bool>,
}

impl Change {
    /// Changes one file. Says whether the mode is what the operand means without the umask.
    fn one(&self, shell: &mut Shell<'_>, path: &[u8], top: bool) -> Run<Result<bool, Errno>> {
        match shell.stat(path, Follow::No) {
            Ok(node) if node.is_symlink() && !top => return Ok(Ok(true)),
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
        let node = match shell.stat(path, Follow::Yes) {
            Ok(node) => node,
            Err(error) => return Ok(Err(error)),
        };
        let new = self.mode.apply(node.mode, node.is_dir(), shell.state.umask);
        let applied = |old| self.mode.apply(old, node.is_dir(), shell.state.umask);
        if self.reports.is_some() || applied(0) != applied(0o777) {
            shell.inspect(path, Follow::Yes, Aspect::Mode);
        }
        let absolute = shell.path(path);
        if absolute != b"/dev/null"
            && let Err(error) = shell.files.set_mode(&absolute, new)
        {
            return Ok(Err(error));
        }
        self.report_change(shell, path, &node, new)?;
        let meant = self.mode.apply(node.mode, node.is_dir(), 0);
        Ok(Ok(!self.strict || new & !meant == 0))
    }

    fn report_change(&self, shell: &mut Shell<'_>, path: &[u8], node: &Node, new: u16) -> Run<()> {
        let Some(all) = self.reports else { return Ok(()) };
        let described = |mode: u16| format!("{mode:04o} ({})", permissions(mode));
        let text = match (node.mode == new, all) {
            (true, false) => return Ok(()),
            (true, true) => format!(" retained as {}\n", described(new)),
            (false, _) => format!(" changed from {} to {}\n", described(node.mode), described(new)),
        };
        let name = quoted(shell, path)?;
        shell.out(&[b"mode of ", &name[..], text.as_bytes()].concat())
    }
}
