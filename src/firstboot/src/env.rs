//! Files with variables: bytes in, names and values out, and back. systemd's `EnvironmentFile=` and a POSIX shell read the
//! same values out of what is written here, and, with one exception, out of what is accepted; but nothing is evaluated: `$`
//! and the backtick are characters like others, as they are to systemd.
//!
//! A line is blank, a comment that begins with `#`, or `NAME=value`. A value is made of parts without anything between them:
//! first those in quotes, `'…'` as it is and `"…"`, in which a backslash before `"`, `\`, `$`, the backtick or the end of a
//! line goes away, the latter with the line's end; then bare characters, in which any backslash does. Quotes may span lines.
//! Where a name comes twice, the last value counts.
//!
//! What the two read differently is an error. For a shell: bare `;&|<>()`, a second word, `~` at the beginning or after a
//! colon. For systemd (252 to 257): `export`; a comment behind a value, which it takes for a part of that; quotes after bare
//! characters, which it keeps; a comment that ends with a backslash or has a carriage
//! return in it, which goes on or ends elsewhere; NUL, what is not UTF-8, and Unicode's noncharacters such as U+FFFE, for
//! which it refuses the whole file. So are bare control characters, values above 128 KiB (the kernel takes no longer ones in
//! an environment) and files above 1 MiB. A carriage return before the end of a line is systemd's: part of that end, not of
//! the value, unless it is in quotes.
//!
//! The exception is `'it'\''s'`, which is `it''s` to systemd: it is read as a shell reads it, because tools quote so what they
//! write for scripts. No unit has such a file as its `EnvironmentFile=`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Error;

/// The largest file with variables, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// The longest value, in bytes: `MAX_ARG_STRLEN` of linux/binfmts.h.
pub const MAX_VALUE_BYTES: usize = 128 << 10;
/// A single quote in a value in single quotes. What is common in shells, `'\''`, is two quotes to systemd.
const QUOTE: &str = r#"'"'"'"#;

/// The variables of a file. `path` is for messages.
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

/// Lines `NAME='value'`, in the given order, that [`parse`], every shell and systemd read as these values. Names must be
/// names; a value that cannot be written is an error. Where there are none, one line end: a file without a byte has lost what it said.
pub fn render<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<String, Error> {
    let text: String =
        pairs.into_iter().map(|(name, value)| assignment(name, value, false)).collect::<Result<_, _>>()?;
    Ok(if text.is_empty() { "\n".to_owned() } else { text })
}

/// One such line. If `bare`, a value of letters, digits and underscores has no quotes.
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

/// A text, or part of one, between the quotes of such a line.
pub fn quoted(text: &str) -> String {
    text.replace('\'', QUOTE)
}

/// What a value should be, if it is one that systemd or the kernel refuses.
pub fn unfit(value: &str) -> Option<&'static str> {
    if value.len() > MAX_VALUE_BYTES {
        return Some("a value of at most 128 KiB");
    }
    value
        .chars()
        .any(|c| c == '\0' || is_noncharacter(c))
        .then_some("text without NUL and Unicode's noncharacters, such as U+FFFE")
}

/// Whether Unicode has no character there and never will: systemd takes no text with one for UTF-8.
fn is_noncharacter(c: char) -> bool {
    matches!(u32::from(c), 0xfdd0..=0xfdef) || u32::from(c) & 0xfffe == 0xfffe
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
    fn comment(&mut self) -> Result<(), Error> {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let text = line.strip_suffix('\r').unwrap_or(line);
        if text.contains('\r') || text.ends_with('\\') {
            return Err(self.error(self.at, "a comment without a carriage return in it or a backslash at its end"));
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
            return Err(self.error(begin, "NAME=value without export, which systemd does not know"));
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
            Some('#') => Err(self.error(self.at, "a comment on a line of its own, or # in quotes")),
            Some(_) => Err(self.error(self.at, "the end of the line after a value; quote values with blanks")),
        }
    }

    fn value(&mut self) -> Result<String, Error> {
        let mut value = String::new();
        // systemd does not know quotes any more after the first bare character.
        let mut bare = false;
        loop {
            match self.peek() {
                None | Some(' ' | '\t' | '\n' | '\r') => return Ok(value),
                // What stands between two parts in single quotes.
                Some('\\') if self.rest().starts_with(r"\'") => self.escaped(&mut value)?,
                Some('\'' | '"') if bare => {
                    return Err(
                        self.error(self.at, r#"no quote after bare characters; in single quotes, '"'"' is one"#)
                    );
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
                Err(self.error(self.at, "~ at the beginning or after a colon only in quotes"))
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
