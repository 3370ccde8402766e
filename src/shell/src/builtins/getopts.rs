//! `getopts`.

use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::state::Getopts;
use crate::syntax::words::is_name;

/// `getopts`
pub(super) fn getopts(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let [letters, name, rest @ ..] = args else {
        return Err(shell.shell_error(b"getopts: Usage: getopts optstring var [arg...]"));
    };
    let params = if rest.is_empty() { shell.state.params.to_vec() } else { rest.to_vec() };
    if shell.state.getopts.index > params.len() {
        shell.state.getopts = Getopts::default();
    }
    let mut place = shell.state.getopts;
    shell.ask(Question::Value(letters))?;
    let letter = next(shell, letters, &params, &mut place)?;
    shell.set(b"OPTIND", (place.index + 1).to_string().as_bytes())?;
    // The assignment would begin anew with the argument.
    shell.state.getopts = place;
    if !is_name(name) {
        return Err(shell.shell_error(&[b"getopts: ", &name[..], b": bad variable name"].concat()));
    }
    shell.set(name, &[letter.unwrap_or(b'?')])?;
    Ok(u8::from(letter.is_none()))
}

/// The next option, `?` and `:` where something is wrong with it; `None` at the end. `place` is behind it afterwards.
fn next(shell: &mut Shell<'_>, letters: &[u8], params: &[Vec<u8>], place: &mut Getopts) -> Run<Option<u8>> {
    let silent = letters.starts_with(b":");
    let letters = letters.strip_prefix(b":").unwrap_or(letters);
    let begun = place.index.checked_sub(1).and_then(|at| params.get(at)).filter(|_| place.offset > 0);
    let (arg, offset) = match begun.filter(|arg| arg.len() > place.offset) {
        Some(arg) => (arg.clone(), place.offset),
        None => {
            place.offset = 0;
            match params.get(place.index).filter(|arg| arg.len() > 1 && arg.starts_with(b"-")) {
                None => return Ok(None),
                Some(arg) => {
                    place.index += 1;
                    if arg == b"--" {
                        return Ok(None);
                    }
                    (arg.clone(), 1)
                }
            }
        }
    };
    let letter = arg[offset];
    if !letter.is_ascii() {
        shell.ask(Question::Value(&arg))?;
    }
    place.offset = offset + 1;
    let Some(at) = letters.iter().position(|found| *found == letter && letter != b':') else {
        return wrong(shell, letter, b'?', silent, b"Illegal option -");
    };
    if letters.get(at + 1) != Some(&b':') {
        shell.change(b"OPTARG", Some(Vec::new()), false)?;
        return Ok(Some(letter));
    }
    place.offset = 0;
    let value = match arg.get(offset + 1..).filter(|rest| !rest.is_empty()) {
        Some(rest) => rest.to_vec(),
        None => match params.get(place.index) {
            Some(next) => {
                place.index += 1;
                next.clone()
            }
            None => return wrong(shell, letter, b':', silent, b"No arg for -"),
        },
    };
    shell.change(b"OPTARG", Some(value), false)?;
    Ok(Some(letter))
}

/// Reports an invalid option: in the variables in silent mode, else on standard error.
fn wrong(shell: &mut Shell<'_>, letter: u8, found: u8, silent: bool, message: &[u8]) -> Run<Option<u8>> {
    if silent {
        shell.change(b"OPTARG", Some(vec![letter]), false)?;
        return Ok(Some(found));
    }
    let end: &[u8] = if found == b':' { b" option\n" } else { b"\n" };
    shell.err(&[message, &[letter], end].concat())?;
    shell.change(b"OPTARG", None, false)?;
    Ok(Some(b'?'))
}
