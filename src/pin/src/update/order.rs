//! Compares versions to detect downgrades.

use debversion::Version;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::sources::VersionSource;

/// Whether upstream offers an older version than the pinned one, which may be an attack.
///
/// Versions stated in the sources are always accepted. Versions are ordered as in Debian (deb-version(7)), and a hyphen
/// in an upstream version starts a pre-release, as in `2.0.0-rc.1` (Semantic Versioning 2.0.0). Versions that cannot be
/// compared are accepted.
pub(super) fn is_downgrade(source: &VersionSource, pinned: &str, found: &str) -> bool {
    let read = |text: &str| match source {
        VersionSource::Pinned(_) | VersionSource::SameAs(_) => None,
        VersionSource::Apt { .. } => text.parse().ok(),
        _ => Version::parse_lenient(&text.replace('-', "~")).ok(),
    };
    match (read(pinned), read(found)) {
        (Some(pinned), Some(found)) => found < pinned,
        _ => false,
    }
}

/// Whether the version is known to be that of a past time: archives have snapshots, stated versions do not change, and
/// a version such as `20260901-2299` is of the day that it starts with. `found` looks up the version.
pub(super) fn is_as_of<E>(
    source: &VersionSource,
    found: impl FnOnce() -> Result<String, E>,
    at: Timestamp,
) -> Result<bool, E> {
    if matches!(source, VersionSource::Apt { .. } | VersionSource::Pinned(_) | VersionSource::SameAs(_)) {
        return Ok(true);
    }
    let version = found()?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let day = Date::strptime("%Y%m%d", digits).ok().filter(|_| digits.len() == "YYYYMMDD".len());
    Ok(day.is_some_and(|day| day < at.to_zoned(TimeZone::UTC).date()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_of_the_past_are_of_a_past_time() {
        let at = "2026-09-01T00:00:00Z".parse().unwrap();
        let json = VersionSource::Github("a/b".to_owned());
        let is_as_of = |source, found: &str| super::is_as_of(source, || Ok::<_, ()>(found.to_owned()), at).unwrap();
        for (found, expected) in [
            ("20260831-2299", true),
            ("20260901-2300", false),
            ("20260914-1", false),
            ("1.2", false),
            ("2026083", false),
        ] {
            assert_eq!(is_as_of(&json, found), expected, "{found}");
        }
        assert!(is_as_of(&VersionSource::Pinned("1".to_owned()), ""));
    }

    #[test]
    fn upstreams_that_go_back_are_noticed() {
        let github = VersionSource::Github("a/b".to_owned());
        let apt = VersionSource::Apt { archive: "a".to_owned(), package: "b".to_owned() };
        for (source, pinned, found, back) in [
            (&github, "2.2.1", "2.2.0", true),
            (&github, "2.2.1", "2.10.0", false),
            (&github, "2.2.1", "2.2.1", false),
            (&github, "2.0.0", "2.0.0-rc.1", true),
            (&github, "20261110-2299", "20261111-1", false),
            (&github, "20261110-2299", "20261110-2298", true),
            (&apt, "1:4.17.4-2", "1:4.17.4-2+deb13u1", false),
            (&apt, "1:4.17.4-2", "4.18-1", true),
            (&VersionSource::Pinned("1".to_owned()), "2", "1", false),
        ] {
            assert_eq!(is_downgrade(source, pinned, found), back, "{pinned} {found}");
        }
    }
}
