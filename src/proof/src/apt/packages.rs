//! Indexes of packages.
//!
//! The index is hashed as served, and decompressed only if the digest matches. Of its stanzas, 60,000 with 55 MB for
//! Debian's `main`, only those of requested packages are kept.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};

use debversion::Version;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;

use super::AptError;
use super::fields::{self, Fields};
use super::release::{Compression, IndexFile};
use vmbake_common::digest::Digest;
use vmbake_common::message;

/// Maximum size of an index as served: Debian's `main` has 13 MB.
const MAX_INDEX: u64 = 128 << 20;
/// Maximum size of a decompressed index: Debian's `main` has 57 MB.
const MAX_CONTENT: u64 = 512 << 20;

/// A package of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub package: String,
    pub version: Version,
    /// Its architecture, which may be `all`.
    pub arch: String,
    /// Its path below the repository: relative and without `..`.
    pub filename: String,
    /// Length of the file in bytes.
    pub size: u64,
    pub digest: Digest,
}

/// The requested packages of a verified index; created only by [`Packages::read`].
#[derive(Clone, Debug)]
pub struct Packages {
    file: String,
    packages: Vec<Package>,
}

impl Packages {
    /// Reads an index listed in a verified release, and keeps the packages named in `wanted`.
    pub fn read(index: &IndexFile, input: impl Read, wanted: &[&str]) -> Result<Self, AptError> {
        let bytes = verified(index, input)?;
        let mut packages: Vec<Package> = Vec::new();
        stanzas(index, &bytes, wanted, |text| {
            if let Some(package) = entry(index, text)? {
                add(&mut packages, package, index)?;
            }
            Ok(())
        })?;
        Ok(Self { file: index.path.clone(), packages })
    }

    /// The newest version of a package, by the order of deb-version(7).
    pub fn newest(&self, package: &str) -> Result<&Package, AptError> {
        let found = self.packages.iter().filter(|entry| entry.package == package).max_by_key(|entry| &entry.version);
        found.ok_or_else(|| AptError::NoPackage { file: self.file.clone(), package: package.to_owned() })
    }

    /// The package with exactly this version string.
    pub fn version(&self, package: &str, version: &str) -> Result<&Package, AptError> {
        let same = |entry: &&Package| entry.package == package && entry.version.to_string() == version;
        let missing = || AptError::NoPackage { file: self.file.clone(), package: format!("{package} {version}") };
        self.packages.iter().find(same).ok_or_else(missing)
    }
}

impl Package {
    /// Verifies a file against the entry; `file` is its name in messages.
    pub fn check(&self, file: &str, input: impl Read) -> Result<(), AptError> {
        let read = |source| AptError::Read { file: file.to_owned(), source };
        let (found, len) = self.digest.of_stream(input.take(self.size.saturating_add(1))).map_err(read)?;
        agree(file, (self.size, self.digest), (len, found))
    }
}

/// The bytes of an index, verified against the release.
pub(super) fn verified(index: &IndexFile, input: impl Read) -> Result<Vec<u8>, AptError> {
    let file = || index.path.clone();
    if index.size > MAX_INDEX {
        return Err(AptError::TooLarge { file: file(), what: "index", len: index.size, limit: MAX_INDEX });
    }
    let mut bytes = Vec::new();
    input.take(index.size + 1).read_to_end(&mut bytes).map_err(|source| AptError::Read { file: file(), source })?;
    let (found, len) = index.digest.of_stream(&*bytes).map_err(|source| AptError::Read { file: file(), source })?;
    agree(&index.path, (index.size, index.digest), (len, found))?;
    Ok(bytes)
}

fn agree(file: &str, expected: (u64, Digest), found: (u64, Digest)) -> Result<(), AptError> {
    let file = || file.to_owned();
    if found.0 != expected.0 {
        return Err(AptError::Size { file: file(), expected: expected.0, found: found.0 });
    }
    if found.1 != expected.1 {
        return Err(AptError::Message(message!("{}: expected digest {}, found {}", file(), expected.1, found.1)));
    }
    Ok(())
}

