//! Selects the newest version of a bundle from the tags of a repository.
//!
//! A tag is a version with `_` in place of `+`. Pre-releases are considered only if the locked version is one, or if there is no other
//! version.

use vmbake_release::version::Version;

/// The tag with the highest version. Of tags that are equal in order, such as `1` and `1.0`, the longest one.
pub fn newest(tags: &[String], known: Option<&Version>) -> Option<(Version, String)> {
    let version = |tag: &String| Some((tag.replace('_', "+").parse::<Version>().ok()?, tag.clone()));
    let all: Vec<(Version, String)> = tags.iter().filter_map(version).collect();
    let takes_all = known.is_some_and(Version::is_pre_release) || all.iter().all(|(one, _)| one.is_pre_release());
    all.into_iter().filter(|(one, _)| takes_all || !one.is_pre_release()).max_by(|(one, tag), (other, other_tag)| {
        one.compare(other).then_with(|| (tag.len(), tag).cmp(&(other_tag.len(), other_tag)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_is_chosen() {
        for (tags, known, expected) in [
            (&["1.2", "1.10", "1.9", "latest", "sha256-0a"][..], None, Some("1.10")),
            (&["1.0_rke2r2", "1.0_rke2r10", "1.0"], None, Some("1.0_rke2r10")),
            (&["1.0", "2.0-rc.1"], Some("1.0"), Some("1.0")),
            (&["1.0", "2.0-rc.1"], Some("2.0-beta"), Some("2.0-rc.1")),
            (&["2.0-rc.1", "2.0-rc.2"], None, Some("2.0-rc.2")),
            (&["1", "1.0"], None, Some("1.0")),
            (&["1.0", "1"], None, Some("1.0")),
            (&["latest", "v1"], None, None),
            (&[], None, None),
        ] {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let known = known.map(|known| known.parse().unwrap());
            let found = newest(&tags, known.as_ref()).map(|(_, tag)| tag);
            assert_eq!(found.as_deref(), expected, "{tags:?}");
        }
    }
}
