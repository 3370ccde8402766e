//! `getopt` of util-linux: reorders the words of a call into options and operands, quoted for the shell.

use super::complain;
use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::shell::Shell;

/// Whether an option has a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Never,
    Needed,
    /// Only in the same word.
    Optional,
}

struct Getopt {
    name: Vec<u8>,
    letters: Vec<(u8, Value)>,
    long: Vec<(Vec<u8>, Value)>,
    /// Long options may begin with one dash.
    alternative: bool,
    /// The first operand ends the options.
    strict: bool,
    out: Vec<u8>,
    complaints: Vec<Vec<u8>>,
}

const ACCEPTED: Accepted = Accepted {
    letters: b"al:n:o:q",
    long: &[
        ("alternative", b'a'),
        ("longoptions=", b'l'),
        ("long=", b'l'),
        ("name=", b'n'),
        ("options=", b'o'),
        ("quiet", b'q'),
    ],
    strict: true,
};

pub(super) fn getopt(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let own = args.iter().position(|arg| arg == b"--");
    let Some((own, words)) = own.and_then(|at| Some((args.get(..at)?, args.get(at + 1..)?))) else {
        return shell.unsupported(b"getopt without --");
    };
    let options = parse(shell, own, &ACCEPTED)?;
    let (letters, true) = (options.value(b'o').unwrap_or_default(), options.operands.is_empty()) else {
        return shell.unsupported(b"getopt with operands in front of --");
    };
    let (strict, letters) = (letters.starts_with(b"+"), letters.strip_prefix(b"+").unwrap_or(letters));
    if letters.starts_with(b"-") || letters.starts_with(b":") {
        return shell.unsupported(letters);
    }
    let names = options
        .iter()
        .filter(|(letter, _)| *letter == b'l')
        .flat_map(|(_, names)| names.split(|byte| b", \t\n".contains(byte)));
    let mut getopt = Getopt {
        name: options.value(b'n').unwrap_or(b"getopt").to_vec(),
        letters: self::letters(letters),
        long: names.filter(|name| !name.is_empty()).map(long).collect(),
        alternative: options.has(b'a'),
        strict,
        out: Vec::new(),
        complaints: Vec::new(),
    };
    getopt.divide(words);
    let name = String::from_utf8_lossy(&getopt.name).into_owned();
    for complaint in getopt.complaints.iter().filter(|_| !options.has(b'q')) {
        complain(shell, &name, complaint)?;
    }
    shell.out(&[&getopt.out[..], b"\n"].concat())?;
    Ok(u8::from(!getopt.complaints.is_empty()))
}

fn letters(mut text: &[u8]) -> Vec<(u8, Value)> {
    let mut found = Vec::new();
    while let Some((letter, rest)) = text.split_first() {
        let colons = rest.iter().take_while(|byte| **byte == b':').count().min(2);
        found.push((*letter, value(colons)));
        text = &rest[colons..];
    }
    found
}

fn long(text: &[u8]) -> (Vec<u8>, Value) {
    let colons = text.iter().rev().take_while(|byte| **byte == b':').count().min(2);
    (text[..text.len() - colons].to_vec(), value(colons))
}

fn value(colons: usize) -> Value {
    match colons {
        0 => Value::Never,
        1 => Value::Needed,
        _ => Value::Optional,
    }
}

impl Getopt {
    fn divide(&mut self, words: &[Vec<u8>]) {
        let mut operands: Vec<&[u8]> = Vec::new();
        let mut words = words.iter().map(Vec::as_slice);
        while let Some(word) = words.next() {
            match word {
                b"--" => operands.extend(words.by_ref()),
                [b'-', b'-', name @ ..] => self.long(b"--", name, &mut words),
                [b'-', rest @ ..] if !rest.is_empty() => self.dash(rest, &mut words),
                _ => {
                    operands.push(word);
                    if self.strict {
                        operands.extend(words.by_ref());
                    }
                }
            }
        }
        self.out.extend(b" --");
        for operand in operands {
            self.quote(operand);
        }
    }

    /// A word with one dash: letters, or with `--alternative` a long option.
    fn dash<'w>(&mut self, word: &'w [u8], words: &mut impl Iterator<Item = &'w [u8]>) {
        let known = self.letters.iter().any(|(letter, _)| word.first() == Some(letter));
        if self.alternative && (word.len() > 1 || !known) && (!known || !self.named(word).is_empty()) {
            return self.long(b"-", word, words);
        }
        for (at, letter) in word.iter().enumerate() {
            let Some((_, value)) = self.letters.iter().find(|(own, _)| own == letter).copied() else {
                self.complaints.push([&b"invalid option -- '"[..], &[*letter], b"'"].concat());
                continue;
            };
            let rest = &word[at + 1..];
            let given = match value {
                Value::Never => {
                    self.out.extend([b' ', b'-', *letter]);
                    continue;
                }
                Value::Needed if rest.is_empty() => words.next(),
                _ => Some(rest),
            };
            match given {
                Some(given) => {
                    self.out.extend([b' ', b'-', *letter]);
                    self.quote(given);
                }
                None => self.complaints.push([&b"option requires an argument -- '"[..], &[*letter], b"'"].concat()),
            }
            return;
        }
    }

    /// The long options that a word may mean: the one of that name, else all that begin with it.
    fn named(&self, word: &[u8]) -> Vec<(Vec<u8>, Value)> {
        let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
        match self.long.iter().find(|(own, _)| own == name) {
            Some(found) => vec![found.clone()],
            None => self.long.iter().filter(|(own, _)| own.starts_with(name)).cloned().collect(),
        }
    }

    fn long<'w>(&mut self, dashes: &[u8], word: &'w [u8], words: &mut impl Iterator<Item = &'w [u8]>) {
        let at = word.iter().position(|byte| *byte == b'=');
        let given = at.and_then(|at| word.get(at + 1..));
        let written = [dashes, &word[..at.unwrap_or(word.len())]].concat();
        let found = self.named(word);
        let mut complain = |parts: &[&[u8]]| self.complaints.push(parts.concat());
        let (name, value) = match &found[..] {
            [(name, value)] => (name, *value),
            [] => return complain(&[b"unrecognized option '", &written, b"'"]),
            _ => {
                let names: Vec<u8> = found.iter().flat_map(|(name, _)| [b" '", dashes, name, b"'"].concat()).collect();
                return complain(&[b"option '", &written, b"' is ambiguous; possibilities:", &names]);
            }
        };
        let option = [&b" --"[..], name].concat();
        let text = match (value, given) {
            (Value::Never, None) => {
                self.out.extend(option);
                return;
            }
            (Value::Never, Some(_)) => return complain(&[b"option '", dashes, name, b"' doesn't allow an argument"]),
            (Value::Needed, None) => words.next(),
            (_, given) => Some(given.unwrap_or_default()),
        };
        match text {
            Some(text) => {
                self.out.extend(option);
                self.quote(text);
            }
            None => complain(&[b"option '", dashes, name, b"' requires an argument"]),
        }
    }

    fn quote(&mut self, word: &[u8]) {
        self.out.extend(b" '");
        for byte in word {
            match byte {
                b'\'' => self.out.extend(b"'\\''"),
                byte => self.out.push(*byte),
            }
        }
        self.out.push(b'\'');
    }
}
