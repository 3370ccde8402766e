//! Delimited texts in a script of `sed`, and the regular expressions in them.

use super::super::regex::{Expression, Syntax};
use super::script::Parser;
use crate::eval::{Run, Stop};

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self, text: &[u8], ignore_case: bool, lines: bool) -> Run<Option<Expression>> {
        if text.is_empty() {
            return if ignore_case || lines { self.invalid("modifiers of the last expression") } else { Ok(None) };
        }
        let syntax = if self.extended { Syntax::Extended } else { Syntax::Basic };
        let text = self.without_codes(&self.unescaped_sets(text)?);
        let expression = Expression::with_lines(self.shell, &text, syntax, ignore_case, lines)?;
        if expression.complains_of_class(self.shell, "sed")? {
            self.gives_up = true;
            return Err(Stop::Error);
        }
        Ok(Some(expression))
    }

    /// An expression with characters in place of codes such as `\x41`. What they mean there does not matter.
    fn without_codes(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let escape = text.get(at + 1).filter(|_| *byte == b'\\');
            match escape.and_then(|_| code(&text[at + 1..])) {
                Some((byte, len)) => {
                    out.push(byte);
                    at += len + 1;
                }
                None => {
                    out.push(*byte);
                    out.extend(escape);
                    at += 1 + usize::from(escape.is_some());
                }
            }
        }
        out
    }

    /// An expression without the escapes in its sets: sed replaces them before it is compiled, unlike grep, to which `[\t]` is two bytes.
    fn unescaped_sets(&self, text: &[u8]) -> Run<Vec<u8>> {
        let mut out = Vec::new();
        let mut bytes = text.iter().copied().peekable();
        let mut set = false;
        while let Some(byte) = bytes.next() {
            out.push(byte);
            match (set, byte, bytes.peek()) {
                (false, b'\\', _) => out.extend(bytes.next()),
                (false, b'[', _) => {
                    set = true;
                    for first in *b"^]" {
                        out.extend(bytes.next_if_eq(&first));
                    }
                }
                (true, b'[', Some(b':')) => {
                    out.extend(bytes.next());
                    while !out.ends_with(b":]") && bytes.peek().is_some() {
                        out.extend(bytes.next());
                    }
                }
                (true, b'\\', Some(b't' | b'n')) => {
                    out.pop();
                    out.push(if bytes.next() == Some(b't') { b'\t' } else { b'\n' });
                }
                (true, b'\\', Some(b'a' | b'c' | b'd' | b'f' | b'o' | b'r' | b'v' | b'x')) => {
                    return self.wrong("an escape in a set");
                }
                _ => set = set && byte != b']',
            }
        }
        Ok(out)
    }

    /// Text up to a delimiter, which is taken; one behind a backslash, or in a set of an expression, is part of it.
    pub(super) fn delimited(&mut self, delimiter: u8, regex: bool) -> Run<Vec<u8>> {
        let mut text = Vec::new();
        let mut set = false;
        while let Some(byte) = self.peek() {
            self.at += 1;
            if byte == b'\\' && !set {
                match self.peek() {
                    Some(next) if next == delimiter => {
                        // The character takes its plain meaning, which in an expression may be that of an operator.
                        if !regex && delimiter == b'&' {
                            text.push(b'\\');
                        }
                        text.push(delimiter);
                        self.at += 1;
                    }
                    Some(next) => {
                        text.extend([b'\\', next]);
                        self.at += 1;
                    }
                    None => return self.invalid("a command that is not closed"),
                }
                continue;
            }
            if byte == delimiter && !set {
                return Ok(text);
            }
            if regex && byte == b'[' && !set {
                set = true;
                text.push(byte);
                for first in [b'^', b']'] {
                    if self.peek() == Some(first) {
                        text.push(first);
                        self.at += 1;
                    }
                }
                continue;
            }
            if set && byte == b'[' && self.peek() == Some(b':') {
                let rest = &self.text[self.at..];
                if let Some(len) = rest.windows(2).position(|window| window == b":]") {
                    text.push(b'[');
                    text.extend_from_slice(&rest[..len + 2]);
                    self.at += len + 2;
                    continue;
                }
            }
            set = set && byte != b']';
            text.push(byte);
        }
        self.invalid("a command that is not closed")
    }
}

/// The byte that a code behind a backslash stands for, and the length of the code.
pub(super) fn code(text: &[u8]) -> Option<(u8, usize)> {
    let number = |radix: u32, most: usize| {
        let digits = text[1..].iter().take(most).take_while(|digit| char::from(**digit).is_digit(radix)).count();
        let digits = std::str::from_utf8(&text[1..=digits]).ok().filter(|digits| !digits.is_empty())?;
        let value = u32::from_str_radix(digits, radix).ok()?;
        Some((value.to_le_bytes()[0], 1 + digits.len()))
    };
    match text.first()? {
        b'a' => Some((7, 1)),
        b'f' => Some((12, 1)),
        b'r' => Some((b'\r', 1)),
        b'v' => Some((11, 1)),
        b'x' => number(16, 2),
        b'o' => number(8, 3),
        b'd' => number(10, 3),
        b'c' => {
            let letter = text.get(1).filter(|letter| letter.is_ascii() && **letter != b'\\')?;
            Some((letter.to_ascii_uppercase() ^ 0x40, 2))
        }
        _ => None,
    }
}
