//! Builtins of bash that differ from those of dash.

mod escapes;
mod format;
mod getopts;
mod lines;
mod read;
mod test;

pub(super) use format::printf;
pub(super) use getopts::getopts;
pub(super) use lines::mapfile;
pub(super) use read::read;
pub(crate) use test::{binary, unary};
pub(super) use test::{bracket, test};

use crate::eval::Run;
use crate::shell::Shell;
use crate::syntax::words::is_name;
use crate::variables::divide_reference;
use escapes::{Style, unescape};

/// `echo`: escapes are replaced with `-e`.
pub(super) fn echo(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let is_option =
        |arg: &&Vec<u8>| arg.len() > 1 && arg[0] == b'-' && arg[1..].iter().all(|letter| b"neE".contains(letter));
    let count = args.iter().take_while(is_option).count();
    let options: Vec<u8> = args[..count].iter().flat_map(|arg| arg[1..].to_vec()).collect();
    let text = args[count..].join(&b' ');
    let escapes = options.iter().rev().find(|letter| **letter != b'n') == Some(&b'e');
    let (mut text, ended) = if escapes { unescape(shell, &text, Style::Echo)? } else { (text, false) };
    if !options.contains(&b'n') && !ended {
        text.push(b'\n');
    }
    write(shell, "echo", &text)
}

/// Writes to standard output, which may be closed.
fn write(shell: &mut Shell<'_>, name: &str, text: &[u8]) -> Run<u8> {
    if !text.is_empty() && shell.descriptor(1).is_none() {
        shell.complain_exactly(&[name.as_bytes(), b": write error: Bad file descriptor"].concat())?;
        return Ok(1);
    }
    shell.out(text)?;
    Ok(0)
}

/// Letters with their arguments, and how many operands they take.
type Options<'a> = (Vec<(u8, &'a [u8])>, usize);

/// Options of one letter, some with an argument: what was given, and the place after them. `None` after an error.
fn letters<'a>(shell: &mut Shell<'_>, args: &'a [Vec<u8>], flags: &[u8], valued: &[u8]) -> Run<Option<Options<'a>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.len() > 1 && arg.starts_with(b"-")) {
        at += 1;
        if arg == b"--" {
            break;
        }
        for (place, letter) in arg.iter().enumerate().skip(1) {
            if flags.contains(letter) {
                found.push((*letter, &b""[..]));
                continue;
            }
            let rest = &arg[place + 1..];
            let value = if rest.is_empty() { args.get(at).map(Vec::as_slice) } else { Some(rest) };
            match value {
                Some(value) if valued.contains(letter) => {
                    at += usize::from(rest.is_empty());
                    found.push((*letter, value));
                    break;
                }
                _ => {
                    shell.complain(&[b"-", &[*letter][..], b": invalid option"].concat())?;
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some((found, at)))
}

/// A count that an option is given; `None` after an error.
fn count(shell: &mut Shell<'_>, text: &[u8]) -> Run<Option<u64>> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<u64>().ok());
    if number.is_none() {
        shell.complain(&[text, b": invalid number"].concat())?;
    }
    Ok(number)
}

/// A descriptor that is open; `None` after an error.
fn open_descriptor(shell: &mut Shell<'_>, text: &[u8]) -> Run<Option<u32>> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u32>().ok());
    match number.filter(|number| shell.descriptor(*number).is_some()) {
        Some(number) => Ok(Some(number)),
        None => {
            shell.complain(&[text, b": invalid file descriptor: Bad file descriptor"].concat())?;
            Ok(None)
        }
    }
}

/// Assigns to a variable or element that a builtin is given as text. The flag is false after an error.
fn assign_given(shell: &mut Shell<'_>, target: &[u8], value: &[u8]) -> Run<bool> {
    match divide_reference(target) {
        Some((name, None)) => shell.assign_text(name, value, false),
        Some((name, Some(subscript))) => {
            let subscript = shell.given_subscript(subscript)?;
            shell.assign_element(name, &subscript, value, false)
        }
        None => {
            shell.complain(&[b"`", target, b"': not a valid identifier"].concat())?;
            Ok(false)
        }
    }
}

/// Makes an indexed array of a name for `read -a` and `mapfile`; the flag is false after an error.
fn make_target(shell: &mut Shell<'_>, name: &[u8]) -> Run<bool> {
    if !is_name(name) {
        shell.complain(&[b"`", name, b"': not a valid identifier"].concat())?;
        return Ok(false);
    }
    let target = shell.target(name)?;
    if shell.is_associative(&target) {
        shell.complain(&[name, b": not an indexed array"].concat())?;
        return Ok(false);
    }
    shell.may_change(&target)
}
