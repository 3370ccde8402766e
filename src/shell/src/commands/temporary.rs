//! `mktemp` and `tempfile`: files with unique names. The names are not those of a real run, so the files must be removed before the script ends, and their
//! names be in no other.

use super::options::{Accepted, parse};
use super::{complain, complain_exactly};
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::random::made_up;
use crate::shell::Shell;

/// What a name is made of: what stands before and behind the digits, and how many these are.
struct Template {
    before: Vec<u8>,
    length: usize,
    behind: Vec<u8>,
}

pub(super) fn mktemp(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] =
        &[("directory", b'd'), ("quiet", b'q'), ("dry-run", b'u'), ("suffix=", b's'), ("tmpdir=", b'p')];
    let args: Vec<Vec<u8>> =
        args.iter().map(|arg| if arg == b"--tmpdir" { b"--tmpdir=".to_vec() } else { arg.clone() }).collect();
    let options = parse(shell, &args, &Accepted { letters: b"dqutp:", long, strict: false })?;
    if options.has(b'u') {
        return shell.unsupported(b"-u");
    }
    if options.operands.len() > 1 {
        return complain(shell, "mktemp", b"too many templates");
    }
    let template = options.operands.first().cloned();
    let dir = match options.value(b'p') {
        Some(b"") => Some(directory(shell)),
        Some(dir) => Some(dir.to_vec()),
        None if template.is_none() || options.has(b't') => Some(directory(shell)),
        None => None,
    };
    let mut template = template.unwrap_or_else(|| b"tmp.XXXXXXXXXX".to_vec());
    if let Some(dir) = dir {
        template = [&dir[..], b"/", &template].concat();
    }
    let suffix = options.value(b's').unwrap_or_default().to_vec();
    let end = template.iter().rposition(|byte| *byte == b'X').map_or(0, |at| at + 1);
    let length = template[..end].iter().rev().take_while(|byte| **byte == b'X').count();
    if length < 3 {
        return complain_exactly(shell, "mktemp", &[b"too few X's in template '", &template[..], b"'"].concat());
    }
    let (before, behind) = (template[..end - length].to_vec(), [&template[end..], &suffix].concat());
    let is_dir = options.has(b'd');
    match fresh(shell, &Template { before, length, behind }, is_dir, 0o600)? {
        Ok(()) => Ok(0),
        Err(error) => {
            let kind: &[u8] = if is_dir { b"directory" } else { b"file" };
            let message =
                [b"failed to create ", kind, b" via template '", &template, b"': ", error.text().as_bytes()].concat();
            complain_exactly(shell, "mktemp", &message)
        }
    }
}

/// tempfile(1), which Debian has not in every release.
pub(super) fn tempfile(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    if shell.find_program(b"tempfile")?.is_none() {
        shell.complain(b"tempfile: not found")?;
        return Ok(127);
    }
    let long: &[(&str, u8)] = &[("directory=", b'd'), ("mode=", b'm'), ("prefix=", b'p'), ("suffix=", b's')];
    let options = parse(shell, args, &Accepted { letters: b"d:m:p:s:", long, strict: false })?;
    let octal = |text: &[u8]| super::modes::parse(text, 0, false, 0).filter(|_| text.iter().all(u8::is_ascii_digit));
    let mode = options.value(b'm').map(octal);
    let (Some(mode), []) = (mode.unwrap_or(Some(0o600)), &options.operands[..]) else {
        return shell.unsupported(b"the mode or an operand of tempfile");
    };
    let dir = options.value(b'd').map_or_else(|| directory(shell), <[u8]>::to_vec);
    let before = [&dir[..], b"/", options.value(b'p').unwrap_or(b"file")].concat();
    let behind = options.value(b's').unwrap_or_default().to_vec();
    shell.err(b"WARNING: tempfile is deprecated; consider using mktemp instead.\n")?;
    match fresh(shell, &Template { before, length: 6, behind }, false, mode)? {
        Ok(()) => Ok(0),
        Err(error) => {
            shell.err(&[b"open: ", error.text().as_bytes(), b"\n"].concat())?;
            Ok(1)
        }
    }
}

fn directory(shell: &Shell<'_>) -> Vec<u8> {
    shell.state.get(b"TMPDIR").filter(|dir| !dir.is_empty()).unwrap_or(b"/tmp").to_vec()
}

/// Makes a file or directory that was not there, and writes its name.
fn fresh(shell: &mut Shell<'_>, template: &Template, is_dir: bool, mode: u16) -> Run<Result<(), Errno>> {
    let mut number = shell.temporaries.len();
    while let Some(text) = made_up(number, template.length) {
        shell.step()?;
        number += 1;
        let name = [&template.before[..], &text, &template.behind].concat();
        let path = shell.path(&name);
        if shell.files.lookup(&path, Follow::No).is_ok() {
            continue;
        }
        let made = match is_dir {
            true => shell.files.create_dir(&path, 0o700),
            false => shell.files.write(&path, Vec::new(), mode),
        };
        if made.is_ok() {
            shell.random.add(&text);
            shell.temporaries.insert(path);
            shell.out(&[&name[..], b"\n"].concat())?;
        }
        return Ok(made);
    }
    Ok(Err(Errno::Eexist))
}
