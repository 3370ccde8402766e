//! `InRelease`: signers, date and the indexes that it lists.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::AptError;
use super::fields::{self, Fields};
use crate::openpgp::{CLOCK_SKEW, Clearsigned, FileSignature, Keyring};
use vmbake_common::digest::Digest;
use vmbake_common::message::Message;

const IN_RELEASE: &str = "InRelease";
/// The file that `Release.gpg` signs.
const RELEASE: &str = "Release";

/// Whether a suite is that of a flat archive (sources.list(5)): a directory with the index and all packages.
pub fn is_flat(suite: &str) -> bool {
    suite.ends_with('/')
}

/// The requirements for an `InRelease`.
#[derive(Clone, Copy, Debug)]
pub struct Expect<'a> {
    /// The expected suite or codename. For a flat archive it is a directory, which its `InRelease` does not name.
    pub suite: &'a str,
    /// The time of the check. `Date` may be up to [`CLOCK_SKEW`] later; apt allows ten seconds.
    pub now: Timestamp,
    /// `Date` of the newest known `InRelease` of this suite: an older one is a replay.
    pub previous: Option<Timestamp>,
}

/// A verified `InRelease` or `Release`; created only by [`Release::verify`] and its variants.
#[derive(Clone, Debug)]
pub struct Release {
    /// Name of the file, for errors.
    file: &'static str,
    suite: String,
    date: Timestamp,
    valid_until: Option<Timestamp>,
    signers: Vec<String>,
    signed: Timestamp,
    acquire_by_hash: bool,
    files: BTreeMap<String, Listed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    size: u64,
    digest: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    Gz,
    Xz,
    None,
}

impl Compression {
    /// In order of preference. gzip decompresses three times as fast as xz, which outweighs the larger download; plain
    /// indexes come last, since they are five times as long and most archives do not serve them.
    const ALL: [Self; 3] = [Self::Gz, Self::Xz, Self::None];

    fn suffix(self) -> &'static str {
        match self {
            Self::Gz => ".gz",
            Self::Xz => ".xz",
            Self::None => "",
        }
    }
}

/// A file of an index of packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// Its path below `dists/<suite>/`.
    pub path: String,
    /// Its path by digest, below `dists/<suite>/`: preferred if the archive has it, since the file at `path` may be
    /// replaced during an update.
    pub by_hash: Option<String>,
    /// Its length in bytes.
    pub size: u64,
    pub digest: Digest,
    pub compression: Compression,
    /// Architecture of its packages.
    pub arch: String,
    /// Its decompressed length, if the release lists it.
    pub content_size: Option<u64>,
}

impl Release {
    /// Verifies an `InRelease` with the keys of `keyring`.
    pub fn verify(in_release: &[u8], keyring: &Keyring, expect: &Expect<'_>) -> Result<Self, AptError> {
        let signed =
            Clearsigned::verify(in_release, keyring, expect.now).map_err(|source| AptError::Signature { source })?;
        let release = Self::unsigned(IN_RELEASE, &signed.text, expect)?;
        Ok(Self { signers: signed.signers, signed: signed.signed.max(release.date), ..release })
    }

    /// Verifies a `Release` with its detached signature `Release.gpg`, which older archives have instead of an
    /// `InRelease`.
    pub fn verify_detached(
        release: &[u8],
        signature: &[u8],
        keyring: &Keyring,
        expect: &Expect<'_>,
    ) -> Result<Self, AptError> {
        let (text, signed) = detached(release, signature, keyring, expect.now)?;
        let release = Self::unsigned(RELEASE, text, expect)?;
        Ok(Self { signers: signed.signers, signed: signed.signed.max(release.date), ..release })
    }

    /// Verifies an `InRelease` from a snapshot as of a past time. `Valid-Until` is not enforced: snapshots serve it
    /// unchanged.
    pub fn verify_past(in_release: &[u8], keyring: &Keyring, suite: &str, at: Timestamp) -> Result<Self, AptError> {
        let signed = Clearsigned::verify(in_release, keyring, at).map_err(|source| AptError::Signature { source })?;
        let release = Self::past(IN_RELEASE, &signed.text, suite, at)?;
        Ok(Self { signers: signed.signers, signed: signed.signed.max(release.date), ..release })
    }

