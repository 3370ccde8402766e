//! The chain of an apt repository: InRelease, Packages, deb.
//!
//! A signed `InRelease` (or a `Release` with its signature `Release.gpg`), a keyring and a time enter ([`Release::verify`]); it names the indexes of packages by length
//! and digest, an index that agrees ([`Packages::read`]) names the packages, and a file that agrees with its entry
//! ([`Package::check`]) is proven. Formats: deb822(5) and the repository format of the Debian wiki
//! (DebianRepository/Format).
//!
//! Stricter than apt: a field twice, or a field of the wrong form, is an error wherever it is used; only SHA-256 and
//! SHA-512 count; a signature of a known key that does not hold condemns the file (see [`super::openpgp`]).

use jiff::Timestamp;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

use super::openpgp::OpenPgpError;

pub use catalogue::{Catalogue, Stanza};
pub use packages::{Package, Packages};
pub use release::{Compression, Expect, PackagesIndex, Release, is_flat};

mod catalogue;
mod fields;
mod packages;
mod release;

/// Why a repository, an index or a package is not believed.
#[derive(Debug, thiserror::Error)]
pub enum AptError {
    #[error("InRelease is not signed as it must be")]
    Signature {
        /// What the check of signatures says.
        source: OpenPgpError,
    },
    #[error("{file}: corrupt: {reason}")]
    Corrupt { file: String, reason: String },
    #[error("{file}: field {field} is missing")]
    Missing { file: String, field: &'static str },
    #[error("{file}: no SHA256 or SHA512, and nothing weaker is accepted")]
    Weak { file: String },
    #[error("{file}: is for suite {suite} and codename {codename}, not for {expected}")]
    Suite { file: &'static str, expected: String, suite: String, codename: String },
    #[error("{file}: its Date {date} is after the time of the check, {now}")]
    Future { file: &'static str, date: Timestamp, now: Timestamp },
    #[error("{file}: its Date {date} is older than {previous}, which was seen before")]
    Older { file: &'static str, date: Timestamp, previous: Timestamp },
    #[error("{file}: was valid until {until}, and now is {now}")]
    Stale { file: &'static str, until: Timestamp, now: Timestamp },
    #[error("{file}: its Date {date} is more than {days} days ago, and now is {now}")]
    Aged {
        file: &'static str,
        date: Timestamp,
        /// How many days it may have.
        days: u16,
        now: Timestamp,
    },
    #[error("{file}: does not list {index}")]
    NoIndex {
        file: &'static str,
        /// Path of the index without its compression.
        index: String,
    },
    #[error("{file}: cannot read")]
    Read { file: String, source: std::io::Error },
    #[error("{file}: {found} bytes, expected {expected}")]
    Size { file: String, expected: u64, found: u64 },
    #[error("{file}: {what} of {len} bytes, more than the {limit} that are allowed")]
    TooLarge {
        file: String,
        what: &'static str,
        /// Its length in bytes.
        len: u64,
        limit: u64,
    },
    #[error("{file}: no package {package}")]
    NoPackage { file: String, package: String },
    #[error("{file}: path {path:?} leaves the repository")]
    Path { file: String, path: String },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for AptError {
    vmbake_common::causes!(Message; Signature, Read);
}
