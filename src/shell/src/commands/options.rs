//! Options of programs, parsed as by GNU getopt_long(3), also after operands.

use crate::eval::Run;
use crate::shell::Shell;

/// What a program takes: letters, those with an argument followed by a colon, and long names with their letters. A long name with an
/// argument ends with `=`, and one with an argument behind a `=` alone with `?`.
pub(super) struct Accepted {
    pub(super) letters: &'static [u8],
    pub(super) long: &'static [(&'static str, u8)],
    /// Options end at the first operand.
    pub(super) strict: bool,
}

/// Options in their order, and operands.
#[derive(Debug, Default)]
pub(super) struct Options {
    given: Vec<(u8, Vec<u8>)>,
    pub(super) operands: Vec<Vec<u8>>,
}

impl Options {
    pub(super) fn has(&self, letter: u8) -> bool {
        self.given.iter().any(|(found, _)| *found == letter)
    }

    /// The argument of the last such option.
    pub(super) fn value(&self, letter: u8) -> Option<&[u8]> {
        self.given.iter().rev().find(|(found, _)| *found == letter).map(|(_, value)| value.as_slice())
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u8, &[u8])> {
        self.given.iter().map(|(letter, value)| (*letter, value.as_slice()))
    }
}

/// Divides the operands of a program.
pub(super) fn parse(shell: &Shell<'_>, args: &[Vec<u8>], accepted: &Accepted) -> Run<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_slice() {
            b"--" => {
                options.operands.extend(args.by_ref().cloned());
            }
            [b'-', b'-', long @ ..] => {
                let at = long.iter().position(|byte| *byte == b'=').unwrap_or(long.len());
                let (name, value) = (&long[..at], long.get(at + 1..));
                let found = accepted.long.iter().find(|(own, _)| own.trim_end_matches(['=', '?']).as_bytes() == name);
                let Some((own, letter)) = found else { return shell.unsupported(arg) };
                let value = match (own.ends_with('='), value) {
                    (true, Some(value)) => value.to_vec(),
                    (true, None) => match args.next() {
                        Some(value) => value.clone(),
                        None => return shell.unsupported(arg),
                    },
                    (false, None) => Vec::new(),
                    (false, Some(value)) if own.ends_with('?') => value.to_vec(),
                    (false, Some(_)) => return shell.unsupported(arg),
                };
                options.given.push((*letter, value));
            }
            [b'-', letters @ ..] if !letters.is_empty() => short(shell, letters, &mut args, accepted, &mut options)?,
            _ => {
                options.operands.push(arg.clone());
                if accepted.strict {
                    options.operands.extend(args.by_ref().cloned());
                }
            }
        }
    }
    Ok(options)
}

fn short(
    shell: &Shell<'_>,
    letters: &[u8],
    args: &mut std::slice::Iter<'_, Vec<u8>>,
    accepted: &Accepted,
    options: &mut Options,
) -> Run<()> {
    for (at, letter) in letters.iter().enumerate() {
        let found = accepted.letters.iter().position(|own| own == letter).filter(|_| *letter != b':');
        let Some(found) = found else { return shell.unsupported(&[b'-', *letter]) };
        if accepted.letters.get(found + 1) != Some(&b':') {
            options.given.push((*letter, Vec::new()));
            continue;
        }
        let rest = &letters[at + 1..];
        let value = match (rest.is_empty(), args.as_slice()) {
            (false, _) => rest.to_vec(),
            (true, [next, ..]) => {
                args.next();
                next.clone()
            }
            (true, []) => return shell.unsupported(&[b'-', *letter]),
        };
        options.given.push((*letter, value));
        break;
    }
    Ok(())
}
