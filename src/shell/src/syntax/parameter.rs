//! `${…}` of bash, and the strings `$'…'`.

use super::reader::Reader;
use super::words::{End, Stop, is_name_byte};
use super::{Anchor, CaseChange, Operation, Parameter, Part, Subscript, SyntaxError};

impl Reader<'_> {
    /// What follows `${` in a script of bash.
    pub(super) fn braced_of_bash(&mut self, quoted: Option<End>, line: u32) -> Result<Parameter, SyntaxError> {
        match self.peek() {
            Some(b'#') => {
                if let Some(parameter) = self.length(line)? {
                    return Ok(parameter);
                }
            }
            Some(b'!') if self.source.get(self.at + 1).is_some_and(|byte| names_a_parameter(*byte)) => {
                self.take();
                return self.indirect(quoted, line);
            }
            _ => {}
        }
        self.parameter_with_operation(quoted, line)
    }

    /// `${#name}`, unless this is `$#` with an operation.
    fn length(&mut self, line: u32) -> Result<Option<Parameter>, SyntaxError> {
        let (start, start_line) = (self.at, self.line);
        self.take();
        let name = self.parameter_name();
        if !name.is_empty() {
            let index = self.index(&name)?;
            if self.take_if(b'}') {
                return Ok(Some(Parameter { index, ..Parameter::new(name, Operation::Length, line) }));
            }
        }
        (self.at, self.line) = (start, start_line);
        Ok(None)
    }

    /// What follows `${!`: names of variables, keys, or a parameter whose name is a value.
    fn indirect(&mut self, quoted: Option<End>, line: u32) -> Result<Parameter, SyntaxError> {
        let (start, start_line) = (self.at, self.line);
        let name = self.name();
        if !name.is_empty() {
            for (byte, star) in [(b'@', false), (b'*', true)] {
                if self.peek() == Some(byte) && self.followed_by(b'}') {
                    self.take();
                    self.take();
                    return Ok(Parameter::new(name, Operation::Names { star }, line));
                }
            }
            let index = self.index(&name)?;
            if matches!(index, Some(Subscript::At | Subscript::Star)) && self.take_if(b'}') {
                return Ok(Parameter { index, ..Parameter::new(name, Operation::Keys, line) });
            }
        }
        (self.at, self.line) = (start, start_line);
        let parameter = self.parameter_with_operation(quoted, line)?;
        Ok(Parameter { indirect: true, ..parameter })
    }

    fn parameter_with_operation(&mut self, quoted: Option<End>, line: u32) -> Result<Parameter, SyntaxError> {
        let name = self.parameter_name();
        let index = self.index(&name)?;
        let operation = if self.take_if(b'}') {
            if name.is_empty() { Operation::Bad } else { Operation::Value }
        } else if name.is_empty() {
            self.operand(quoted)?;
            Operation::Bad
        } else {
            self.operation(quoted)?
        };
        Ok(Parameter { index, ..Parameter::new(name, operation, line) })
    }

    /// `[…]` behind a name.
    fn index(&mut self, name: &[u8]) -> Result<Option<Subscript>, SyntaxError> {
        let is_variable = name.first().is_some_and(|byte| is_name_byte(*byte, true));
        if !is_variable || !self.take_if(b'[') {
            return Ok(None);
        }
        for (byte, subscript) in [(b'@', Subscript::At), (b'*', Subscript::Star)] {
            if self.peek() == Some(byte) && self.followed_by(b']') {
                self.take();
                self.take();
                return Ok(Some(subscript));
            }
        }
        let expression = self.deeper(|reader| reader.plain(Stop::Bracket))?;
        Ok(Some(Subscript::Expression(expression)))
    }

    /// What follows the name, up to the brace, which is taken.
    fn operation(&mut self, quoted: Option<End>) -> Result<Operation, SyntaxError> {
        let colon = self.take_if(b':');
        let operator = self.peek();
        Ok(match operator {
            Some(byte @ (b'-' | b'=' | b'?' | b'+')) => {
                self.take();
                let word = self.operand(quoted)?;
                match byte {
                    b'-' => Operation::Default(colon, word),
                    b'=' => Operation::Assign(colon, word),
                    b'?' => Operation::Error(colon, word),
                    _ => Operation::Alternative(colon, word),
                }
            }
            _ if colon => self.substring()?,
            Some(byte @ (b'%' | b'#')) => {
                self.take();
                let longest = self.take_if(byte);
                Operation::Trim { suffix: byte == b'%', longest, pattern: self.plain(Stop::Brace)? }
            }
            Some(b'/') => self.replacement()?,
            Some(byte @ (b'^' | b',' | b'~')) => {
                self.take();
                let change = match byte {
                    b'^' => CaseChange::Upper,
                    b',' => CaseChange::Lower,
                    _ => CaseChange::Toggle,
                };
                let all = self.take_if(byte);
                Operation::Case { change, all, pattern: self.plain(Stop::Brace)? }
            }
            Some(b'@') => {
                self.take();
                match self.operand(quoted)?.as_slice() {
                    [Part::Literal(letter)] if letter.len() == 1 && b"QEPAaULuKk".contains(&letter[0]) => {
                        Operation::Transform(letter[0])
                    }
                    _ => Operation::Bad,
                }
            }
            _ => {
                self.operand(quoted)?;
                Operation::Bad
            }
        })
    }

    fn substring(&mut self) -> Result<Operation, SyntaxError> {
        let offset = self.plain(Stop::Colon)?;
        let length = match self.take() {
            Some(b':') => Some(self.plain(Stop::Brace)?),
            _ => None,
        };
        Ok(Operation::Substring { offset, length })
    }

    fn replacement(&mut self) -> Result<Operation, SyntaxError> {
        self.take();
        let all = self.take_if(b'/');
        let anchor = match self.peek() {
            Some(b'#') if !all => Anchor::Prefix,
            Some(b'%') if !all => Anchor::Suffix,
            _ => Anchor::None,
        };
        if anchor != Anchor::None {
            self.take();
        }
        let mut pattern = Vec::new();
        // A slash that begins the pattern belongs to it.
        if all && self.take_if(b'/') {
            pattern.push(Part::Literal(b"/".to_vec()));
        }
        self.plain_into(Stop::Slash, &mut pattern)?;
        let replacement = match self.take() {
            Some(b'/') => self.plain(Stop::Brace)?,
            _ => Vec::new(),
        };
        Ok(Operation::Replace { pattern, replacement, anchor, all })
    }

    /// What follows `$'`, with its escapes replaced.
    pub(super) fn ansi_quoted(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let mut bytes = Vec::new();
        loop {
            match self.take_raw() {
                Some(b'\'') => {
                    // A NUL ends the string, as any string of the shell.
                    bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
                    return Ok(bytes);
                }
                Some(b'\\') => self.ansi_escape(&mut bytes)?,
                Some(byte) => bytes.push(byte),
                None => return Err(self.unexpected("unterminated quoted string")),
            }
        }
    }

    fn ansi_escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let Some(escape) = self.take_raw() else { return Err(self.unexpected("unterminated quoted string")) };
        match escape {
            b'a' => bytes.push(7),
            b'b' => bytes.push(8),
            b'e' | b'E' => bytes.push(27),
            b'f' => bytes.push(12),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(11),
            b'\\' | b'\'' | b'"' | b'?' => bytes.push(escape),
            b'0'..=b'7' => {
                let first = u32::from(escape - b'0');
                let value = self.digits(8, 2).map_or(first, |(more, count)| (first << (3 * count)) | more);
                bytes.push(value.to_le_bytes()[0]);
            }
            b'x' => match self.digits(16, 2) {
                Some((value, _)) => bytes.push(value.to_le_bytes()[0]),
                None => bytes.extend(b"\\x"),
            },
            b'u' | b'U' => {
                let found = self.digits(16, if escape == b'u' { 4 } else { 8 });
                // What other characters become depends on the locale.
                match found {
                    Some((value @ 0..=0x7f, _)) => bytes.push(value.to_le_bytes()[0]),
                    Some(_) => return Err(self.unsupported("a character beyond ASCII in $'\\u…'")),
                    None => bytes.extend([b'\\', escape]),
                }
            }
            b'c' => match self.take_raw() {
                Some(b'\\') if self.raw() == Some(b'\\') => {
                    self.take_raw();
                    bytes.push(0x1c);
                }
                Some(b'?') => bytes.push(0x7f),
                Some(control) => bytes.push(control.to_ascii_uppercase() & 0x1f),
                None => return Err(self.unexpected("unterminated quoted string")),
            },
            other => bytes.extend([b'\\', other]),
        }
        Ok(())
    }

    /// At most `most` digits: their value and number.
    fn digits(&mut self, radix: u32, most: u32) -> Option<(u32, u32)> {
        let (mut value, mut count) = (0_u32, 0);
        while count < most
            && let Some(digit) = self.raw().and_then(|byte| char::from(byte).to_digit(radix))
        {
            self.take_raw();
            value = value.wrapping_mul(radix).wrapping_add(digit);
            count += 1;
        }
        (count > 0).then_some((value, count))
    }
}

/// Whether a parameter begins with this byte, behind the `!` of `${!…}`.
fn names_a_parameter(byte: u8) -> bool {
    byte == b'@' || byte == b'*' || byte == b'#' || is_name_byte(byte, false)
}
