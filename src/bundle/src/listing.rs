//! Reads `index.json` of an image layout: its descriptors in; the index of the bundle and the attached signatures out.
//!
//! `pack` lists the index, with its artifact type, and the signature. Tools that copy a bundle rewrite the file: `oras` lists every
//! manifest, and the index without its artifact type; `skopeo` lists only the index, and the signature only with the tag `sha256-HEX` of a
//! registry without a referrers API (OCI distribution specification 1.1, "Referrers Tag Schema"). Properties that a descriptor lacks are
//! read from its document, by digest.

use std::path::Path;

use super::error::BundleError;
use super::pack::BUNDLE;
use vmbake_bake::release::sign::MEDIA_TYPE;
use vmbake_common::digest::Digest;
use vmbake_oci::{Descriptor, Index, REF_NAME};
use vmbake_release::document::{ArtifactManifest, EMPTY, INDEX, MANIFEST, ReleaseIndex};

/// As many documents are looked at, of indexes and of signatures.
const MAX_TRIED: usize = 64;

/// Reads the document of a descriptor.
type Reader<'a> = dyn Fn(&Descriptor) -> Result<Vec<u8>, BundleError> + 'a;

/// Whether a document is the index of a bundle.
pub(super) fn is_index(media_type: &str, artifact_type: &str) -> bool {
    media_type == INDEX && artifact_type == BUNDLE
}

/// The only bundle among what is listed, if there is one and no other; `path` is for messages.
pub(super) fn bundle(path: &Path, listed: &[Descriptor], read: &Reader<'_>) -> Result<Option<Descriptor>, BundleError> {
    let indexes: Vec<&Descriptor> = listed.iter().filter(|entry| entry.media_type.to_string() == INDEX).collect();
    if indexes.len() > MAX_TRIED {
        let what = format!("{} indexes in index.json, more than the limit of {MAX_TRIED}", indexes.len());
        return Err(BundleError::Limit { path: path.to_owned(), what });
    }
    let mut found: Option<&Descriptor> = None;
    for entry in indexes {
        let is_bundle = match entry.artifact_type.as_deref() {
            Some(kind) => kind == BUNDLE,
            None => serde_json::from_slice::<ReleaseIndex>(&read(entry)?)
                .is_ok_and(|index| is_index(&index.media_type, &index.artifact_type)),
        };
        // A bundle that has several tags is listed once for each.
        match found {
            Some(other) if is_bundle && other.digest != entry.digest => return Ok(None),
            _ if is_bundle => found = Some(entry),
            _ => {}
        }
    }
    Ok(found.cloned())
}

/// The manifests by which signatures are attached to `index`, those first that say it of themselves.
pub(super) fn attached(
    listed: Vec<Descriptor>,
    index: &Digest,
    read: &Reader<'_>,
) -> Result<Vec<Descriptor>, BundleError> {
    let tag = format!("{}-{}", index.algorithm(), index.hex());
    let (lists, mut entries): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|entry| entry.annotations.get(REF_NAME) == Some(&tag));
    for list in lists.iter().take(MAX_TRIED) {
        // An invalid list is ignored, and does not affect the rest.
        if let Ok(list) = serde_json::from_slice::<Index>(&read(list)?) {
            entries.extend(list.manifests);
        }
    }
    entries.retain(|entry| entry.media_type.to_string() == MANIFEST && rank(entry).is_some());
    entries.sort_by_key(rank);
    let mut found: Vec<Descriptor> = Vec::new();
    for mut entry in entries.into_iter().take(MAX_TRIED) {
        // One that is of no use to us may be of use to others.
        let Ok(manifest) = serde_json::from_slice::<ArtifactManifest>(&read(&entry)?) else { continue };
        let is_of_index = manifest.subject.is_some_and(|subject| subject.digest == *index);
        let is_signature = matches!(&manifest.layers[..], [layer] if layer.media_type.to_string() == MEDIA_TYPE);
        if is_of_index && is_signature && found.iter().all(|known| known.digest != entry.digest) {
            entry.artifact_type = Some(MEDIA_TYPE.to_owned());
            found.push(entry);
        }
    }
    Ok(found)
}

/// Whether what is listed may be a signature: it says so, or says nothing, or the type of its config.
fn rank(entry: &Descriptor) -> Option<u8> {
    match entry.artifact_type.as_deref() {
        Some(MEDIA_TYPE) => Some(0),
        Some(EMPTY) | None => Some(1),
        _ => None,
    }
}
