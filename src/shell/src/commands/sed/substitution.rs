//! `s` and `y` of `sed`: patterns and replacements.

use super::super::regex::Expression;
use super::patterns::code;
use super::script::{Action, Parser};
use crate::eval::Run;

/// `s/…/…/`
#[derive(Debug, Clone)]
pub(super) struct Substitution {
    pub(super) expression: Option<Expression>,
    pub(super) replacement: Vec<Piece>,
    pub(super) global: bool,
    pub(super) number: usize,
    pub(super) print: bool,
    /// The file of the flag `w`.
    pub(super) file: Option<Vec<u8>>,
}

/// A piece of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Group(usize),
    /// `\U`, `\L`, `\E` until the next one.
    Case(Option<Case>),
    /// `\u`, `\l` for the next character.
    Next(Case),
}

/// The case of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
}

/// Flags behind `s/…/…/`.
#[derive(Default)]
struct Flags {
    global: bool,
    print: bool,
    ignore_case: bool,
    lines: bool,
    number: Option<usize>,
    file: Option<Vec<u8>>,
}

impl Parser<'_, '_> {
    pub(super) fn translation(&mut self) -> Run<Action> {
        let delimiter = self.delimiter()?;
        let (from, to) = (self.delimited(delimiter, false)?, self.delimited(delimiter, false)?);
        let (from, to) = (self.members(&from)?, self.members(&to)?);
        if from.len() != to.len() {
            return self.invalid("sets of “y” with different lengths");
        }
        let mut table = Box::new([0; 256]);
        (0..=u8::MAX).for_each(|byte| table[usize::from(byte)] = byte);
        // The first of two equal characters counts.
        from.iter().zip(&to).rev().for_each(|(from, to)| table[usize::from(*from)] = *to);
        Ok(Action::Translate(table))
    }

    /// The characters of a set of `y`.
    fn members(&self, text: &[u8]) -> Run<Vec<u8>> {
        let mut out = Vec::new();
        let mut bytes = text.iter().copied();
        while let Some(byte) = bytes.next() {
            out.push(match byte {
                b'\\' => match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    Some(b'\\') | None => b'\\',
                    Some(_) => return self.wrong("an escape in a set of “y”"),
                },
                byte => byte,
            });
        }
        Ok(out)
    }

    fn delimiter(&mut self) -> Run<u8> {
        let Some(delimiter) = self.peek().filter(|byte| !matches!(byte, b'\n' | b'\\')) else {
            return self.invalid("a delimiter is missing");
        };
        self.at += 1;
        Ok(delimiter)
    }

    pub(super) fn substitution(&mut self) -> Run<Action> {
        let delimiter = self.delimiter()?;
        let pattern = self.delimited(delimiter, true)?;
        let text = self.delimited(delimiter, false)?;
        let replacement = self.replacement(&text)?;
        let flags = self.flags()?;
        let expression = self.expression(&pattern, flags.ignore_case, flags.lines)?;
        let most = replacement.iter().map(|piece| if let Piece::Group(group) = piece { *group } else { 0 }).max();
        if expression.as_ref().is_some_and(|expression| most.is_some_and(|most| most > expression.groups())) {
            return self.invalid("a reference to a group that is missing");
        }
        let Flags { global, print, number, file, .. } = flags;
        let number = number.unwrap_or(1);
        Ok(Action::Substitute(Box::new(Substitution { expression, replacement, global, number, print, file })))
    }

    fn flags(&mut self) -> Run<Flags> {
        let mut flags = Flags::default();
        while let Some(letter) = self.peek() {
            let twice = match letter {
                b'g' => std::mem::replace(&mut flags.global, true),
                b'p' => std::mem::replace(&mut flags.print, true),
                b'0'..=b'9' => {
                    let number = self.number();
                    if number == 0 || flags.number.replace(number).is_some() {
                        return self.invalid("the number of a match");
                    }
                    continue;
                }
                b'i' | b'I' => {
                    flags.ignore_case = true;
                    false
                }
                b'm' | b'M' => {
                    flags.lines = true;
                    false
                }
                b'w' => {
                    self.at += 1;
                    flags.file = Some(self.file()?);
                    return Ok(flags);
                }
                b'e' => return self.wrong("the flag “e”"),
                _ => return Ok(flags),
            };
            if twice {
                return self.invalid("a duplicate flag");
            }
            self.at += 1;
        }
        Ok(flags)
    }

    fn replacement(&self, text: &[u8]) -> Run<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut plain = Vec::new();
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            at += 1;
            let piece = match (*byte, text.get(at)) {
                (b'&', _) => Piece::Group(0),
                (b'\\', Some(escaped)) => {
                    at += 1;
                    match (escaped, code(&text[at - 1..])) {
                        (b'0'..=b'9', _) => Piece::Group(usize::from(escaped - b'0')),
                        (b'U', _) => Piece::Case(Some(Case::Upper)),
                        (b'L', _) => Piece::Case(Some(Case::Lower)),
                        (b'E', _) => Piece::Case(None),
                        (b'u', _) => Piece::Next(Case::Upper),
                        (b'l', _) => Piece::Next(Case::Lower),
                        (_, Some((byte, len))) => {
                            plain.push(byte);
                            at += len - 1;
                            continue;
                        }
                        (escaped, None) => {
                            plain.push(match escaped {
                                b'n' => b'\n',
                                b't' => b'\t',
                                other => *other,
                            });
                            continue;
                        }
                    }
                }
                (byte, _) => {
                    plain.push(byte);
                    continue;
                }
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            let adjacent = matches!(pieces.last(), Some(Piece::Next(_)));
            if adjacent && matches!(piece, Piece::Case(_) | Piece::Next(_)) {
                return self.wrong("two consecutive changes of case");
            }
            pieces.push(piece);
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(pieces)
    }
}

impl Substitution {
    /// The replacement of one match, whose groups `group` gives.
    pub(super) fn replaced<'l>(&self, group: impl Fn(usize) -> &'l [u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let (mut case, mut next) = (None, None);
        for piece in &self.replacement {
            let text: &[u8] = match piece {
                Piece::Text(text) => text,
                Piece::Group(number) => group(*number),
                Piece::Case(found) => {
                    case = *found;
                    continue;
                }
                Piece::Next(found) => {
                    next = Some(*found);
                    continue;
                }
            };
            for byte in text {
                out.push(match next.take().or(case) {
                    Some(Case::Upper) => byte.to_ascii_uppercase(),
                    Some(Case::Lower) => byte.to_ascii_lowercase(),
                    None => *byte,
                });
            }
        }
        out
    }
}
