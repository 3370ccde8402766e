//! `rm`, `rmdir` and `unlink`.

use super::options::{Accepted, parse};
use super::paths::last_name;
use super::{cannot, complain};
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::shell::Shell;

pub(super) fn rm(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("force", b'f'),
        ("recursive", b'r'),
        ("verbose", b'v'),
        ("dir", b'd'),
        ("one-file-system", b'o'),
        ("preserve-root", b'o'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"frRvd", long, strict: false })?;
    let recursive = options.has(b'r') || options.has(b'R');
    if options.operands.is_empty() && !options.has(b'f') {
        return complain(shell, "rm", b"missing operand");
    }
    let mut status = 0;
    for operand in &options.operands {
        let node = match shell.stat(operand, Follow::No) {
            Ok(node) => node,
            Err(Errno::Enoent | Errno::Enotdir) if options.has(b'f') => continue,
            Err(error) => {
                status = cannot(shell, "rm", "remove", operand, error)?;
                continue;
            }
        };
        let name = last_name(operand);
        let bare = operand.iter().rposition(|byte| *byte != b'/').map_or(&b"/"[..], |at| &operand[..=at]);
        if recursive && operand.ends_with(b"/") && shell.stat(bare, Follow::No).is_ok_and(|node| node.is_symlink()) {
            // GNU rm empties the directory and then fails.
            return shell.unsupported(operand);
        }
        if recursive && matches!(name, b"." | b".." | b"/") {
            let message = [b"refusing to remove '.' or '..' or '/': skipping '", &operand[..], b"'"].concat();
            status = complain(shell, "rm", &message)?;
            continue;
        }
        let path = shell.path(operand);
        let done = match node.is_dir() {
            true if recursive => all(shell, &path)?,
            true if !options.has(b'd') => Err(Errno::Eisdir),
            _ => shell.files.remove(&path),
        };
        match done {
            Ok(()) if options.has(b'v') => {
                let what: &[u8] = if node.is_dir() { b"removed directory '" } else { b"removed '" };
                shell.out(&[what, &operand[..], b"'\n"].concat())?;
            }
            Ok(()) => {}
            Err(error) => status = cannot(shell, "rm", "remove", operand, error)?,
        }
    }
    Ok(status)
}

/// Removes a path with all below it.
fn all(shell: &mut Shell<'_>, path: &[u8]) -> Run<Result<(), Errno>> {
    let mut todo = vec![(path.to_vec(), false)];
    while let Some((path, emptied)) = todo.pop() {
        shell.step()?;
        let node = match shell.files.lookup(&path, Follow::No) {
            Ok(node) => node,
            Err(error) => return Ok(Err(error)),
        };
        if node.is_dir() && !emptied {
            let names = shell.files.list(&path).unwrap_or_default();
            todo.push((path.clone(), true));
            todo.extend(names.iter().rev().map(|name| ([&path[..], b"/", name].concat(), false)));
            continue;
        }
        if let Err(error) = shell.files.remove(&path) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

pub(super) fn rmdir(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("parents", b'p'), ("ignore-fail-on-non-empty", b'i'), ("verbose", b'v')];
    let options = parse(shell, args, &Accepted { letters: b"pv", long, strict: false })?;
    if options.operands.is_empty() {
        return complain(shell, "rmdir", b"missing operand");
    }
    let mut status = 0;
    for operand in &options.operands {
        let mut rest = operand.clone();
        loop {
            let path = shell.path(&rest);
            let done = match shell.stat(&rest, Follow::No) {
                Ok(node) if node.is_dir() => shell.files.remove(&path),
                Ok(_) => Err(Errno::Enotdir),
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => {}
                Err(Errno::Enotempty) if options.has(b'i') => break,
                Err(error) => {
                    let message = [b"failed to remove '", &rest[..], b"': ", error.text().as_bytes()].concat();
                    status = complain(shell, "rmdir", &message)?;
                    break;
                }
            }
            let end = rest.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            rest.truncate(end);
            if !options.has(b'p') || rest.is_empty() {
                break;
            }
        }
    }
    Ok(status)
}

pub(super) fn unlink(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let [operand] = args else { return complain(shell, "unlink", b"one operand is needed") };
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
