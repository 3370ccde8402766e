//! `chmod`, `chown` and `chgrp`.

use super::options::{Accepted, Options, parse};
use super::{complain, modes};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node};
use crate::shell::Shell;

const LONG: &[(&str, u8)] = &[
    ("recursive", b'R'),
    ("silent", b'f'),
    ("quiet", b'f'),
    ("no-dereference", b'h'),
    ("dereference", b'D'),
    ("changes", b'c'),
    ("verbose", b'v'),
    ("reference=", b'r'),
    ("from=", b'F'),
];

/// A path with all that is below it, links not followed, the path first.
fn below(shell: &mut Shell<'_>, path: &[u8]) -> Run<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut todo = vec![path.to_vec()];
    while let Some(path) = todo.pop() {
        shell.step()?;
        if shell.files.lookup(&path, Follow::No).is_ok_and(|node| node.is_dir()) {
            let names = shell.files.list(&path).unwrap_or_default();
            todo.extend(names.iter().rev().map(|name| [&path[..], b"/", name].concat()));
        }
        found.push(path);
    }
    Ok(found)
}

/// Whether an operand begins with `-` and is a mode all the same: `chmod -x`.
fn is_mode(arg: &[u8]) -> bool {
    arg.len() > 1
        && arg[0] == b'-'
        && arg[1..].iter().all(|letter| b"rwxXstugo,+=-".contains(letter))
        && !arg.starts_with(b"--")
}

pub(super) fn chmod(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut args = args.to_vec();
    if let Some(at) = args.iter().position(|arg| is_mode(arg)) {
        args.insert(at, b"--".to_vec());
    }
    let options = parse(shell, &args, &Accepted { letters: b"Rfcv", long: LONG, strict: false })?;
    let mut operands = options.operands.iter();
    let reference = match options.value(b'r') {
        Some(path) => match shell.stat(path, Follow::Yes) {
            Ok(node) => Some(format!("{:o}", node.mode).into_bytes()),
            Err(error) => {
                let message = [b"failed to get attributes of '", path, b"': ", error.text().as_bytes()].concat();
                return complain(shell, "chmod", &message);
            }
        },
        None => operands.next().cloned(),
    };
    let Some(mode) = reference else { return complain(shell, "chmod", b"missing operand") };
    if modes::parse(&mode, 0, false, 0).is_none() {
        return complain(shell, "chmod", &[b"invalid mode: '", &mode[..], b"'"].concat());
    }
    let umask = shell.state.umask;
    each(shell, "chmod", &options, operands.as_slice(), |shell, path, node, top| {
        if node.is_symlink() && !top {
            return Ok(());
        }
        let node = shell.stat(path, Follow::Yes)?;
        let wanted = modes::parse(&mode, node.mode, node.is_dir(), umask).unwrap_or(node.mode);
        if path == b"/dev/null" { Ok(()) } else { shell.files.set_mode(path, wanted) }
    })
}

