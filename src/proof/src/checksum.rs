//! Checksum files of artifacts, as `sha256sum` and `sha512sum` write them (GNU coreutils manual, section 6.4).
//!
//! Returns the digest that a checksum file states for an artifact. Forms: a digest alone, if the file has nothing else;
//! `HEX  NAME` and `HEX *NAME`, one or many lines; `SHA256 (NAME) = HEX` of `--tag` and BSD. Lines that start with `#`
//! are comments. The text may be inside an OpenPGP cleartext signature (RFC 9580, section 7), which is *not* verified.
//!
//! Stricter than coreutils: a line of any other form invalidates the file, so that an error page is never read as a
//! list; names must match exactly, except for a leading `./`; two digests for one name are refused; only SHA-256 and
//! SHA-512 are accepted.

use std::collections::BTreeSet;

use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;

/// Maximum length of a checksum file; the largest known ones have 200 KB.
pub const MAX_LEN: usize = 4 << 20;

const BEGIN: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const END: &str = "-----BEGIN PGP SIGNATURE-----";

/// Why a checksum file was rejected.
#[derive(Debug, thiserror::Error)]
pub enum ChecksumError {
    #[error("{len} bytes, more than the limit of {MAX_LEN} for a checksum file")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
    },
    #[error("not a text file: invalid character at byte {offset}")]
    Binary {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    #[error("line {line} is not a valid checksum: {text:?}")]
    Malformed {
        /// The line number, from 1.
        line: usize,
        text: String,
    },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ChecksumError {
    vmbake_common::causes!(Message);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Algorithm {
    Sha256,
    Sha512,
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        })
    }
}

/// A parsed line.
struct Line<'a> {
    hex: &'a str,
    /// `None` for a digest alone.
    name: Option<&'a str>,
}

/// The digest that `text` states for the file `name`; the strongest one if there are several algorithms.
pub fn find(text: &[u8], name: &str, algorithm: Option<Algorithm>) -> Result<Digest, ChecksumError> {
    let lines = lines(checked(text)?)?;
    let found: Vec<&str> = match lines[..] {
        [] => return Err(ChecksumError::Message(Message::new("empty file"))),
        [Line { hex, name: None }] => vec![hex],
        _ => lines.iter().filter(|line| line.name == Some(name)).map(|line| line.hex).collect(),
    };
    let missing = || name.to_owned();
    if found.is_empty() {
        return Err(ChecksumError::Message(message!("no checksum for {}", missing())));
    }
    let digests: BTreeSet<Digest> = found.iter().filter_map(|hex| digest(hex)).collect();
    if digests.is_empty() {
        let bits = |hex: &&str| format!("digests of {} bits", hex.len() * 4);
        let algorithms = found.iter().map(bits).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        return Err(ChecksumError::Message(message!(
            "only {algorithms} for {}, but SHA-256 or SHA-512 is required",
            missing()
        )));
    }
    let of = |algorithm: Algorithm| {
        let mut same = digests.iter().filter(|digest| digest.algorithm() == algorithm.to_string());
        match (same.next(), same.next()) {
            (Some(_), Some(_)) => Err(ChecksumError::Message(message!("two different digests for {}", missing()))),
            (found, _) => Ok(found.copied()),
        }
    };
    let (sha256, sha512) = (of(Algorithm::Sha256)?, of(Algorithm::Sha512)?);
    let chosen = match algorithm {
        None => sha512.or(sha256),
        Some(Algorithm::Sha256) => sha256,
        Some(Algorithm::Sha512) => sha512,
    };
    let wanted = algorithm.unwrap_or(Algorithm::Sha256);
    chosen.ok_or_else(|| ChecksumError::Message(message!("no {wanted} checksum for {}", missing())))
}

fn checked(text: &[u8]) -> Result<&str, ChecksumError> {
    if text.len() > MAX_LEN {
        return Err(ChecksumError::TooLarge { len: text.len() });
    }
    if let Some(offset) = text.iter().position(|byte| byte.is_ascii_control() && !b"\t\r\n".contains(byte)) {
        return Err(ChecksumError::Binary { offset });
    }
    std::str::from_utf8(text).map_err(|error| ChecksumError::Binary { offset: error.valid_up_to() })
}

/// The lines that are neither empty nor comments, without the framing of a cleartext signature.
fn lines(text: &str) -> Result<Vec<Line<'_>>, ChecksumError> {
    let mut numbered = text.lines().map(str::trim_end).enumerate();
    let signed = text.starts_with(BEGIN);
    if signed {
        // Armor headers end with an empty line.
        numbered.by_ref().find(|(_, line)| line.is_empty());
    }
    let mut lines = Vec::new();
    for (index, line) in numbered {
        if signed && line == END {
            break;
        }
        let line = if signed { line.strip_prefix("- ").unwrap_or(line) } else { line };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let malformed = || ChecksumError::Malformed { line: index + 1, text: line.chars().take(80).collect() };
        lines.push(parse(line).ok_or_else(malformed)?);
    }
    // A digest without a name is unambiguous only in a file with a single digest.
    match lines.iter().position(|line| line.name.is_none()) {
        Some(at) if lines.len() > 1 => Err(ChecksumError::Malformed { line: at + 1, text: lines[at].hex.to_owned() }),
        _ => Ok(lines),
    }
}

