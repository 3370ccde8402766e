//! `getopts`.

use crate::eval::Run;
use crate::shell::Shell;
use crate::state::Getopts;

/// `getopts`
pub(super) fn getopts(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let [letters, name, rest @ ..] = args else {
        return Err(shell.shell_error(b"getopts: Usage: getopts optstring var [arg...]"));
    };
    let params = if rest.is_empty() { shell.state.params.to_vec() } else { rest.to_vec() };
    let mut place = shell.state.getopts;
    let given = shell.state.get(b"OPTIND").and_then(crate::accounts::number).unwrap_or(1);
    place.index = place.index.max(usize::try_from(given).unwrap_or(1).saturating_sub(1));
    let silent = letters.starts_with(b":");
    let letters = letters.strip_prefix(b":").unwrap_or(letters);
    if place.offset == 0 {
        match params.get(place.index) {
            Some(arg) if arg == b"--" => {
                place.index += 1;
                return end(shell, name, place);
            }
            Some(arg) if arg.len() > 1 && arg.starts_with(b"-") => place.offset = 1,
            _ => return end(shell, name, place),
        }
    }
    let arg = params.get(place.index).cloned().unwrap_or_default();
    let letter = arg.get(place.offset).copied().unwrap_or(b'?');
    place.offset += 1;
    let rest = arg.get(place.offset..).unwrap_or_default().to_vec();
    if rest.is_empty() {
        place = Getopts { index: place.index + 1, offset: 0 };
    }
    let known = letters.iter().position(|found| *found == letter).filter(|_| letter != b':');
    let (mut value, mut optarg) = (vec![letter], None);
    match known {
        None => {
            value = b"?".to_vec();
            if silent {
                optarg = Some(vec![letter]);
            } else {
                shell.err(&[b"Illegal option -", &[letter][..], b"\n"].concat())?;
            }
        }
        Some(at) if letters.get(at + 1) == Some(&b':') => {
            if !rest.is_empty() {
                optarg = Some(rest);
                place = Getopts { index: place.index + 1, offset: 0 };
            } else if let Some(next) = params.get(place.index) {
                optarg = Some(next.clone());
                place.index += 1;
            } else if silent {
                (value, optarg) = (b":".to_vec(), Some(vec![letter]));
            } else {
                shell.err(&[b"No arg for -", &[letter][..], b" option\n"].concat())?;
                value = b"?".to_vec();
            }
        }
        Some(_) => {}
    }
    shell.change(b"OPTARG", optarg, false)?;
    finish(shell, name, &value, place)?;
    Ok(0)
}

fn end(shell: &mut Shell<'_>, name: &[u8], place: Getopts) -> Run<u8> {
    finish(shell, name, b"?", place)?;
    Ok(1)
}

fn finish(shell: &mut Shell<'_>, name: &[u8], value: &[u8], place: Getopts) -> Run<()> {
    shell.set(b"OPTIND", (place.index + 1).to_string().as_bytes())?;
    shell.set(name, value)?;
    shell.state.getopts = place;
    Ok(())
}
