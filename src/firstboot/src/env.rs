//! Files with variables: bytes in, names and values out, and back. They are read as a shell would read them, but nothing
//! is evaluated: `$` and the backtick are characters like others.
//!
//! A line is blank, a comment that begins with `#`, or `NAME=value`, perhaps after `export`; a comment may follow it after a
//! blank. A value is made of parts without anything between them: `'…'` as it is; `"…"`, in which a backslash before `"`,
//! `\`, `$`, the backtick or the end of a line goes away, the latter with the line's end; and bare characters, in which any
//! backslash does. Quotes may span lines. Where a name comes twice, the last value counts.
//!
//! Stricter than a shell: what would be an operator, a second word, a list or a home directory there (bare `;&|<>()`, text
//! after a blank, `~` at the beginning or after a colon) is an error, as are bare control characters, NUL, what is not
//! UTF-8, values above 128 KiB (the kernel takes no longer ones in an environment) and files above 1 MiB. One thing is read
//! otherwise: a carriage return before the end of a line is part of that end, not of the value, unless it is in quotes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Error;

/// The largest file with variables, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// The longest value, in bytes: `MAX_ARG_STRLEN` of linux/binfmts.h.
const MAX_VALUE_BYTES: usize = 128 << 10;

/// The variables of a file. `path` is for messages.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let text = text(path, bytes)?;
    let mut reader = Reader { path, text, at: 0 };
    let mut variables = BTreeMap::new();
    while let Some(next) = reader.peek() {
        match next {
            ' ' | '\t' | '\n' => reader.skip(),
            '#' => reader.comment(),
            '\r' => reader.line_end()?,
            _ => {
                let (name, value) = reader.assignment()?;
                variables.insert(name.to_owned(), value);
            }
        }
    }
    Ok(variables)
}

/// Lines `NAME='value'`, in the given order, that [`parse`] and every shell read as these values. Names must be names, and
/// NUL must not be in a value.
pub fn render<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    pairs.into_iter().map(|(name, value)| assignment(name, value, false)).collect()
}

/// One such line. If `bare`, a value of letters, digits and underscores has no quotes.
pub fn assignment(name: &str, value: &str, bare: bool) -> String {
    match bare && !value.is_empty() && value.bytes().all(is_name_byte) {
        true => format!("{name}={value}\n"),
        false => format!("{name}='{}'\n", value.replace('\'', r"'\''")),
    }
}

/// Whether a variable may have this name: `[A-Za-z_][A-Za-z0-9_]*`.
pub fn is_name(name: &str) -> bool {
    name.bytes().all(is_name_byte) && !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// The bytes of a file with variables as text, if they are fit to be one.
pub(crate) fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Error> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::TooLarge { path: path.to_path_buf(), limit: MAX_BYTES });
    }
    let text = str::from_utf8(bytes).map_err(|error| Error::syntax(path, line(bytes, error.valid_up_to()), "UTF-8"))?;
    match text.find('\0') {
        Some(at) => Err(Error::syntax(path, line(bytes, at), "no NUL")),
        None => Ok(text),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The line, from 1, of the byte at `at`.
fn line(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|byte| **byte == b'\n').count().saturating_add(1)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    /// Bytes that are read.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.advance(next.map_or(0, char::len_utf8));
        next
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn skip(&mut self) {
        self.next();
    }

    fn error(&self, at: usize, expected: &'static str) -> Error {
        Error::syntax(self.path, line(self.text.as_bytes(), at), expected)
    }

    /// Up to the end of the line.
    fn comment(&mut self) {
        self.advance(self.rest().find('\n').unwrap_or(self.rest().len()));
    }

    /// A carriage return, which must end its line.
    fn line_end(&mut self) -> Result<(), Error> {
        match self.rest() {
            "\r" => self.advance(1),
            rest if rest.starts_with("\r\n") => self.advance(2),
            _ => return Err(self.error(self.at, "control characters only in quotes")),
        }
        Ok(())
    }

    fn assignment(&mut self) -> Result<(&'a str, String), Error> {
        let begin = self.at;
        if let Some(rest) = self.rest().strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t'])) {
            let rest = rest.trim_start_matches([' ', '\t']);
            self.at = self.text.len().saturating_sub(rest.len());
        }
        let wrong = || self.error(begin, "NAME=value, a comment or a blank line");
        let (name, _) = self.rest().split_once('=').ok_or_else(wrong)?;
        if !is_name(name) {
            return Err(wrong());
        }
        self.advance(name.len().saturating_add(1));
        let value = self.value()?;
        if value.len() > MAX_VALUE_BYTES {
            return Err(self.error(begin, "a value of at most 128 KiB"));
        }
        self.end()?;
        Ok((name, value))
    }

    /// After a value: blanks and a comment, up to the end of the line.
    fn end(&mut self) -> Result<(), Error> {
        let blanks = self.rest().len().saturating_sub(self.rest().trim_start_matches([' ', '\t']).len());
        self.advance(blanks);
        match self.peek() {
            None => Ok(()),
            Some('\n') => {
                self.skip();
                Ok(())
            }
            Some('#') if blanks > 0 => {
                self.comment();
                Ok(())
            }
            Some('\r') => self.line_end(),
            Some(_) => Err(self.error(self.at, "the end of the line after a value; quote values with blanks")),
        }
    }

    fn value(&mut self) -> Result<String, Error> {
        let mut value = String::new();
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\n' | '\r') => return Ok(value),
                Some('\'') => self.single(&mut value)?,
                Some('"') => self.double(&mut value)?,
                Some('\\') => self.escaped(&mut value)?,
                Some(';' | '&' | '|' | '<' | '>' | '(' | ')') => {
                    return Err(self.error(self.at, ";&|<>() only in quotes"));
                }
                Some('~') if value.is_empty() || value.ends_with(':') => {
                    return Err(self.error(self.at, "~ at the beginning or after a colon only in quotes"));
                }
                Some(bare) if bare.is_ascii_control() => {
                    return Err(self.error(self.at, "control characters only in quotes"));
                }
                Some(bare) => {
                    value.push(bare);
                    self.skip();
                }
            }
        }
    }

    /// `'…'`
    fn single(&mut self, value: &mut String) -> Result<(), Error> {
        let begin = self.at;
        self.skip();
        let (quoted, _) = self.rest().split_once('\'').ok_or_else(|| self.error(begin, "an end of the quote"))?;
        value.push_str(quoted);
        self.advance(quoted.len().saturating_add(1));
        Ok(())
    }

    /// `"…"`
    fn double(&mut self, value: &mut String) -> Result<(), Error> {
        let begin = self.at;
        self.skip();
        loop {
            match self.next() {
                None => return Err(self.error(begin, "an end of the quote")),
                Some('"') => return Ok(()),
                Some('\\') => match self.peek() {
                    Some('\n') => self.skip(),
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => {
                        value.push(escaped);
                        self.skip();
                    }
                    _ => value.push('\\'),
                },
                Some(other) => value.push(other),
            }
        }
    }

    /// A backslash outside of quotes and what it stands before.
    fn escaped(&mut self, value: &mut String) -> Result<(), Error> {
        let begin = self.at;
        self.skip();
        match self.next() {
            None => return Err(self.error(begin, "a character after the backslash")),
            Some('\n') => {}
            Some(control) if control.is_ascii_control() => {
                return Err(self.error(begin, "control characters only in quotes"));
            }
            Some(other) => value.push(other),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
