//! Checks that a signed release has the requested name and is not older than the previous pull.

use crate::digest::Digest;
use crate::distribute::release::binding::ReleaseBinding;
use crate::distribute::release::document::ReleaseIndex;
use crate::distribute::version::Version;
use crate::oci::RemoteName;

use super::PullRequest;
use super::error::PullError;
use super::seen::SeenRelease;

/// Compares name and version; returns the version, if there is one. A digest names one content, which can be no other.
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
    if request.reference.digest.is_some() || request.signers.is_empty() {
        return Ok(text);
    }
    let asked = request.name.unwrap_or(request.reference.repository.name());
    if let Some(found) = binding.map(|binding| binding.name).filter(|name| name != asked) {
        let (name, asked) = (request.reference.to_string(), asked.to_owned());
        return Err(PullError::Name { name, asked, found });
    }
    let name = request.reference.to_string();
    let decide = |seen: Option<&SeenRelease>| match (seen, version) {
        (None, version) => Ok(version.map(|version| (version, *digest))),
        (Some(seen), Some(version)) if version.compare(&seen.version).is_gt() => Ok(Some((version, *digest))),
        (Some(seen), Some(version)) if version.compare(&seen.version).is_eq() && seen.digest == *digest => Ok(None),
        // The recorded version stays: the next pull without the option is refused again.
        (Some(_), _) if request.allow_downgrade => Ok(None),
        (Some(seen), version) => Err(refusal(name, seen, version, digest)),
    };
    request.seen.update(&reference(request.reference), decide)?;
    Ok(text)
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

/// The key of the record: the reference without its digest.
fn reference(name: &RemoteName) -> String {
    RemoteName { digest: None, ..name.clone() }.to_string()
}
