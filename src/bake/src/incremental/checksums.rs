//! Checksum lists next to the outputs: one line for each file, in the format of the tool that verifies it.
//!
//! `SHA256SUMS` is for `sha256sum`. Raw images are in `FSVERITYSUMS`, in the format of `fsverity digest`: holes are
//! skipped, and the rest is hashed on all cores.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use vmbake_disk::write::FileDigest;

use vmbake_common::atomic_file::{PublishError, write_file};
use vmbake_common::digest::Digest;
use vmbake_common::input;

/// A checksum of a published file, of the type used for its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checksum {
    /// Digest of its bytes.
    #[serde(rename = "digest")]
    Bytes(Digest),
    /// Its fs-verity digest.
    #[serde(rename = "fsverity")]
    Verity(Digest),
}

impl From<FileDigest> for Checksum {
    fn from(digest: FileDigest) -> Self {
        match digest {
            FileDigest::Sha256(bytes) => Self::Bytes(Digest::Sha256(bytes)),
            FileDigest::Verity(bytes) => Self::Verity(Digest::Sha256(bytes)),
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(digest) => digest.fmt(f),
            Self::Verity(digest) => write!(f, "fsverity:{digest}"),
        }
    }
}

impl Checksum {
    /// The type of digest for a writer; `None` if no writer computes it.
    pub fn file_digest(&self) -> Option<FileDigest> {
        match self {
            Self::Bytes(Digest::Sha256(bytes)) => Some(FileDigest::Sha256(*bytes)),
            Self::Verity(Digest::Sha256(bytes)) => Some(FileDigest::Verity(*bytes)),
            Self::Bytes(Digest::Sha512(_)) | Self::Verity(Digest::Sha512(_)) => None,
        }
    }
}

/// A checksum list and the format of its lines.
struct List {
    name: &'static str,
    /// The text before the hexadecimal digits, and between them and the name.
    before: &'static str,
    between: &'static str,
}

const LISTS: [List; 2] = [
    List { name: "SHA256SUMS", before: "", between: "  " },
    List { name: "FSVERITYSUMS", before: "sha256:", between: " " },
];

/// Removes these files from the lists in `dir`, before the files themselves change.
pub(crate) fn forget(dir: &Path, files: &BTreeMap<String, Checksum>) -> Result<(), PublishError> {
    LISTS.iter().try_for_each(|list| list.change(dir, |lines| lines.retain(|name, _| !files.contains_key(name))))
}

/// Adds files to the lists in `dir`; lines of other files are kept.
pub(crate) fn list(dir: &Path, files: &BTreeMap<String, Checksum>) -> Result<(), PublishError> {
    let [bytes, verity] = &LISTS;
    let of = |wanted: fn(&Checksum) -> Option<&Digest>| {
        let listed = files.iter().filter_map(move |(name, checksum)| Some((name.clone(), wanted(checksum)?.hex())));
        move |lines: &mut Lines| lines.extend(listed)
    };
    bytes.change(dir, of(|checksum| if let Checksum::Bytes(digest) = checksum { Some(digest) } else { None }))?;
    verity.change(dir, of(|checksum| if let Checksum::Verity(digest) = checksum { Some(digest) } else { None }))
}

/// Hexadecimal digits by name.
type Lines = BTreeMap<String, String>;

impl List {
    /// Rewrites the list if `change` modifies it.
    fn change(&self, dir: &Path, change: impl FnOnce(&mut Lines)) -> Result<(), PublishError> {
        let path = dir.join(self.name);
        let before = self.read(&path)?;
        let mut lines = before.clone();
        change(&mut lines);
        if lines == before {
            return Ok(());
        }
        let Self { before, between, .. } = self;
        let text: String = lines.iter().map(|(name, hex)| format!("{before}{hex}{between}{name}\n")).collect();
        write_file(&path, text.as_bytes(), true)
    }

    fn read(&self, path: &Path) -> Result<Lines, PublishError> {
        let line = |line: &str| {
            let (hex, name) = line.strip_prefix(self.before)?.split_once(self.between)?;
            Some((name.to_owned(), hex.to_owned()))
        };
        let text = input::read(path, input::MAX_INPUT)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
        match text {
            Ok(text) => Ok(text.lines().filter_map(line).collect()),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(Lines::new()),
            Err(source) => Err(PublishError::Write { path: path.to_owned(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_the_lines_of_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = |name: &str| (name.to_owned(), Checksum::Bytes(Digest::of(name.as_bytes())));
        let verity = |name: &str| (name.to_owned(), Checksum::Verity(Digest::of(name.as_bytes())));
        list(dir.path(), &[bytes("b"), verity("a.raw"), bytes("a"), verity("b.raw")].into()).unwrap();
        forget(dir.path(), &[bytes("a"), verity("b.raw")].into()).unwrap();
        list(dir.path(), &[bytes("c"), verity("c.raw")].into()).unwrap();
        for (file, between, expected) in [("SHA256SUMS", "  ", ["b", "c"]), ("FSVERITYSUMS", " ", ["a.raw", "c.raw"])] {
            let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
            let names: Vec<&str> = text.lines().map(|line| line.split_once(between).unwrap().1).collect();
            assert_eq!(names, expected, "{file}");
        }
    }
}
