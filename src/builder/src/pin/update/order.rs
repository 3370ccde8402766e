//! Which of two versions is the older one.

use debversion::Version;

use crate::pin::sources::VersionSource;

/// Whether an upstream offers less than what is pinned: it, or somebody in its place, went back.
///
/// A version that the sources themselves state may be any. Versions are ordered as Debian does (deb-version(7)), and what
/// stands behind a hyphen of an upstream's own version makes it an earlier one, as in `2.0.0-rc.1` (Semantic Versioning 2.0.0).
/// Two texts that cannot be compared are taken as they come.
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

#[cfg(test)]
mod tests {
    use super::*;

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
