//! Untrusted checksum lists: `SHA256SUMS` and `FSVERITYSUMS`, in exactly the format that a bake writes.
//!
//! Guarantees: every line is a digest and a plain file name, lines are sorted by name, and names are unique. So a list
//! is unambiguous, and refers only to files in its directory.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::incremental::checksums::Checksum;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;

/// Maximum size of a list.
pub(super) const MAX_LIST: u64 = 4 << 20;

/// The type of digests in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumsKind {
    /// SHA-256 of files.
    Bytes,
    /// fs-verity digests of raw images.
    Verity,
}

impl SumsKind {
    /// Both, in the order in which they are checked.
    pub const ALL: [Self; 2] = [Self::Bytes, Self::Verity];

    pub fn file_name(self) -> &'static str {
        match self {
            Self::Bytes => "SHA256SUMS",
            Self::Verity => "FSVERITYSUMS",
        }
    }

    fn digest(self, line: &str) -> Option<(&str, Checksum)> {
        let (hex, name) = match self {
            Self::Bytes => line.split_once("  ")?,
            Self::Verity => line.strip_prefix("sha256:")?.split_once(' ')?,
        };
        let digest = format!("sha256:{hex}").parse::<Digest>().ok()?;
        Some((name, if self == Self::Bytes { Checksum::Bytes(digest) } else { Checksum::Verity(digest) }))
    }
}

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SumsError {
    #[error("{path}:{line}: {what}")]
    Line { path: PathBuf, line: usize, what: &'static str },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for SumsError {
    vmbake_common::causes!(File);
}

#[derive(Clone, Debug)]
pub struct Sums {
    /// Checksums by file name.
    pub checksums: BTreeMap<String, Checksum>,
    /// Its bytes, which are signed.
    pub text: Vec<u8>,
}

/// Reads a list in `folder`; `None` if it is missing.
pub fn read_sums(folder: &Path, kind: SumsKind) -> Result<Option<Sums>, SumsError> {
    let path = folder.join(kind.file_name());
    match super::read(&path, MAX_LIST) {
        Ok(text) => parse(&path, kind, &text).map(|checksums| Some(Sums { checksums, text })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SumsError::File(FileError::new(path, "read", source))),
    }
}

fn parse(path: &Path, kind: SumsKind, text: &[u8]) -> Result<BTreeMap<String, Checksum>, SumsError> {
    let wrong = |line: usize, what| SumsError::Line { path: path.to_owned(), line, what };
    let text = str::from_utf8(text).map_err(|_| wrong(1, "the list is not UTF-8"))?;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(wrong(text.lines().count(), "missing newline at the end"));
    }
    let mut sums: BTreeMap<String, Checksum> = BTreeMap::new();
    for (index, line) in text.split_terminator('\n').enumerate() {
        let number = index + 1;
        let (name, checksum) = kind.digest(line).ok_or_else(|| wrong(number, "expected a digest and a name"))?;
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) || name.chars().any(char::is_control)
        {
            return Err(wrong(number, "not a valid name of an output"));
        }
        match sums.last_key_value() {
            Some((last, _)) if last == name => return Err(wrong(number, "duplicate name")),
            Some((last, _)) if last.as_str() > name => return Err(wrong(number, "names are not sorted")),
            _ => sums.insert(name.to_owned(), checksum),
        };
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_one_form_only() {
        let line = |name: &str| format!("{}  {name}\n", Digest::of(b"").hex());
        let parse = |text: &str| parse(Path::new("SHA256SUMS"), SumsKind::Bytes, text.as_bytes());
        assert_eq!(parse(&(line("a") + &line("b"))).unwrap().len(), 2);
        assert_eq!(parse("").unwrap().len(), 0);
        let refused = [
            (line("b") + &line("a"), "SHA256SUMS:2: names are not sorted"),
            (line("a") + &line("a"), "SHA256SUMS:2: duplicate name"),
            (line("../a"), "SHA256SUMS:1: not a valid name of an output"),
            (line(".a"), "SHA256SUMS:1: not a valid name of an output"),
            (line("a\\nb"), "SHA256SUMS:1: not a valid name of an output"),
            (line(""), "SHA256SUMS:1: not a valid name of an output"),
            (line("a\r"), "SHA256SUMS:1: not a valid name of an output"),
            (line("a").to_uppercase(), "SHA256SUMS:1: expected a digest and a name"),
            (line("a").replace("  ", " *"), "SHA256SUMS:1: expected a digest and a name"),
            (format!("\n{}", line("a")), "SHA256SUMS:1: expected a digest and a name"),
            (line("a").trim_end().to_owned(), "SHA256SUMS:1: missing newline at the end"),
        ];
        for (text, expected) in refused {
            assert_eq!(parse(&text).unwrap_err().to_string(), expected, "{text:?}");
        }
        let verity = format!("sha256:{} a.raw\n", Digest::of(b"").hex());
        assert_eq!(super::parse(Path::new("F"), SumsKind::Verity, verity.as_bytes()).unwrap().len(), 1);
        assert!(super::parse(Path::new("F"), SumsKind::Verity, line("a").as_bytes()).is_err());
    }
}
