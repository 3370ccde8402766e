//! Literal operands of bash builtins that are refused before a script runs.

use super::shopt::{is_known, letter_name};
use crate::state::{may_set_shopt, shopt_name};

/// The operands of a builtin that are refused, for a message. `None` among `operands` is an operand that is not literal.
pub(crate) fn refused_operand(name: &[u8], operands: &[Option<&[u8]>]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let option = operands.first().copied().flatten().filter(|text| text.len() > 1 && text.starts_with(b"-"));
    match name {
        b"shopt" => refused_shopt(operands),
        b"set" => refused_set(operands),
        b"trap" => {
            let debug = operands.iter().skip(1).flatten().find(|condition| condition.eq_ignore_ascii_case(b"DEBUG"));
            debug.or(option.filter(|option| *option == b"-l").as_ref()).map(|operand| text(operand))
        }
        b"exec" => option.filter(|option| *option != b"--").map(text),
        b"declare" | b"typeset" | b"local" => {
            option.filter(|option| option.contains(&b'f') || option.contains(&b'I')).map(text)
        }
        b"type" => option.filter(|option| !matches!(*option, b"-t" | b"-p" | b"-P" | b"--")).map(text),
        b"hash" => option.filter(|option| !matches!(*option, b"-r" | b"--")).map(text),
        _ => None,
    }
}

fn refused_shopt(operands: &[Option<&[u8]>]) -> Option<String> {
    let on = match operands.first().copied().flatten().unwrap_or_default() {
        b"-s" => true,
        b"-u" => false,
        _ => return None,
    };
    let refused = |name: &&[u8]| shopt_name(name).is_some_and(|name| !may_set_shopt(name, on));
    let name = operands.iter().skip(1).flatten().find(|name| refused(name))?;
    Some(format!("{} {}", if on { "-s" } else { "-u" }, String::from_utf8_lossy(name)))
}

fn refused_set(operands: &[Option<&[u8]>]) -> Option<String> {
    if operands.is_empty() {
        return Some("without operands".to_owned());
    }
    let mut operands = operands.iter();
    while let Some(Some(operand)) = operands.next() {
        let on = match operand.first() {
            Some(b'-') if operand.starts_with(b"--") || operand.len() == 1 => return None,
            Some(b'-') => true,
            Some(b'+') => false,
            _ => return None,
        };
        for letter in &operand[1..] {
            let name = match (letter, letter_name(*letter)) {
                (b'o', _) => match operands.next() {
                    Some(name) => String::from_utf8_lossy((*name)?).into_owned(),
                    None => return None,
                },
                (_, Some(name)) => name.to_owned(),
                (_, None) => continue,
            };
            if is_known(name.as_bytes(), on) == Some(false) {
                return Some(format!("{}o {name}", if on { '-' } else { '+' }));
            }
        }
    }
    None
}