/// Calls `found` with the stanzas of requested packages.
fn stanzas(
    index: &IndexFile,
    bytes: &[u8],
    wanted: &[&str],
    mut found: impl FnMut(&str) -> Result<(), AptError>,
) -> Result<(), AptError> {
    let wanted: HashSet<&[u8]> = wanted.iter().map(|name| name.as_bytes()).collect();
    let (mut stanza, mut is_wanted) = (Vec::new(), false);
    each_line(index, bytes, |line| {
        stanza.extend_from_slice(line);
        if line.trim_ascii().is_empty() {
            if is_wanted {
                found(std::str::from_utf8(&stanza).map_err(|_| not_text(index))?)?;
            }
            stanza.clear();
            is_wanted = false;
        } else if let Some(name) = package_name(line) {
            is_wanted |= wanted.contains(name);
        }
        Ok(())
    })
}

/// Calls `found` with every line of a verified index, and with an empty one at its end.
pub(super) fn each_line(
    index: &IndexFile,
    bytes: &[u8],
    mut found: impl FnMut(&[u8]) -> Result<(), AptError>,
) -> Result<(), AptError> {
    let plain: Box<dyn Read + '_> = match index.compression {
        Compression::Gz => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Xz => Box::new(XzDecoder::new_multi_decoder(bytes)),
        Compression::None => Box::new(bytes),
    };
    let limit = index.content_size.unwrap_or(MAX_CONTENT).min(MAX_CONTENT);
    let mut lines = BufReader::with_capacity(256 << 10, plain.take(limit.saturating_add(1)));
    let (mut line, mut total) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line);
        let len = read.map_err(|source| AptError::Read { file: index.path.clone(), source })?;
        total += len as u64;
        found(&line)?;
        if len == 0 {
            break;
        }
    }
    match index.content_size {
        Some(expected) if expected != total => Err(AptError::Size { file: content(index), expected, found: total }),
        None if total > limit => Err(AptError::TooLarge { file: content(index), what: "content", len: total, limit }),
        _ => Ok(()),
    }
}

pub(super) fn not_text(index: &IndexFile) -> AptError {
    AptError::Corrupt { file: index.path.clone(), reason: "not UTF-8".to_owned() }
}

fn content(index: &IndexFile) -> String {
    format!("content of {}", index.path)
}

/// The value, if the line is the field `Package`.
fn package_name(line: &[u8]) -> Option<&[u8]> {
    let (name, value) = line.split_at_checked("Package:".len())?;
    name.eq_ignore_ascii_case(b"Package:").then(|| value.trim_ascii())
}

/// Parses a stanza; `None` if it is for another architecture.
pub(super) fn entry(index: &IndexFile, text: &str) -> Result<Option<Package>, AptError> {
    let fields = Fields::only(&index.path, text)?;
    let arch = fields.need("Architecture")?;
    if arch != index.arch && arch != "all" {
        return Ok(None);
    }
    let package = fields.need("Package")?;
    let wrong = |field: &str, value: &str| fields.corrupt(format!("{field} {value:?} of {package}"));
    let version = fields.need("Version")?;
    let size = fields.need("Size")?;
    let filename = fields.need("Filename")?;
    let path = || AptError::Path { file: index.path.clone(), path: filename.to_owned() };
    let (algorithm, hex) = match (fields.get("SHA256")?, fields.get("SHA512")?) {
        (Some(hex), _) => ("sha256", hex),
        (None, Some(hex)) => ("sha512", hex),
        (None, None) => return Err(AptError::Weak { file: format!("{}: {package}", index.path) }),
    };
    Ok(Some(Package {
        package: package.to_owned(),
        version: version.parse().map_err(|_| wrong("Version", version))?,
        arch: arch.to_owned(),
        filename: fields::relative(filename).ok_or_else(path)?.to_owned(),
        size: fields::size(size).ok_or_else(|| wrong("Size", size))?,
        digest: fields::digest(algorithm, hex).ok_or_else(|| wrong(algorithm, hex))?,
    }))
}

/// Adds an entry. Identical duplicates are merged; the same version with another digest is an error.
fn add(packages: &mut Vec<Package>, package: Package, index: &IndexFile) -> Result<(), AptError> {
    let same = |known: &&Package| known.package == package.package && known.version == package.version;
    match packages.iter().find(same) {
        Some(known) if known.digest != package.digest => Err(AptError::Corrupt {
            file: index.path.clone(),
            reason: format!("{} {} is listed twice, with different digests", package.package, package.version),
        }),
        Some(_) => Ok(()),
        None => {
            packages.push(package);
            Ok(())
        }
    }
}