fn parse(line: &str) -> Option<Line<'_>> {
    let own_name = |name: &str| !name.is_empty() && name != "./";
    if let Some((label, rest)) = line.split_once(" (") {
        let (name, hex) = rest.rsplit_once(") = ")?;
        let of_label = is_hex(hex) && !label.contains(' ') && own_name(name);
        return of_label.then(|| Line { hex, name: Some(name.strip_prefix("./").unwrap_or(name)) });
    }
    let Some((hex, rest)) = line.split_once([' ', '\t']) else {
        return is_hex(line).then_some(Line { hex: line, name: None });
    };
    let name = rest.trim_start_matches([' ', '\t']);
    let name = name.strip_prefix('*').unwrap_or(name);
    (is_hex(hex) && own_name(name)).then(|| Line { hex, name: Some(name.strip_prefix("./").unwrap_or(name)) })
}

/// Whether this is a digest of some algorithm: MD5 is the shortest.
fn is_hex(text: &str) -> bool {
    text.len() >= 32 && text.len().is_multiple_of(8) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn digest(hex: &str) -> Option<Digest> {
    let algorithm = match hex.len() {
        64 => Algorithm::Sha256,
        128 => Algorithm::Sha512,
        _ => return None,
    };
    format!("{algorithm}:{}", hex.to_ascii_lowercase()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const B: &str = "84e99cf689978963f9acdd7476ab03dbd122cf29396998b30d05d2bcf799b775";

    fn find_a(text: &str) -> Result<Digest, ChecksumError> {
        find(text.as_bytes(), "a.tgz", None)
    }

    #[test]
    fn every_form_is_read() {
        let sha512 = format!("{A}{A}");
        for text in [
            A.to_owned(),
            format!("{A}\n"),
            format!("{A}  a.tgz\n"),
            format!("{} *a.tgz\r\n", A.to_ascii_uppercase()),
            format!("{A} ./a.tgz"),
            format!("{B}  a.tgz.asc\n{B}  dist/a.tgz\n{A}  a.tgz\n\n"),
            format!("SHA256 (a.tgz) = {A}\nMD5 (a.tgz) = {}\n", &A[..32]),
            format!("{A}  a.tgz\n{A}  a.tgz\n"),
            format!("# {B}  a.tgz\n#\n{A}  a.tgz\n#{B}  a.tgz\n"),
            format!("# of a.tgz alone\n{A}\n"),
            format!("{BEGIN}\nHash: SHA512\n\n{B}  b\n- {A}  a.tgz\n{END}\nnonsense\n"),
        ] {
            assert_eq!(find_a(&text).unwrap(), Digest::of(b""), "{text}");
        }
        let both = format!("{A}  a.tgz\n{sha512}  a.tgz\n");
        assert_eq!(find_a(&both).unwrap().hex(), sha512);
        assert_eq!(find(both.as_bytes(), "a.tgz", Some(Algorithm::Sha256)).unwrap().hex(), A);
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, expected) in [
            (String::new(), "empty file"),
            ("\n \n".to_owned(), "empty file"),
            (format!("#{A}  a.tgz\n"), "empty file"),
            (format!(" # not a comment\n{A}  a.tgz\n"), "line 1 is not a valid checksum"),
            ("<html>Not Found</html>".to_owned(), "line 1 is not a valid checksum"),
            (format!("{A}  a.tgz\n<html>"), "line 2 is not a valid checksum"),
            (format!("{B}  b.tgz\n"), "no checksum for a.tgz"),
            (format!("{B}  a.tgz.asc\n{B}  x/a.tgz\n"), "no checksum for a.tgz"),
            (A[..40].to_owned(), "digests of 160 bits"),
            (format!("{}  a.tgz", &A[..32]), "digests of 128 bits"),
            (format!("{A}\n{B}\n"), "line 1 is not a valid checksum"),
            (format!("{A}  a.tgz\n{B}  a.tgz\n"), "two different digests"),
            (format!("{A}  a.tgz\0"), "invalid character at byte 71"),
            (A[..62].to_owned(), "line 1 is not a valid checksum"),
        ] {
            let error = find_a(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        assert!(find(A.as_bytes(), "a.tgz", Some(Algorithm::Sha512)).is_err());
        assert!(matches!(find(&vec![b'a'; MAX_LEN + 1], "a", None), Err(ChecksumError::TooLarge { .. })));
    }
}
