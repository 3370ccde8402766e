//! `mkdir` and `touch`.

use super::options::{Accepted, parse};
use super::{Words, cannot, complain, modes};
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::shell::Shell;

pub(super) fn mkdir(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("parents", b'p'), ("mode=", b'm'), ("verbose", b'v')];
    // -Z labels for SELinux, which an image has not.
    let options = parse(shell, args, &Accepted { letters: b"pm:vZ", long, strict: false })?;
    if options.operands.is_empty() {
        return complain(shell, "mkdir", b"missing operand");
    }
    let umask = shell.state.umask;
    let mode = match options.value(b'm').map(modes::Mode::new) {
        None => None,
        Some(Some(mode)) => Some(mode.apply_with_bits(0o777, true, umask)),
        Some(None) => return complain(shell, "mkdir", b"invalid mode"),
    };
    let mut status = 0;
    for operand in &options.operands {
        let path = shell.path(operand);
        shell.note(&path, b"");
        let made = if operand.is_empty() { Err(Errno::Enoent) } else { make(shell, operand, &path, &options, mode)? };
        match made {
            Ok(()) => {}
            // The message names the first directory that cannot be made.
            Err(error) if options.has(b'p') && operand.contains(&b'/') => {
                let message = [b"cannot create a directory of '", &operand[..], b"': ", error.text().as_bytes()];
                status = complain(shell, "mkdir", &message.concat())?;
            }
            Err(error) => status = cannot(shell, "mkdir", "create directory", operand, error)?,
        }
    }
    Ok(status)
}

/// Makes one directory, with `-p` those above it, too; a mode is given as its bits and those that it decides.
fn make(
    shell: &mut Shell<'_>,
    operand: &[u8],
    path: &[u8],
    options: &super::options::Options,
    mode: Option<(u16, u16)>,
) -> Run<Result<(), Errno>> {
    // A directory with special bits is never writable for others before it has them. With -m the umask spares nothing.
    let first = match mode {
        None => 0o777 & !shell.state.umask,
        Some((mode, decided)) if (decided & 0o6000) | (mode & 0o1000) == 0 => mode,
        Some((mode, _)) => mode & !0o022,
    };
    let mut made = Vec::new();
    let done = match options.has(b'p') {
        true => {
            let between = (0o777 & !shell.state.umask) | 0o300;
            let asks = mode.is_some() || options.has(b'v');
            parents(shell, operand, first, between, asks.then_some(&mut made))
        }
        false => shell.files.create_dir(path, first).map(|()| made.push(operand.to_vec())),
    };
    // Of a path that fails, those above it may have been made.
    if options.has(b'v') {
        for dir in &made {
            let name = super::quoted(shell, dir)?;
            shell.out(&[b"mkdir: created directory ", &name[..], b"\n"].concat())?;
        }
    }
    if let Err(error) = done {
        return Ok(Err(error));
    }
    let is_new = made.last().is_some_and(|last| last == operand);
    // An existing directory keeps its mode.
    let Some((mode, decided)) = mode.filter(|_| is_new) else { return Ok(Ok(())) };
    Ok(shell.files.lookup(path, Follow::Yes).and_then(|node| match (node.mode ^ mode) & decided {
        0 => Ok(()),
        _ => shell.files.set_mode(path, mode | (node.mode & !decided)),
    }))
}

/// Makes a directory and those above it that are missing, these with the mode `between`. What was made is added to `made` if the caller
/// asks: a tree that is not complete may not know.
pub(super) fn parents(
    shell: &mut Shell<'_>,
    operand: &[u8],
    mode: u16,
    between: u16,
    mut made: Option<&mut Words>,
) -> Result<(), Errno> {
    let end = operand.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let mut at = 0;
    while at < end {
        at += operand[at..end].iter().position(|byte| *byte != b'/').unwrap_or(0);
        at += operand[at..end].iter().position(|byte| *byte == b'/').unwrap_or(end - at);
        let current = shell.path(&operand[..at]);
        let is_new = made.is_some() && shell.files.lookup(&current, Follow::Yes).is_err();
        match shell.files.ensure_dir(&current, if at == end { mode } else { between }) {
            Err(Errno::Eexist) if at < end && shell.exists(&current) => return Err(Errno::Enotdir),
            done => done?,
        }
        if let Some(made) = made.as_mut().filter(|_| is_new) {
            made.push(if at == end { operand.to_vec() } else { operand[..at].to_vec() });
        }
    }
    Ok(())
}

pub(super) fn touch(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("no-create", b'c'), ("reference=", b'r'), ("date=", b'd'), ("no-dereference", b'h')];
    let options = parse(shell, args, &Accepted { letters: b"acd:mfr:h", long, strict: false })?;
    if options.operands.is_empty() {
        return complain(shell, "touch", b"missing file operand");
    }
    if options.has(b'r') && options.has(b'd') {
        return shell.unsupported(b"a date that counts from a file");
    }
    let time = match options.value(b'r') {
        None => match options.value(b'd') {
            None => None,
            Some(text) => Some(seconds(shell, text)?),
        },
        Some(reference) => match shell.stat(reference, Follow::Yes) {
            Ok(node) => Some(node.mtime),
            Err(error) => {
                let message = [b"failed to get attributes of '", reference, b"': ", error.text().as_bytes()].concat();
                return complain(shell, "touch", &message);
            }
        },
    };
    let mut status = 0;
    for operand in &options.operands {
        let path = shell.path(operand);
        // The tree keeps no time of access.
        let keeps = options.has(b'a') && !options.has(b'm');
        let follow = if options.has(b'h') { Follow::No } else { Follow::Yes };
        let done = match shell.stat(operand, follow) {
            Ok(_) if keeps => Ok(()),
            Ok(_) => {
                let real = super::real_path(shell, &path).filter(|_| !options.has(b'h')).unwrap_or(path);
                if real == b"/dev/null" { Ok(()) } else { shell.files.set_mtime(&real, time) }
            }
            Err(Errno::Enoent) if options.has(b'c') => Ok(()),
            Err(Errno::Enoent) if operand.is_empty() => Err(Errno::Enoent),
            Err(Errno::Enoent) if options.has(b'h') => Err(Errno::Enoent),
            Err(Errno::Enoent) => match shell.write_path(operand, Vec::new())? {
                Ok(()) if time.is_some() && !keeps => {
                    let real = super::real_path(shell, &path).unwrap_or(path);
                    shell.files.set_mtime(&real, time)
                }
                done => done,
            },
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            status = match error {
                Errno::Eisdir => complain(shell, "touch", &[b"cannot touch '", &operand[..], b"'"].concat())?,
                _ => cannot(shell, "touch", "touch", operand, error)?,
            };
        }
    }
    Ok(status)
}

/// A date as `@SECONDS`, the one form that depends on no clock and no time zone.
fn seconds(shell: &Shell<'_>, text: &[u8]) -> Run<(i64, u32)> {
    let number = text.strip_prefix(b"@").and_then(crate::accounts::number);
    number.map_or_else(|| shell.unsupported(&[b"the date ", text].concat()), |number| Ok((number.into(), 0)))
}
