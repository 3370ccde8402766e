//! Environment files: bytes in, names and values out, and back. systemd's `EnvironmentFile=` and a POSIX shell read the
//! same values from files that are written here and, with one exception, from accepted files; but nothing is evaluated: `$`
//! and the backtick are literal, as in systemd.
//!
//! A line is blank, a comment that starts with `#`, or `NAME=value`. A value consists of adjacent parts:
//! first quoted ones, `'…'` verbatim and `"…"`, in which a backslash before `"`, `\`, `$`, the backtick or the end of a
//! line is removed, the latter with the line break; then bare characters, in which every backslash is. Quotes can span lines.
//! The last value of a repeated name counts.
//!
//! Input that the two read differently is an error. Because of shells: bare `;&|<>()`, a second word, `~` at the start or after a
//! colon. Because of systemd (252 to 257): `export`; a comment after a value, which becomes part of it; quotes after bare
//! characters, which are kept; a comment that ends with a backslash or has a carriage
//! return in it, which continues or ends elsewhere; NUL, invalid UTF-8, and Unicode noncharacters such as U+FFFE, for
//! which it refuses the whole file. Also errors are bare control characters, values above 128 KiB (the kernel's limit in
//! an environment) and files above 1 MiB. A carriage return before a line break is treated as by systemd: part of the break, not of
//! the value, unless it is in quotes.
//!
//! The exception is `'it'\''s'`, which is `it''s` to systemd: it is read as by a shell, because tools quote this way what they
//! write for scripts. No unit uses such a file as its `EnvironmentFile=`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Error;

/// Maximum length of a file, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// Maximum length of a value, in bytes: `MAX_ARG_STRLEN` of linux/binfmts.h.
pub const MAX_VALUE_BYTES: usize = 128 << 10;
/// A single quote in a single-quoted value. The common form in shells, `'\''`, is two quotes to systemd.
const QUOTE: &str = r#"'"'"'"#;

/// Parses a file. `path` is for messages.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let text = text(path, bytes)?;
    let mut reader = Reader { path, text, at: 0 };
    let mut variables = BTreeMap::new();
    while let Some(next) = reader.peek() {
        match next {
            ' ' | '\t' | '\n' => reader.skip(),
            '#' => reader.comment()?,
            '\r' => reader.line_end()?,
            _ => {
                let (name, value) = reader.assignment()?;
                variables.insert(name.to_owned(), value);
            }
        }
    }
    Ok(variables)
}

/// Formats lines `NAME='value'`, in the given order, that [`parse`], all shells and systemd read as these values. Names must be
/// valid; an unrepresentable value is an error. Without variables, it is one line break: an empty file counts as lost.
pub fn render<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<String, Error> {
    let text: String =
        pairs.into_iter().map(|(name, value)| assignment(name, value, false)).collect::<Result<_, _>>()?;
    Ok(if text.is_empty() { "\n".to_owned() } else { text })
}

/// Formats one line. If `bare`, a value of letters, digits and underscores is not quoted.
pub fn assignment(name: &str, value: &str, bare: bool) -> Result<String, Error> {
    if let Some(expected) = unfit(value) {
        let (name, expected) = (name.to_owned(), expected.to_owned());
        return Err(Error::Setting {
            name,
            expected,
            found: if value.len() > MAX_VALUE_BYTES { "more" } else { "one" }.to_owned(),
        });
    }
    Ok(match bare && !value.is_empty() && value.bytes().all(is_name_byte) {
        true => format!("{name}={value}\n"),
        false => format!("{name}='{}'\n", quoted(value)),
    })
}

/// Escapes text for the quotes of such a line.
pub fn quoted(text: &str) -> String {
    text.replace('\'', QUOTE)
}

/// The expected value, if systemd or the kernel refuses this one.
pub fn unfit(value: &str) -> Option<&'static str> {
    if value.len() > MAX_VALUE_BYTES {
        return Some("a value of at most 128 KiB");
    }
    value
        .chars()
        .any(|c| c == '\0' || is_noncharacter(c))
        .then_some("text without NUL and Unicode's noncharacters, such as U+FFFE")
}

