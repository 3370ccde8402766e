//! `getopts` of bash (getopt.c): unlike in dash, `set` and `shift` do not restart it, and options end if `OPTIND` is beyond the last argument.

use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::state::Getopts;
use crate::syntax::words::is_name;

/// The next option.
enum Found {
    End,
    Invalid(u8),
    /// Its argument is missing.
    Lacking(u8),
    Option(u8, Option<Vec<u8>>),
}

/// `getopts`
pub(in crate::builtins) fn getopts(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let args = if args.first().is_some_and(|first| first == b"--") { &args[1..] } else { args };
    let [letters, name, rest @ ..] = args else {
        shell.complain(b"getopts: usage: getopts optstring name [arg ...]")?;
        return Ok(2);
    };
    if letters.starts_with(b"-") && letters.len() > 1 {
        shell.complain(&[b"getopts: ", &letters[..2], b": invalid option"].concat())?;
        return Ok(2);
    }
    let is_fixed = |name: &[u8]| shell.state.variables.get(name).is_some_and(|found| found.readonly);
    if is_fixed(b"OPTIND") || is_fixed(b"OPTARG") || is_fixed(name) {
        return shell.unsupported(b"getopts with read-only variables");
    }
    let params = if rest.is_empty() { shell.state.params.clone() } else { rest.to_vec().into() };
    shell.ask(Question::Value(letters))?;
    let silent = letters.starts_with(b":");
    let mut place = shell.state.getopts;
    let found = next(&mut place, letters.strip_prefix(b":").unwrap_or(letters), &params);
    shell.assign_text(b"OPTIND", place.index.to_string().as_bytes(), false)?;
    if let Found::Invalid(letter) = found
        && !letter.is_ascii()
    {
        params.iter().try_for_each(|param| shell.ask(Question::Value(param)))?;
    }
    // The assignment would start over at the beginning of the argument.
    shell.state.getopts = place;
    let (letter, value) = match found {
        Found::End => (None, None),
        Found::Invalid(letter) if silent => (Some(b'?'), Some(vec![letter])),
        Found::Lacking(letter) if silent => (Some(b':'), Some(vec![letter])),
        Found::Invalid(letter) => (reported(shell, b"illegal option -- ", letter)?, None),
        Found::Lacking(letter) => (reported(shell, b"option requires an argument -- ", letter)?, None),
        Found::Option(letter, value) => {
            // Without an argument `OPTARG` is declared, but has no value.
            shell.change(b"OPTARG", value, false)?;
            return named(shell, name, Some(letter));
        }
    };
    match value {
        Some(value) => drop(shell.assign_text(b"OPTARG", &value, false)?),
        None => drop(shell.unset_variable(b"OPTARG")?),
    }
    named(shell, name, letter)
}

fn reported(shell: &mut Shell<'_>, message: &[u8], letter: u8) -> Run<Option<u8>> {
    shell.complain(&[message, &[letter]].concat())?;
    Ok(Some(b'?'))
}

fn named(shell: &mut Shell<'_>, name: &[u8], letter: Option<u8>) -> Run<u8> {
    if !is_name(name) {
        shell.complain(&[b"getopts: `", name, b"': not a valid identifier"].concat())?;
        return Ok(1);
    }
    shell.assign_text(name, &[letter.unwrap_or(b'?')], false)?;
    Ok(u8::from(letter.is_none()))
}

/// `sh_getopt`: `place.index` is `OPTIND`, 0 at the beginning; `place.offset` is where the rest of the argument `place.current` begins, 0 if
/// there is none.
fn next(place: &mut Getopts, letters: &[u8], params: &[Vec<u8>]) -> Found {
    let argument = |index: usize| params.get(index.wrapping_sub(1));
    if place.index > params.len() {
        place.index = params.len() + 1;
        return Found::End;
    }
    if place.index == 0 {
        *place = Getopts { index: 1, ..Getopts::default() };
    }
    let begun = argument(place.current).filter(|arg| place.offset > 0 && place.offset < arg.len());
    let arg = match begun {
        Some(arg) => arg,
        None => match argument(place.index) {
            Some(arg) if arg == b"--" => {
                place.index += 1;
                return Found::End;
            }
            Some(arg) if arg.len() > 1 && arg.starts_with(b"-") => {
                (place.current, place.offset) = (place.index, 1);
                arg
            }
            _ => return Found::End,
        },
    };
    let letter = arg[place.offset];
    place.offset += 1;
    if place.offset == arg.len() {
        place.index += 1;
        place.offset = 0;
    }
    let Some(at) = letters.iter().position(|found| *found == letter && letter != b':') else {
        return Found::Invalid(letter);
    };
    if letters.get(at + 1) != Some(&b':') {
        return Found::Option(letter, None);
    }
    let rest = std::mem::take(&mut place.offset);
    place.index += 1;
    if rest > 0 {
        return Found::Option(letter, Some(arg[rest..].to_vec()));
    }
    match argument(place.index - 1) {
        // An empty argument counts as missing only after an invalid option.
        Some(value) => Found::Option(letter, Some(value.clone())),
        None => {
            place.index -= 1;
            Found::Lacking(letter)
        }
    }
}
