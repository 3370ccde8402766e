//! The apt chain: InRelease, Packages, deb.
//!
//! Given a signed `InRelease` (or a `Release` with its signature `Release.gpg`), a keyring and a time,
//! [`Release::verify`] returns the indexes of packages with length and digest. A matching index ([`Packages::read`])
//! lists the packages, and a file that matches its entry ([`Package::check`]) is verified. Formats: deb822(5) and the
//! repository format of the Debian wiki (DebianRepository/Format).
//!
//! Stricter than apt: a duplicate or malformed field is an error wherever it is used; only SHA-256 and SHA-512 are
//! accepted; a bad signature by a known key invalidates the file (see [`super::openpgp`]).

use jiff::Timestamp;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

use super::openpgp::OpenPgpError;

pub use package_index::{PackageIndex, Stanza};
pub use packages::{Package, Packages};
pub use release::{Compression, Expect, IndexFile, Release, is_flat};

mod package_index;
mod fields;
mod packages;
mod release;

/// Why a repository, an index or a package was rejected.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    #[error("InRelease: signature verification failed")]
    Signature { source: OpenPgpError },
    #[error("{file}: corrupt: {reason}")]
    Corrupt { file: String, reason: String },
    #[error("{file}: missing field {field}")]
    Missing { file: String, field: &'static str },
    #[error("{file}: neither SHA256 nor SHA512, and weaker digests are not accepted")]
    Weak { file: String },
    #[error("{file}: is for suite {suite} and codename {codename}, expected {expected}")]
    Suite { file: &'static str, expected: String, suite: String, codename: String },
    #[error("{file}: Date {date} is in the future, the time of the check is {now}")]
    Future { file: &'static str, date: Timestamp, now: Timestamp },
    #[error("{file}: Date {date} is older than {previous}, the date of a release seen before")]
    Older { file: &'static str, date: Timestamp, previous: Timestamp },
    #[error("{file}: expired: valid until {until}, the time of the check is {now}")]
    Stale { file: &'static str, until: Timestamp, now: Timestamp },
    #[error("{file}: Date {date} is more than {days} days old, the time of the check is {now}")]
    Aged {
        file: &'static str,
        date: Timestamp,
        /// The maximum age in days.
        days: u16,
        now: Timestamp,
    },
    #[error("{file}: does not list {index}")]
    NoIndex {
        file: &'static str,
        /// Path of the index without the suffix of its compression.
        index: String,
    },
    #[error("{file}: cannot read")]
    Read { file: String, source: std::io::Error },
    #[error("{file}: {found} bytes, expected {expected}")]
    Size { file: String, expected: u64, found: u64 },
    #[error("{file}: {what} of {len} bytes, more than the limit of {limit}")]
    TooLarge {
        file: String,
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        limit: u64,
    },
    #[error("{file}: package {package} not found")]
    NoPackage { file: String, package: String },
    #[error("{file}: path {path:?} leaves the repository")]
    Path { file: String, path: String },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for AptError {
    vmbake_common::causes!(Message; Signature, Read);
}
