//! Verifies the signatures of an index: all attached bundles are candidates, regardless of their origin.

use vmbake_bake::release::sign::MEDIA_TYPE;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_oci::Descriptor;
use vmbake_proof::sigstore::{self, BundlePolicy, Signer};
use vmbake_store::registry::Repository;

use super::PullRequest;
use super::error::PullError;
use crate::document::{ArtifactManifest, EMPTY};
use crate::signature::SIGNATURE;

/// Maximum number of bundles to try. Anyone with write access to the repository can add some.
const MAX_TRIED: usize = 64;
/// Maximum size of a bundle.
const MAX_BUNDLE: u64 = 1 << 20;

/// The names of the signers, which must include all required ones.
pub(super) fn check(request: &PullRequest<'_>, index: &Digest) -> Result<Vec<String>, PullError> {
    if request.signers.is_empty() {
        return match request.allow_unsigned {
            true => Ok(Vec::new()),
            false => Err(PullError::NoSigner { name: request.reference.to_string() }),
        };
    }
    let bundles = bundles(request.repository, index)?;
    let mut signed_by = Vec::new();
    for named in request.signers {
        let mut reason = "no signature attached".to_owned();
        let holds = bundles.iter().any(|bundle| match holds(request, index, bundle, &named.signer) {
            Ok(()) => true,
            Err(message) => {
                reason = message;
                false
            }
        });
        if !holds {
            return Err(PullError::Unsigned { digest: Box::new(*index), signer: named.name.clone(), reason });
        }
        signed_by.push(named.name.clone());
    }
    Ok(signed_by)
}

fn holds(request: &PullRequest<'_>, index: &Digest, bundle: &[u8], signer: &Signer) -> Result<(), String> {
    let predicate_type = Some(SIGNATURE);
    let policy = BundlePolicy { signer: signer.clone(), predicate_type, subject_name: None, now: request.now };
    match sigstore::verify(bundle, &[*index], &policy, request.root) {
        Ok(_) => Ok(()),
        Err(error) => Err(escape::chain(&error)),
    }
}

/// The bundles attached to the index that may be signatures.
pub fn bundles(repository: &Repository, index: &Digest) -> Result<Vec<Vec<u8>>, PullError> {
    let kind = |entry: &Descriptor| match entry.artifact_type.as_deref() {
        Some(MEDIA_TYPE) => Some(0),
        // cosign 2 lists the media type of the config, if any, in the list at the referrers tag.
        Some(EMPTY) | None => Some(1),
        _ => None,
    };
    let mut entries: Vec<Descriptor> = repository.referrers(index)?;
    entries.retain(|entry| kind(entry).is_some());
    entries.sort_by_key(|entry| kind(entry));
    let mut found = Vec::new();
    for entry in entries.into_iter().take(MAX_TRIED) {
        let manifest = repository.manifest(&entry.digest.to_string())?;
        // An unsupported attachment may be for other tools.
        let Ok(manifest) = serde_json::from_slice::<ArtifactManifest>(&manifest.bytes) else { continue };
        if let [layer] = &manifest.layers[..]
            && layer.size <= MAX_BUNDLE
            && layer.media_type.to_string() == MEDIA_TYPE
        {
            found.push(repository.read_blob(&layer.digest, layer.size)?);
        }
    }
    Ok(found)
}