/// Whether it is a Unicode noncharacter, which systemd does not accept as UTF-8.
fn is_noncharacter(c: char) -> bool {
    matches!(u32::from(c), 0xfdd0..=0xfdef) || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether a variable may have this name: `[A-Za-z_][A-Za-z0-9_]*`.
pub fn is_name(name: &str) -> bool {
    name.bytes().all(is_name_byte) && !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// The bytes of a file as text, if valid.
pub(crate) fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Error> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::TooLarge { path: path.to_path_buf(), limit: MAX_BYTES });
    }
    let text = str::from_utf8(bytes).map_err(|error| Error::syntax(path, line(bytes, error.valid_up_to()), "UTF-8"))?;
    match text.find('\0') {
        Some(at) => Err(Error::syntax(path, line(bytes, at), "text without NUL")),
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
    /// Parser.
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

    /// Skips to the end of the line.
    fn comment(&mut self) -> Result<(), Error> {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let text = line.strip_suffix('\r').unwrap_or(line);
        if text.contains('\r') || text.ends_with('\\') {
            return Err(self.error(self.at, "a comment without carriage returns and without a final backslash"));
        }
        self.advance(line.len());
        Ok(())
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
        if self.rest().starts_with("export ") || self.rest().starts_with("export\t") {
            return Err(self.error(begin, "NAME=value without export, which systemd does not support"));
        }
        let wrong = || self.error(begin, "NAME=value, a comment or a blank line");
        let (name, _) = self.rest().split_once('=').ok_or_else(wrong)?;
        if !is_name(name) {
            return Err(wrong());
        }
        self.advance(name.len().saturating_add(1));
        let value = self.value()?;
        if let Some(expected) = unfit(&value) {
            return Err(self.error(begin, expected));
        }
        self.end()?;
        Ok((name, value))
    }

    /// After a value: blanks, up to the end of the line.
    fn end(&mut self) -> Result<(), Error> {
        while let Some(' ' | '\t') = self.peek() {
            self.skip();
        }
        match self.peek() {
            None => Ok(()),
            Some('\n') => {
                self.skip();
                Ok(())
            }
            Some('\r') => self.line_end(),
            Some('#') => Err(self.error(self.at, "a comment on a separate line, or # in quotes")),
            Some(_) => Err(self.error(self.at, "the end of the line after a value; quote values that contain blanks")),
        }
    }

    fn value(&mut self) -> Result<String, Error> {
        let mut value = String::new();
        // systemd does not know quotes any more after the first bare character.
        let mut bare = false;
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\n' | '\r') => return Ok(value),
                // Text between two single-quoted parts.
                Some('\\') if self.rest().starts_with(r"\'") => self.escaped(&mut value)?,
                Some('\'' | '"') if bare => {
                    return Err(self.error(
                        self.at,
                        r#"no quote after unquoted characters; write a quote in single quotes as '"'"'"#,
                    ));
                }
                Some('\'') => self.single(&mut value)?,
                Some('"') => self.double(&mut value)?,
                Some(_) => {
                    self.bare(&mut value)?;
                    bare = true;
                }
            }
        }
    }

    /// A character outside of quotes.
    fn bare(&mut self, value: &mut String) -> Result<(), Error> {
        match self.peek() {
            Some('\\') => return self.escaped(value),
            Some(';' | '&' | '|' | '<' | '>' | '(' | ')') => Err(self.error(self.at, ";&|<>() only in quotes")),
            Some('~') if value.is_empty() || value.ends_with(':') => {
                Err(self.error(self.at, "~ at the start or after a colon only in quotes"))
            }
            Some(control) if control.is_ascii_control() => {
                Err(self.error(self.at, "control characters only in quotes"))
            }
            other => {
                value.extend(other);
                Ok(())
            }
        }?;
        self.skip();
        Ok(())
    }

    /// `'…'`
    fn single(&mut self, value: &mut String) -> Result<(), Error> {
        let begin = self.at;
        self.skip();
        let (quoted, _) = self.rest().split_once('\'').ok_or_else(|| self.error(begin, "a closing quote"))?;
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
                None => return Err(self.error(begin, "a closing quote")),
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

    /// A backslash outside of quotes and the next character.
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
