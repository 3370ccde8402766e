//! Checks that a signed release has the requested name and is not older than the previous pull.

use crate::binding::ReleaseBinding;
use crate::document::ReleaseIndex;
use crate::version::Version;
use vmbake_common::digest::Digest;
use vmbake_oci::RemoteName;

use super::PullRequest;
use super::error::PullError;
use super::rollback::SeenRelease;

/// Compares name and version; returns the version, if there is one. A digest identifies the content already.
pub(super) fn check(
    request: &PullRequest<'_>,
    digest: &Digest,
    index: &ReleaseIndex,
) -> Result<Option<String>, PullError> {
    let binding = ReleaseBinding::read(digest, &index.annotations)
        .map_err(|(digest, reason)| PullError::Invalid { digest: Box::new(digest), reason })?;
    let version = binding.as_ref().and_then(|binding| binding.version.clone());
    let text = version.as_ref().map(Version::to_string);
    // An unsigned index proves nothing.
    let is_compared = request.reference.digest.is_none() && !request.signers.is_empty();
    check_name(request.reference, request.name, is_compared, binding.as_ref())?;
    if !is_compared {
        return Ok(text);
    }
    let name = request.reference.to_string();
    let decide = |seen: Option<&SeenRelease>| match (seen, version) {
        (None, version) => Ok(version.map(|version| (version, *digest))),
        (Some(seen), Some(version)) if version.compare(&seen.version).is_gt() => Ok(Some((version, *digest))),
        (Some(seen), Some(version)) if version.compare(&seen.version).is_eq() && seen.digest == *digest => Ok(None),
        // The recorded version is kept: the next pull without the option is refused again.
        (Some(_), _) if request.allow_downgrade => Ok(None),
        (Some(seen), version) => Err(refusal(name, seen, version, digest)),
    };
    request.seen.update(&reference(request.reference), decide)?;
    Ok(text)
}

/// Compares the name with the requested one, by default that of the repository.
fn check_name(
    reference: &RemoteName,
    asked: Option<&str>,
    is_compared: bool,
    binding: Option<&ReleaseBinding>,
) -> Result<(), PullError> {
    let default = || is_compared.then(|| reference.repository.name());
    let Some(expected) = asked.or_else(default) else { return Ok(()) };
    let name = reference.to_string();
    match binding.map(|binding| &binding.name) {
        Some(found) if found != expected => {
            Err(PullError::Name { name, asked: expected.to_owned(), found: found.clone() })
        }
        None if asked.is_some() => Err(PullError::Unbound { name, asked: expected.to_owned() }),
        _ => Ok(()),
    }
}

fn refusal(name: String, seen: &SeenRelease, version: Option<Version>, digest: &Digest) -> PullError {
    let newest = seen.version.to_string();
    match version.map(|version| (version.to_string(), version.compare(&seen.version).is_eq())) {
        Some((version, true)) => {
            let (seen, found) = (Box::new(seen.digest), Box::new(*digest));
            PullError::SameVersion { name, version, seen, found }
        }
        Some((version, false)) => PullError::Older { name, version, newest },
        None => PullError::Unversioned { name, newest },
    }
}

/// The key of the record: the normalized repository name with the tag.
fn reference(name: &RemoteName) -> String {
    let tag = name.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
    name.repository.canonical() + &tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_host_share_a_record() {
        let of = |text: &str| super::reference(&text.parse().unwrap());
        assert_eq!(of("H.example:443/images:1"), of("h.example/images:1"));
        assert_eq!(of("localhost:05000/a/b:T"), "localhost:5000/a/b:T");
        assert_ne!(of("h.example:5000/images:1"), of("h.example/images:1"));
    }

    #[test]
    fn a_name_that_was_asked_for_is_compared_in_every_case() {
        let reference: RemoteName = "h.example/images:1".parse().unwrap();
        let named = |name: &str| ReleaseBinding { name: name.to_owned(), version: None };
        for is_compared in [true, false] {
            let check = |asked, binding: Option<&ReleaseBinding>| check_name(&reference, asked, is_compared, binding);
            let error = check(Some("images"), None).unwrap_err();
            assert!(matches!(&error, PullError::Unbound { asked, .. } if asked == "images"), "{error}");
            let error = check(Some("images"), Some(&named("other"))).unwrap_err();
            assert!(matches!(&error, PullError::Name { found, .. } if found == "other"), "{error}");
            check(Some("other"), Some(&named("other"))).unwrap();
            check(None, None).unwrap();
            assert_eq!(check(None, Some(&named("other"))).is_err(), is_compared);
        }
    }
}