    /// As [`Release::verify_past`], for a `Release` with its detached signature `Release.gpg`.
    pub fn verify_past_detached(
        release: &[u8],
        signature: &[u8],
        keyring: &Keyring,
        suite: &str,
        at: Timestamp,
    ) -> Result<Self, AptError> {
        let (text, signed) = detached(release, signature, keyring, at)?;
        let release = Self::past(RELEASE, text, suite, at)?;
        Ok(Self { signers: signed.signers, signed: signed.signed.max(release.date), ..release })
    }

    /// The indexes listed in an unsigned text, for fuzzers.
    #[doc(hidden)]
    pub fn unsigned_indexes(text: &str, expect: &Expect<'_>) -> Result<Vec<IndexFile>, AptError> {
        Self::unsigned(IN_RELEASE, text, expect)?.indexes(Some("main"), "amd64")
    }

    /// Parses a text without verifying signatures.
    fn unsigned(file: &'static str, text: &str, expect: &Expect<'_>) -> Result<Self, AptError> {
        let release = Self::read(file, text, expect.suite)?;
        release.check_times(release.valid_until, expect)?;
        Ok(release)
    }

    /// Parses a text as of a past time, at which `Valid-Until` is not enforced.
    fn past(file: &'static str, text: &str, suite: &str, at: Timestamp) -> Result<Self, AptError> {
        let release = Self::read(file, text, suite)?;
        release.check_times(None, &Expect { suite, now: at, previous: None })?;
        Ok(release)
    }

    /// Parses a text without checking its times.
    fn read(file: &'static str, text: &str, suite: &str) -> Result<Self, AptError> {
        let fields = Fields::only(file, text)?;
        check_suite(file, &fields, suite)?;
        let date = time(&fields, "Date")?.ok_or(AptError::Missing { file: file.to_owned(), field: "Date" })?;
        let valid_until = time(&fields, "Valid-Until")?;
        let acquire_by_hash = fields.get("Acquire-By-Hash")?.is_some_and(|value| value.eq_ignore_ascii_case("yes"));
        let files = files(file, &fields)?;
        let suite = suite.to_owned();
        Ok(Self { file, suite, date, valid_until, signers: Vec::new(), signed: date, acquire_by_hash, files })
    }

    /// Fails if its `Date` is more than this many days before `now`.
    pub fn check_age(&self, max_age_days: Option<u16>, now: Timestamp) -> Result<(), AptError> {
        let Some(days) = max_age_days else { return Ok(()) };
        let oldest = now.saturating_sub(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(Timestamp::MIN);
        if self.date < oldest { Err(AptError::Aged { file: self.file, date: self.date, days, now }) } else { Ok(()) }
    }

    fn check_times(&self, valid_until: Option<Timestamp>, expect: &Expect<'_>) -> Result<(), AptError> {
        let (file, date, now) = (self.file, self.date, expect.now);
        if date > now.saturating_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX) {
            return Err(AptError::Future { file, date, now });
        }
        match (expect.previous, valid_until) {
            (Some(previous), _) if date < previous => Err(AptError::Older { file, date, previous }),
            (_, Some(until)) if until < now => Err(AptError::Stale { file, until, now }),
            _ => Ok(()),
        }
    }

    /// The expected suite or codename, which it matches.
    pub fn suite(&self) -> &str {
        &self.suite
    }

    pub fn date(&self) -> Timestamp {
        self.date
    }

    /// Its `Valid-Until`, if any.
    pub fn valid_until(&self) -> Option<Timestamp> {
        self.valid_until
    }

    /// Fingerprints of the trusted primary keys that signed it, upper-case hexadecimal, sorted.
    pub fn signers(&self) -> &[String] {
        &self.signers
    }

    /// The time of the last signature, or its `Date` if that is later.
    pub fn signed(&self) -> Timestamp {
        self.signed
    }

    /// Whether the archive offers its indexes by digest.
    pub fn acquire_by_hash(&self) -> bool {
        self.acquire_by_hash
    }

