//! `rm`, `rmdir` and `unlink`.

use super::attributes::{Through, below, mark_entries};
use super::options::{Accepted, Options, parse};
use super::paths::{bare, last_name};
use super::{cannot, complain, complain_exactly, join, quoted};
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"frRvd",
    long: &[
        ("force", b'f'),
        ("recursive", b'r'),
        ("verbose", b'v'),
        ("dir", b'd'),
        ("one-file-system", b'o'),
        ("preserve-root", b'o'),
    ],
    strict: false,
};

pub(super) fn rm(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &OPTIONS)?;
    if options.operands.is_empty() && !options.has(b'f') {
        return complain(shell, "rm", b"missing operand");
    }
    let mut status = 0;
    for operand in &options.operands {
        status |= remove(shell, operand, &options)?;
    }
    Ok(status)
}

fn remove(shell: &mut Shell<'_>, operand: &[u8], options: &Options) -> Run<u8> {
    let recursive = options.has(b'r') || options.has(b'R');
    let node = match shell.stat(operand, Follow::No) {
        Ok(node) => node,
        Err(Errno::Enoent | Errno::Enotdir) if options.has(b'f') => return Ok(0),
        // unlink(2) of a link with a trailing slash fails with ENOTDIR, which `-f` ignores.
        Err(Errno::Eloop) if options.has(b'f') && operand.ends_with(b"/") && is_link(shell, bare(operand)) => {
            return Ok(0);
        }
        Err(error) => return cannot(shell, "rm", "remove", operand, error),
    };
    if recursive && operand.ends_with(b"/") && is_link(shell, bare(operand)) {
        // GNU rm empties the directory and then fails.
        return shell.unsupported(operand);
    }
    if recursive && matches!(last_name(operand), b"." | b".." | b"/") {
        if last_name(operand) == b"/" {
            return complain(shell, "rm", b"it is dangerous to operate recursively on '/'");
        }
        let message = [b"refusing to remove '.' or '..' directory: skipping '", operand, b"'"].concat();
        return complain_exactly(shell, "rm", &message);
    }
    if !node.is_dir() {
        return one(shell, operand, false, options);
    }
    match (recursive, options.has(b'd')) {
        (true, _) => all(shell, operand, options),
        (false, true) => one(shell, operand, true, options),
        (false, false) => cannot(shell, "rm", "remove", operand, Errno::Eisdir),
    }
}

fn is_link(shell: &Shell<'_>, path: &[u8]) -> bool {
    shell.stat(path, Follow::No).is_ok_and(|node| node.is_symlink())
}

fn one(shell: &mut Shell<'_>, path: &[u8], is_dir: bool, options: &Options) -> Run<u8> {
    let absolute = shell.path(path);
    if let Err(error) = shell.files.remove(&absolute) {
        return cannot(shell, "rm", "remove", path, error);
    }
    if options.has(b'v') {
        let what: &[u8] = if is_dir { b"removed directory " } else { b"removed " };
        let name = quoted(shell, path)?;
        shell.out(&[what, &name[..], b"\n"].concat())?;
    }
    Ok(0)
}

/// Removes a directory with all below it. A directory that keeps something stays, and all above it.
fn all(shell: &mut Shell<'_>, operand: &[u8], options: &Options) -> Run<u8> {
    if options.has(b'v') {
        let paths = below(shell, operand, Through::Nothing)?;
        mark_entries(shell, &paths)?;
    }
    let mut todo = vec![(operand.to_vec(), false)];
    while let Some((path, emptied)) = todo.pop() {
        shell.step()?;
        let is_dir = shell.stat(&path, Follow::No).is_ok_and(|node| node.is_dir());
        if is_dir && !emptied {
            let names = shell.files.list(&shell.path(&path)).unwrap_or_default();
            todo.push((path.clone(), true));
            todo.extend(names.iter().rev().map(|name| (join(&path, name), false)));
        } else if one(shell, &path, is_dir, options)? != 0 {
            return Ok(1);
        }
    }
    Ok(0)
}

pub(super) fn rmdir(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("parents", b'p'), ("ignore-fail-on-non-empty", b'i'), ("verbose", b'v')];
    let options = parse(shell, args, &Accepted { letters: b"pv", long, strict: false })?;
    if options.operands.is_empty() {
        return complain(shell, "rmdir", b"missing operand");
    }
    let mut status = 0;
    for operand in &options.operands {
        let mut rest = &operand[..];
        loop {
            if options.has(b'v') {
                let name = quoted(shell, rest)?;
                shell.out(&[b"rmdir: removing directory, ", &name[..], b"\n"].concat())?;
            }
            match remove_dir(shell, rest) {
                Ok(()) => {}
                Err(Errno::Enotempty) if options.has(b'i') => break,
                Err(error) => {
                    let message = [b"failed to remove '", rest, b"': ", error.text().as_bytes()].concat();
                    status = complain_exactly(shell, "rmdir", &message)?;
                    break;
                }
            }
            let whole = bare(rest);
            let above = &whole[..whole.len() - last_name(whole).len()];
            if !options.has(b'p') || above.is_empty() {
                break;
            }
            rest = bare(above);
        }
    }
    Ok(status)
}

fn remove_dir(shell: &mut Shell<'_>, path: &[u8]) -> Result<(), Errno> {
    let name = if path.is_empty() { path } else { bare(path) };
    if !shell.stat(name, Follow::No)?.is_dir() {
        return Err(Errno::Enotdir);
    }
    let absolute = shell.path(path);
    shell.files.remove(&absolute)
}

pub(super) fn unlink(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"", long: &[], strict: false })?;
    let [operand] = &options.operands[..] else {
        return complain(shell, "unlink", b"missing or extra operand");
    };
    let done = match shell.stat(operand, Follow::No) {
        Ok(node) if node.is_dir() => Err(Errno::Eisdir),
        Ok(_) => {
            let path = shell.path(operand);
            shell.files.remove(&path)
        }
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => Ok(0),
        Err(error) => cannot(shell, "unlink", "unlink", operand, error),
    }
}
