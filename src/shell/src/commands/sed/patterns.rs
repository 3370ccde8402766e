//! Texts between delimiters in a script of `sed`, and the expressions in them.

use super::super::regex::{Expression, Syntax};
use super::script::Parser;
use crate::eval::Run;

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self, text: &[u8], ignore_case: bool) -> Run<Option<Expression>> {
        if text.is_empty() {
            return Ok(None);
        }
        let syntax = if self.extended { Syntax::Extended } else { Syntax::Basic };
        let text = self.unescaped_sets(text)?;
        Expression::new(self.shell, &text, syntax, ignore_case).map(Some)
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
                        // `s|a\|b|` has the plain character, which in a basic expression may be an operator behind its backslash.
                        if regex && !self.extended && b"(){}|+?".contains(&delimiter) {
                            text.push(delimiter);
                        } else if regex && b".*[]^$+?(){}|".contains(&delimiter) {
                            text.extend([b'\\', delimiter]);
                        } else {
                            text.push(delimiter);
                        }
                        self.at += 1;
                    }
                    Some(next) => {
                        text.extend([b'\\', next]);
                        self.at += 1;
                    }
                    None => return self.wrong("a backslash at its end"),
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
        self.wrong("a command that is not closed")
    }
}
