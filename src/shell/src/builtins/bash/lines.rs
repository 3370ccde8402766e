//! `mapfile` and `readarray`.

use super::{count, letters, make_target, open_descriptor};
use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::variables::Key;

/// `mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [array]`
pub(in crate::builtins) fn mapfile(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let Some((found, at)) = letters(shell, args, b"t", b"dnOsuCc")? else { return Ok(2) };
    let (mut delimiter, mut trims, mut fd) = (b'\n', false, 0);
    let (mut most, mut skipped, mut origin) = (0, 0, None);
    for (letter, value) in found {
        match letter {
            b't' => trims = true,
            b'd' => delimiter = value.first().copied().unwrap_or(0),
            b'u' => match open_descriptor(shell, value)? {
                Some(found) => fd = found,
                None => return Ok(1),
            },
            b'n' | b's' | b'O' => {
                let Some(number) = count(shell, value)? else { return Ok(1) };
                match letter {
                    b'n' => most = number,
                    b's' => skipped = number,
                    _ => origin = Some(number),
                }
            }
            letter => return shell.unsupported(&[b'-', letter]),
        }
    }
    let name = args.get(at).map_or(&b"MAPFILE"[..], Vec::as_slice);
    if !make_target(shell, name)? {
        return Ok(1);
    }
    let target = shell.target(name)?;
    match origin {
        None => shell.set_indexed(&target, Vec::new())?,
        Some(_) => shell.assign_compound(&target, Vec::new(), true)?,
    };
    let mut number = 0_u64;
    while most == 0 || number < most.saturating_add(skipped) {
        shell.step()?;
        let Some(mut line) = line(shell, fd, delimiter)? else { break };
        shell.ask(Question::Value(&line))?;
        if trims && line.last() == Some(&delimiter) {
            line.pop();
        }
        // The delimiter NUL ends the text of a line in any case.
        line.retain(|byte| *byte != 0);
        if number >= skipped {
            let index = origin.unwrap_or_default().saturating_add(number - skipped);
            shell.assign_key(&target, &Key::Index(index), &line, false)?;
        }
        number += 1;
    }
    Ok(0)
}

/// The next line with what ends it.
fn line(shell: &mut Shell<'_>, fd: u32, delimiter: u8) -> Run<Option<Vec<u8>>> {
    let mut line = Vec::new();
    while let Some(byte) = shell.read_byte(fd)? {
        if byte == 0 && delimiter != 0 {
            return shell.unsupported(b"a line with a NUL");
        }
        line.push(byte);
        if byte == delimiter {
            break;
        }
    }
    Ok((!line.is_empty()).then_some(line))
}
