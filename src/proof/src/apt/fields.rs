//! Stanzas of deb822(5), in which duplicate fields are errors.

use deb822_fast::borrowed::{BorrowedParagraph, parse_borrowed};
use vmbake_common::message;

use super::AptError;
use vmbake_common::digest::Digest;

/// A stanza, with the name of its file for messages.
pub(super) struct Fields<'a> {
    file: &'a str,
    paragraph: BorrowedParagraph<'a>,
}

impl<'a> Fields<'a> {
    /// The only stanza of `text`.
    pub(super) fn only(file: &'a str, text: &'a str) -> Result<Self, AptError> {
        let corrupt = |reason: String| AptError::Corrupt { file: file.to_owned(), reason };
        let mut paragraphs = parse_borrowed(text).map_err(|error| corrupt(error.to_string()))?;
        let paragraph = paragraphs.pop().ok_or_else(|| corrupt("no fields".to_owned()))?;
        if !paragraphs.is_empty() {
            return Err(corrupt(format!("{} stanzas, expected 1", paragraphs.len() + 1)));
        }
        let mut names: Vec<String> = paragraph.iter().map(|field| field.name().to_ascii_lowercase()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(AptError::Message(message!("{file}: duplicate field {}", twice[0])));
        }
        Ok(Self { file, paragraph })
    }

    /// The value of a single-line field, without surrounding white space; `None` if it is missing or empty.
    pub(super) fn get(&self, field: &'static str) -> Result<Option<&'a str>, AptError> {
        match self.paragraph.get(field) {
            None => Ok(None),
            Some([line]) => Ok(Some(line.trim()).filter(|value| !value.is_empty())),
            Some(_) => Err(self.corrupt(format!("field {field} has more than one line"))),
        }
    }

    /// As [`Self::get`], for a required field.
    pub(super) fn need(&self, field: &'static str) -> Result<&'a str, AptError> {
        self.get(field)?.ok_or_else(|| AptError::Missing { file: self.file.to_owned(), field })
    }

    /// The lines of a field after its first one, which must be empty; `None` if the field is missing.
    pub(super) fn list(&self, field: &'static str) -> Result<Option<&[&'a str]>, AptError> {
        match self.paragraph.get(field) {
            None => Ok(None),
            Some([first, lines @ ..]) if first.trim().is_empty() => Ok(Some(lines)),
            Some(_) => Err(self.corrupt(format!("field {field} is not a list"))),
        }
    }

    pub(super) fn corrupt(&self, reason: String) -> AptError {
        AptError::Corrupt { file: self.file.to_owned(), reason }
    }
}

/// Parses a length in bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses a digest without prefix.
pub(super) fn digest(algorithm: &str, hex: &str) -> Option<Digest> {
    format!("{algorithm}:{hex}").parse().ok()
}

/// Normalizes a path below the repository by removing a leading `./`; `None` if it is absolute or has empty, `.` or
/// `..` components.
pub(super) fn relative(path: &str) -> Option<&str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    path.split('/').all(plain).then_some(path)
}
