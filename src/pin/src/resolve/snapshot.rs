//! Snapshots of archives, in the layout of snapshot.debian.org: a directory for each time at which an archive was
//! copied.
//!
//! Finds the last copy of a suite at or before a time. A server redirects any time to that copy, or serves only the
//! copies and a list of them for each month.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil::DateTime};
use vmbake_common::message;

use super::{MAX_DOCUMENT, ResolveError, Resolver};
use crate::sources::Archive;
use vmbake_manifest::ArchiveSnapshot;
use vmbake_proof::apt::Release;
use vmbake_store::http::{HttpError, Request};

/// Length of a time such as `20260901T000000Z`.
const TIME_LEN: usize = 16;
/// Number of monthly lists to read, starting with that of the requested time: archives are copied several times a day.
const MONTHS: usize = 2;

/// The last copy of an archive at or before a time.
pub(super) struct Copied {
    /// Its URL, without a trailing `/`.
    pub(super) url: String,
    at: Timestamp,
    time: Timestamp,
}

impl Copied {
    /// The record for the manifest.
    pub(super) fn snapshot(&self, release: &Release) -> ArchiveSnapshot {
        ArchiveSnapshot { at: self.at, copied: self.time, valid_until: release.valid_until() }
    }
}

impl Resolver<'_> {
    /// The last copy of the archive at `base`, at or before `at`.
    pub(super) fn copied(
        &self,
        name: &str,
        archive: &Archive,
        base: &str,
        suite: &str,
        at: Timestamp,
    ) -> Result<Copied, ResolveError> {
        let none = || ResolveError::NoSnapshot { archive: name.to_owned() };
        let place = |time| archive.snapshot_of(base, time).ok_or_else(none);
        let directory = Archive::index_directory(&place(at)?, suite);
        let asked = format!("{directory}/InRelease");
        // The oldest copies have only a `Release` with a detached signature.
        let answered = match self.answered(&asked) {
            Err(error) if error.is_absent() => self.answered(&format!("{directory}/Release")).map_err(|_| error),
            found => found,
        };
        let time = match answered {
            Ok(url) => times(&url).next_back().unwrap_or(at),
            Err(error) if error.is_absent() => self.listed(archive, at)?.ok_or(error)?,
            Err(error) => return Err(error.into()),
        };
        if time > at {
            return Err(ResolveError::Message(message!(
                "{asked}: the server returned the snapshot of {time}, which is later than {at}"
            )));
        }
        Ok(Copied { url: place(time)?, at, time })
    }

    /// The URL of a document after redirects.
    fn answered(&self, url: &str) -> Result<String, HttpError> {
        self.client.send(&Request::get(url), |answer| {
            let url = answer.url.clone();
            answer.read(MAX_DOCUMENT).map(|_| url)
        })
    }

    /// The time of the last copy at or before `at`, from the server's lists.
    fn listed(&self, archive: &Archive, at: Timestamp) -> Result<Option<Timestamp>, ResolveError> {
        let Some(snapshot) = &archive.snapshot else { return Ok(None) };
        let mut day = at;
        for _ in 0..MONTHS {
            let civil = day.to_zoned(TimeZone::UTC);
            let url = format!("{}/?year={}&month={}", snapshot.trim_end_matches('/'), civil.year(), civil.month());
            let list = self.document(&url)?;
            if let Some(last) = times(&String::from_utf8_lossy(&list)).filter(|time| *time <= at).max() {
                return Ok(Some(last));
            }
            // The last day of the previous month.
            day = day.saturating_sub(SignedDuration::from_hours(24 * i64::from(civil.day()))).unwrap_or(day);
        }
        Ok(None)
    }
}

/// The times in a text.
fn times(text: &str) -> impl DoubleEndedIterator<Item = Timestamp> {
    let is_part = |c: char| c.is_ascii_digit() || c == 'T' || c == 'Z';
    let words = text.split(move |c| !is_part(c)).filter(|word| word.len() == TIME_LEN);
    words.filter_map(|word| {
        let civil = DateTime::strptime("%Y%m%dT%H%M%SZ", word).ok()?;
        TimeZone::UTC.to_timestamp(civil).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_addresses_and_lists() {
        let found = |text: &str| times(text).map(|time| time.to_string()).collect::<Vec<_>>();
        assert_eq!(
            found("https://s.example/archive/debian/20260831T203412Z/dists/x/InRelease"),
            ["2026-08-31T20:34:12Z"]
        );
        assert_eq!(
            found(r#"<a href="20260901T000000Z/">2026-09-01</a> <a href="./20260901T060000Z/">"#),
            ["2026-09-01T00:00:00Z", "2026-09-01T06:00:00Z"]
        );
        assert!(found("20261301T000000Z 120260901T000000Z 20260901").is_empty());
    }
}
