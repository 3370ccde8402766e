//! `cp`.

mod node;
mod same_file;

use super::backups::{Backups, backups};
use super::options::{Accepted, Options, parse};
use super::targets::targets;
use super::{cannot, complain, join};
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::shell::Shell;

pub(super) use same_file::{Replaced, SameFile, same_file};

const OPTIONS: Accepted = Accepted {
    letters: b"abdfHlnPLpRrsS:t:TuvxZ",
    long: &[
        ("archive", b'a'),
        ("backup?", b'B'),
        ("dereference", b'L'),
        ("force", b'f'),
        ("link", b'l'),
        ("no-clobber", b'n'),
        ("no-dereference", b'P'),
        ("no-preserve=", b'N'),
        ("no-target-directory", b'T'),
        ("one-file-system", b'x'),
        ("parents", b'Q'),
        ("preserve?", b'K'),
        ("recursive", b'r'),
        ("reflink?", b'0'),
        ("remove-destination", b'D'),
        ("sparse=", b'0'),
        ("strip-trailing-slashes", b'W'),
        ("suffix=", b'S'),
        ("symbolic-link", b's'),
        ("target-directory=", b't'),
        ("update?", b'U'),
        ("verbose", b'v'),
    ],
    strict: false,
};

/// Links that are followed in sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dereference {
    Never,
    Operands,
    Always,
}

/// What a copy keeps and does.
#[derive(Debug, Clone)]
pub(super) struct Copying {
    recursive: bool,
    dereference: Dereference,
    mode: bool,
    /// `--no-preserve=mode`: modes are those of new files.
    plain_mode: bool,
    owner: bool,
    time: bool,
    /// Extended attributes.
    attributes: bool,
    links: bool,
    no_clobber: bool,
    /// `--remove-destination`
    remove: bool,
    force: bool,
    update: bool,
    verbose: bool,
    hard: bool,
    symbolic: bool,
    parents: bool,
    backups: Backups,
}

fn copying(shell: &Shell<'_>, options: &Options, backups: Backups) -> Run<Copying> {
    let mut copying = Copying {
        recursive: options.has(b'r') || options.has(b'R') || options.has(b'a'),
        dereference: Dereference::Always,
        mode: false,
        plain_mode: false,
        owner: false,
        time: false,
        attributes: false,
        links: false,
        no_clobber: options.has(b'n'),
        remove: options.has(b'D'),
        force: options.has(b'f'),
        update: options.has(b'u'),
        verbose: options.has(b'v'),
        hard: options.has(b'l'),
        symbolic: options.has(b's'),
        parents: options.has(b'Q'),
        backups,
    };
    if copying.recursive && !copying.hard {
        copying.dereference = Dereference::Never;
    }
    for (letter, value) in options.iter() {
        match letter {
            b'a' => {
                copying.keep(shell, b"all", true)?;
                copying.dereference = Dereference::Never;
            }
            b'd' => {
                copying.links = true;
                copying.dereference = Dereference::Never;
            }
            b'P' => copying.dereference = Dereference::Never,
            b'H' => copying.dereference = Dereference::Operands,
            b'L' => copying.dereference = Dereference::Always,
            b'p' => copying.keep(shell, b"mode,ownership,timestamps", true)?,
            b'K' if value.is_empty() => copying.keep(shell, b"mode,ownership,timestamps", true)?,
            b'K' => copying.keep(shell, value, true)?,
            b'N' => copying.keep(shell, value, false)?,
            // coreutils 9.3 and later.
            b'U' => match value {
                b"" | b"older" => copying.update = true,
                b"none" => copying.no_clobber = true,
                b"all" => copying.update = false,
                other => return shell.unsupported(&[b"--update=", other].concat()),
            },
            b'0' if !matches!(value, b"auto" | b"never" | b"always") || value == b"always" => {
                return shell.unsupported(&[b"--reflink or --sparse=", value].concat());
            }
            _ => {}
        }
    }
    Ok(copying)
}

impl Copying {
    fn keep(&mut self, shell: &Shell<'_>, attributes: &[u8], keeps: bool) -> Run<()> {
        for attribute in attributes.split(|byte| *byte == b',') {
            let all = attribute == b"all";
            if !matches!(attribute, b"mode" | b"ownership" | b"timestamps" | b"links" | b"all") {
                return shell.unsupported(&[b"--preserve=", attribute].concat());
            }
            if all || attribute == b"mode" {
                self.mode = keeps;
                self.plain_mode = !keeps;
            }
            self.attributes = if all { keeps } else { self.attributes };
            self.owner = if all || attribute == b"ownership" { keeps } else { self.owner };
            self.time = if all || attribute == b"timestamps" { keeps } else { self.time };
            self.links = if all || attribute == b"links" { keeps } else { self.links };
        }
        Ok(())
    }

    /// How a source is looked at.
    fn follow(&self, top: bool) -> Follow {
        match self.dereference {
            Dereference::Always => Follow::Yes,
            Dereference::Operands if top => Follow::Yes,
            _ => Follow::No,
        }
    }
}

pub(super) fn cp(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut options = parse(shell, args, &OPTIONS)?;
    let Some(backups) = backups(shell, "cp", &options)? else { return Ok(1) };
    let copying = copying(shell, &options, backups)?;
    if copying.hard && copying.symbolic {
        return complain(shell, "cp", b"cannot make both hard and symbolic links");
    }
    if copying.no_clobber && copying.backups.are_made() {
        return complain(shell, "cp", b"options --backup and --no-clobber are mutually exclusive");
    }
    if options.has(b'W') {
        let sources = options.operands.len().saturating_sub(usize::from(!options.has(b't')));
        let sources = options.operands.iter_mut().take(sources);
        sources.for_each(|operand| operand.truncate(super::paths::bare(operand).len()));
    }
    let is_dir = |shell: &Shell<'_>, path: &[u8]| shell.destination(path).is_ok_and(|node| node.is_dir());
    let Some(targets) = targets(shell, "cp", &options, is_dir)? else { return Ok(1) };
    if copying.parents && !targets.into {
        return complain(shell, "cp", b"with --parents, the destination must be a directory");
    }
    let parents = copying.parents;
    let mut copier = node::Copier::new(shell, copying, targets.sources.len() > 1);
    let mut status = 0;
    for source in &targets.sources {
        if !parents {
            status |= copier.copy(source, &targets.place(source))?;
            continue;
        }
        if matches!(super::paths::last_name(source), b"." | b"..") {
            return copier.shell.unsupported(b"--parents of a path that ends with a dot");
        }
        let place = join(&targets.target, super::paths::bare(source));
        status |= match copier.make_parents(&targets.target, source)? {
            Ok(()) => copier.copy(source, &place)?,
            Err((path, error)) => cannot(copier.shell, "cp", "make directory", &path, error)?,
        };
    }
    Ok(status)
}

/// Content alone, for `install`.
pub(super) fn content(shell: &mut Shell<'_>, source: &[u8], place: &[u8], mode: u16) -> Result<(), Errno> {
    let (from, to) = (shell.path(source), shell.path(place));
    if from == b"/dev/null" {
        return shell.files.write(&to, Vec::new(), mode);
    }
    let limit = shell.budget.limits.file_bytes;
    shell.files.copy(&from, &to, mode, limit)
}