    /// The files of the index of packages for a component and an architecture, in order of preference; never empty. A
    /// flat archive has no components, and one index for all architectures.
    pub fn indexes(&self, component: Option<&str>, arch: &str) -> Result<Vec<IndexFile>, AptError> {
        if let Some(path) = component.into_iter().chain([arch]).find(|part| fields::relative(part) != Some(part)) {
            return Err(AptError::Path { file: self.file.to_owned(), path: path.to_owned() });
        }
        let dir = component.map(|component| format!("{component}/binary-{arch}/")).unwrap_or_default();
        let plain = format!("{dir}Packages");
        let content_size = self.files.get(&plain).map(|listed| listed.size);
        let index = |compression: Compression| {
            let path = format!("{plain}{}", compression.suffix());
            let Listed { size, digest } = *self.files.get(&path)?;
            let section = if matches!(digest, Digest::Sha256(_)) { "SHA256" } else { "SHA512" };
            let by_hash = self.acquire_by_hash.then(|| format!("{dir}by-hash/{section}/{}", digest.hex()));
            Some(IndexFile { path, by_hash, size, digest, compression, arch: arch.to_owned(), content_size })
        };
        let indexes: Vec<IndexFile> = Compression::ALL.into_iter().filter_map(index).collect();
        if indexes.is_empty() {
            return Err(AptError::NoIndex { file: self.file, index: plain });
        }
        Ok(indexes)
    }
}

fn check_suite(file: &'static str, fields: &Fields<'_>, expected: &str) -> Result<(), AptError> {
    if is_flat(expected) {
        return Ok(());
    }
    let (suite, codename) = (fields.get("Suite")?, fields.get("Codename")?);
    if [suite, codename].contains(&Some(expected)) {
        return Ok(());
    }
    let name = |value: Option<&str>| value.unwrap_or("(none)").to_owned();
    Err(AptError::Suite { file, expected: expected.to_owned(), suite: name(suite), codename: name(codename) })
}

fn detached<'a>(
    release: &'a [u8],
    signature: &[u8],
    keyring: &Keyring,
    now: Timestamp,
) -> Result<(&'a str, FileSignature), AptError> {
    let signed = FileSignature::verify(signature, release, keyring, now).map_err(|source| {
        AptError::Message(Message::new("Release: verification of the signature Release.gpg failed").by(source))
    })?;
    let corrupt = |_| AptError::Corrupt { file: RELEASE.to_owned(), reason: "not UTF-8".to_owned() };
    Ok((str::from_utf8(release).map_err(corrupt)?, signed))
}

/// Parses a time such as `Sat, 14 Nov 2026 08:00:00 UTC`. Archives use UTC only, and apt refuses other zones, too; as
/// in apt, a wrong day of the week is ignored.
fn time(fields: &Fields<'_>, field: &'static str) -> Result<Option<Timestamp>, AptError> {
    let Some(text) = fields.get(field)? else { return Ok(None) };
    let parse = || {
        let (day, rest) = text.split_once(", ")?;
        let (civil, zone) = rest.rsplit_once(' ')?;
        let is_day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&day);
        let is_utc = ["UTC", "GMT", "Z", "+0000"].contains(&zone);
        let civil = DateTime::strptime("%d %b %Y %H:%M:%S", civil).ok().filter(|_| is_day && is_utc)?;
        TimeZone::UTC.to_timestamp(civil).ok()
    };
    parse().map(Some).ok_or_else(|| fields.corrupt(format!("{field} {text:?} is not a valid time in UTC")))
}

/// The files of the SHA256 section or, if it is missing, of the SHA512 section: archives list every file with all
/// digests, and Debian's Packages has SHA256 only.
fn files(file: &'static str, fields: &Fields<'_>) -> Result<BTreeMap<String, Listed>, AptError> {
    let (algorithm, lines) = match (fields.list("SHA256")?, fields.list("SHA512")?) {
        (Some(lines), _) => ("sha256", lines),
        (None, Some(lines)) => ("sha512", lines),
        (None, None) => return Err(AptError::Weak { file: file.to_owned() }),
    };
    let mut files = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        let (path, listed) = listed(algorithm, line).ok_or_else(|| {
            fields.corrupt(format!("invalid line {line:?}: expected a {algorithm} digest, a length and a path"))
        })?;
        let path = path.strip_prefix("./").unwrap_or(path);
        if files.insert(path.to_owned(), listed).is_some_and(|other| other != listed) {
            return Err(fields.corrupt(format!("{path} is listed twice, with different values")));
        }
    }
    Ok(files)
}

fn listed<'a>(algorithm: &str, line: &'a str) -> Option<(&'a str, Listed)> {
    let mut words = line.split_ascii_whitespace();
    let (hex, size, path) = (words.next()?, words.next()?, words.next()?);
    let listed = Listed { size: fields::size(size)?, digest: fields::digest(algorithm, hex)? };
    words.next().is_none().then_some((path, listed))
}