/// Calls a function for each operand, and with `-R` for all below.
fn each(
    shell: &mut Shell<'_>,
    program: &str,
    options: &Options,
    operands: &[Vec<u8>],
    mut change: impl FnMut(&mut Shell<'_>, &[u8], &Node, bool) -> Result<(), Errno>,
) -> Run<u8> {
    let mut status = 0;
    for operand in operands {
        let path = shell.path(operand);
        let paths = if options.has(b'R') { below(shell, &path)? } else { vec![path.clone()] };
        for found in paths {
            let done = match shell.stat(&found, Follow::No) {
                Ok(_) if operand.is_empty() => Err(Errno::Enoent),
                Ok(node) => change(shell, &found, &node, found == path),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                status = 1;
                if !options.has(b'f') {
                    super::cannot(shell, program, "access", operand, error)?;
                }
            }
        }
    }
    Ok(status)
}

/// Who owns: what `user:group` names. `None` leaves it.
pub(super) type Owner = (Option<u32>, Option<u32>);

/// `user`, `user:group`, `:group` or `user:`, by the names of the caller's accounts. The error is the part that is unknown.
pub(super) fn owner(shell: &Shell<'_>, text: &[u8]) -> Result<Owner, Vec<u8>> {
    let at = text.iter().position(|byte| *byte == b':').or_else(|| {
        // The old form, where no user has a dot in the name.
        text.iter().position(|byte| *byte == b'.').filter(|_| user(shell, text).is_none())
    });
    let (name, group) = at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    let uid = if name.is_empty() { None } else { Some(user(shell, name).ok_or_else(|| text.to_vec())?) };
    let gid = match group {
        None => None,
        Some(b"") if uid.is_some() => {
            let field = crate::accounts::user_field(&*shell.files, name, 3);
            Some(field.and_then(|field| crate::accounts::number(&field)).ok_or_else(|| text.to_vec())?)
        }
        Some(b"") => None,
        Some(group) => Some(self::group(shell, group).ok_or_else(|| text.to_vec())?),
    };
    Ok((uid, gid))
}

pub(super) fn user(shell: &Shell<'_>, name: &[u8]) -> Option<u32> {
    shell.commands.user_id(&*shell.files, name).or_else(|| crate::accounts::number(name))
}

pub(super) fn group(shell: &Shell<'_>, name: &[u8]) -> Option<u32> {
    shell.commands.group_id(&*shell.files, name).or_else(|| crate::accounts::number(name))
}

pub(super) fn chown(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    change_owner(shell, "chown", args)
}

pub(super) fn chgrp(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    change_owner(shell, "chgrp", args)
}

fn change_owner(shell: &mut Shell<'_>, program: &'static str, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"RfhcvPH", long: LONG, strict: false })?;
    let mut operands = options.operands.iter();
    let wanted = match options.value(b'r') {
        Some(path) => match shell.stat(path, Follow::Yes) {
            Ok(node) if program == "chown" => (Some(node.uid), Some(node.gid)),
            Ok(node) => (None, Some(node.gid)),
            Err(error) => {
                let message = [b"failed to get attributes of '", path, b"': ", error.text().as_bytes()].concat();
                return complain(shell, program, &message);
            }
        },
        None => {
            let Some(text) = operands.next() else { return complain(shell, program, b"missing operand") };
            let found = if program == "chown" { owner(shell, text) } else { owner(shell, &[b":", &text[..]].concat()) };
            match found {
                Ok(owner) => owner,
                Err(_) => {
                    let what: &[u8] = if program == "chown" { b"invalid user: '" } else { b"invalid group: '" };
                    return complain(shell, program, &[what, text, b"'"].concat());
                }
            }
        }
    };
    let from = match options.value(b'F').map(|text| owner(shell, text)) {
        None => (None, None),
        Some(Ok(owner)) => owner,
        Some(Err(text)) => return complain(shell, program, &[b"invalid user: '", &text[..], b"'"].concat()),
    };
    // With -R, links that are met are not followed; chown -R changes them only with -h.
    let (recursive, links) = (options.has(b'R'), options.has(b'h'));
    each(shell, program, &options, operands.as_slice(), |shell, path, node, _| {
        if node.is_symlink() && recursive && !links {
            return Ok(());
        }
        set(shell, path, wanted, from, if links { Follow::No } else { Follow::Yes })
    })
}

/// Changes owner and group; set-id bits of a program are lost, as the kernel has it.
fn set(shell: &mut Shell<'_>, path: &[u8], wanted: Owner, from: Owner, follow: Follow) -> Result<(), Errno> {
    let node = shell.stat(path, follow)?;
    if from.0.is_some_and(|uid| uid != node.uid) || from.1.is_some_and(|gid| gid != node.gid) || path == b"/dev/null" {
        return Ok(());
    }
    let (uid, gid) = (wanted.0.unwrap_or(node.uid), wanted.1.unwrap_or(node.gid));
    shell.files.set_owner(path, uid, gid, follow)?;
    if node.is_file() && node.mode & 0o6000 != 0 {
        let group = if node.mode & 0o010 != 0 { 0o2000 } else { 0 };
        shell.files.set_mode(path, node.mode & !(0o4000 | group))?;
    }
    Ok(())
}
