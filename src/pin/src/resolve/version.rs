//! Looks up the newest version of an artifact.

use serde_json::Value;
use vmbake_common::message;

use super::{ManifestContext, ResolveError, Resolver};
use crate::sources::{Template, VersionSource};
use crate::version::{MAX_LEN, is_version};

pub(super) fn find(
    resolver: &Resolver<'_>,
    place: ManifestContext<'_>,
    source: &VersionSource,
) -> Result<String, ResolveError> {
    match source {
        VersionSource::Pinned(version) => Ok(version.clone()),
        VersionSource::SameAs(name) => match place.versions.get(name) {
            Some(version) => Ok(version.clone()),
            None => Err(ResolveError::Needs { name: name.clone() }),
        },
        VersionSource::Github(repository) => {
            let url = format!("https://api.github.com/repos/{repository}/releases/latest");
            let tag = json(resolver, &url, "/tag_name")?;
            checked(&url, tag.strip_prefix('v').unwrap_or(&tag))
        }
        VersionSource::Json { url, pointer } => {
            let url = render(place, url)?;
            checked(&url, &json(resolver, &url, pointer)?)
        }
        VersionSource::Text { url, after, before } => {
            let url = render(place, url)?;
            let text = resolver.document(&url)?;
            let text = String::from_utf8_lossy(&text);
            checked(&url, between(&text, after, before.as_deref()).unwrap_or_default())
        }
        // The caller handles archives.
        VersionSource::Apt { package, .. } => Err(ResolveError::Needs { name: package.clone() }),
    }
}

fn render(place: ManifestContext<'_>, url: &Template) -> Result<String, ResolveError> {
    if let Some(name) = url.versions_of().find(|name| !place.versions.contains_key(*name)) {
        return Err(ResolveError::Needs { name: name.to_owned() });
    }
    url.render(&place.values()).map_err(|source| ResolveError::Template { place: "version", source })
}

fn json(resolver: &Resolver<'_>, url: &str, pointer: &str) -> Result<String, ResolveError> {
    let document: Option<Value> = serde_json::from_slice(&resolver.document(url)?).ok();
    let found = document.as_ref().and_then(|document| document.pointer(pointer)?.as_str());
    found.map(str::to_owned).ok_or_else(|| {
        ResolveError::Message(message!("{url}: not a JSON document with {}", format!("a string at {pointer}")))
    })
}

/// The first text between `after` and `before`, which defaults to the end of the line.
fn between<'a>(text: &'a str, after: &str, before: Option<&str>) -> Option<&'a str> {
    let start = text.find(after)? + after.len();
    let rest = text.get(start..)?;
    match before {
        Some(before) => rest.split_once(before).map(|(version, _)| version),
        None => rest.lines().next().map(str::trim),
    }
}

/// A version becomes part of URLs and file names, so it is validated.
fn checked(url: &str, version: &str) -> Result<String, ResolveError> {
    if !is_version(version) {
        let found: String = version.chars().take(MAX_LEN).collect();
        return Err(ResolveError::Message(message!("{url}: {found:?} is not a valid version")));
    }
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_cut_out_and_checked() {
        let text = "const (\n\tDefaultSandboxImage = \"registry.k8s.io/pause:3.10\"\n)";
        assert_eq!(between(text, "pause:", Some("\"")), Some("3.10"));
        assert_eq!(between("v1.33.1\n", "v", None), Some("1.33.1"));
        assert_eq!(between(text, "none:", None), None);
        assert_eq!(checked("u", "1.2.3-rc.1+x~y").unwrap(), "1.2.3-rc.1+x~y");
        for wrong in ["", "../x", "1/2", "1 2", ".", "1\n", "é", &"1".repeat(200)] {
            assert!(checked("u", wrong).is_err(), "{wrong}");
        }
    }
}
