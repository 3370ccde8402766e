//! `s` and `y` of `sed`: what they replace by what.

use super::super::regex::Expression;
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
}

/// A piece of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Group(usize),
}

impl Parser<'_, '_> {
    pub(super) fn translation(&mut self) -> Run<Action> {
        let Some(delimiter) = self.peek() else { return self.wrong("a delimiter is missing") };
        self.at += 1;
        let (from, to) = (self.delimited(delimiter, false)?, self.delimited(delimiter, false)?);
        if from.contains(&b'\\') || to.contains(&b'\\') || from.len() != to.len() {
            return self.wrong("the sets of “y”");
        }
        let mut table = Box::new([0; 256]);
        (0..=u8::MAX).for_each(|byte| table[usize::from(byte)] = byte);
        from.iter().zip(&to).for_each(|(from, to)| table[usize::from(*from)] = *to);
        Ok(Action::Translate(table))
    }

    pub(super) fn substitution(&mut self) -> Run<Action> {
        let Some(delimiter) = self.peek().filter(|byte| !matches!(byte, b'\n' | b'\\')) else {
            return self.wrong("a delimiter is missing");
        };
        self.at += 1;
        let pattern = self.delimited(delimiter, true)?;
        let text = self.delimited(delimiter, false)?;
        let replacement = self.replacement(&text)?;
        let (mut global, mut print, mut ignore_case, mut number) = (false, false, false, 1);
        loop {
            match self.peek() {
                Some(b'g') => global = true,
                Some(b'p') => print = true,
                Some(b'i' | b'I') => ignore_case = true,
                Some(b'1'..=b'9') => {
                    number = self.number();
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        let expression = self.expression(&pattern, ignore_case)?;
        Ok(Action::Substitute(Box::new(Substitution { expression, replacement, global, number, print })))
    }

    fn replacement(&self, text: &[u8]) -> Run<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut plain = Vec::new();
        let mut bytes = text.iter().copied();
        while let Some(byte) = bytes.next() {
            let group = match byte {
                b'&' => 0,
                b'\\' => match bytes.next() {
                    Some(digit @ b'0'..=b'9') => usize::from(digit - b'0'),
                    Some(b'n') => {
                        plain.push(b'\n');
                        continue;
                    }
                    Some(b't') => {
                        plain.push(b'\t');
                        continue;
                    }
                    Some(letter) if letter.is_ascii_alphabetic() => return self.wrong("an escape in a replacement"),
                    Some(other) => {
                        plain.push(other);
                        continue;
                    }
                    None => break,
                },
                byte => {
                    plain.push(byte);
                    continue;
                }
            };
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Group(group));
        }
        pieces.push(Piece::Text(plain));
        Ok(pieces)
    }
}
