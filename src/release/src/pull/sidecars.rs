//! The files next to an image: listed with their digests in the config, so the registry cannot choose them. Signatures
//! are found among the referrers of the index by name, and are verified later together with the files.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::provenance::PREDICATE_TYPE;
use vmbake_bake::release::sign::MEDIA_TYPE;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_proof::sigstore::json;

use super::PullRequest;
use super::error::PullError;
use super::wanted::{WantedImage, is_plain};
use crate::document::{ArtifactManifest, TITLE};
use crate::{MAX_ATTACHED, is_signature};

/// Maximum size of a signature.
const MAX_SIGNATURE: u64 = 1 << 20;
/// Maximum number of signatures.
const MAX_SIGNATURES: usize = 64;

/// Files next to an image, by name.
#[derive(Debug)]
pub(super) struct Sidecars {
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Sidecars {
    /// Downloads them, and checks that the provenance is for this image.
    pub(super) fn fetch(request: &PullRequest<'_>, index: &Digest, image: &WantedImage) -> Result<Self, PullError> {
        let mut files = BTreeMap::new();
        for (name, digest) in &image.config.files {
            files.insert(name.clone(), request.repository.read_blob(digest, MAX_ATTACHED)?);
        }
        let provenance = Sidecar::Provenance.file_name(&image.config.name);
        let invalid = |reason: String| {
            let digest = image.config.files.get(&provenance).copied().unwrap_or(*index);
            PullError::Invalid { digest: Box::new(digest), reason }
        };
        match files.get(&provenance) {
            Some(text) => is_provenance(text, image).map_err(invalid)?,
            None => return Err(invalid(format!("no {provenance} in the release"))),
        }
        for (name, content) in signatures(request, index, image)? {
            files.entry(name).or_insert(content);
        }
        Ok(Self { files })
    }

    /// Fails if the image or one of its files exists with other contents, unless it may be replaced.
    pub(super) fn check_room(&self, request: &PullRequest<'_>, image: &Path) -> Result<(), PullError> {
        if request.force {
            return Ok(());
        }
        let is_other = |name: &String, content: &Vec<u8>| match input::read(&request.out.join(name), input::MAX_INPUT) {
            Ok(found) => found != *content,
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        let other = self.files.iter().find(|(name, content)| is_other(name, content));
        let other = other.map(|(name, _)| request.out.join(name));
        match other.or_else(|| image.symlink_metadata().ok().map(|_| image.to_owned())) {
            Some(path) => Err(PublishError::Exists { path }.into()),
            None => Ok(()),
        }
    }
}

/// Whether a statement is the provenance of an image with that name and checksum.
fn is_provenance(text: &[u8], image: &WantedImage) -> Result<(), String> {
    let statement = json::parse(text).map_err(|error| format!("provenance is not valid JSON: {error}"))?;
    if statement["predicateType"] != PREDICATE_TYPE {
        return Err("provenance has an unexpected type".to_owned());
    }
    let (algorithm, digest) = match image.config.checksum {
        Checksum::Verity(digest) => ("fsverity_sha256", digest),
        Checksum::Bytes(digest) => (digest.algorithm(), digest),
    };
    let file = image.file_name();
    let is_image =
        |subject: &Value| subject["name"] == file.as_str() && subject["digest"][algorithm] == digest.hex().as_str();
    match statement["subject"].as_array().is_some_and(|subjects| subjects.iter().any(is_image)) {
        true => Ok(()),
        false => Err(format!("provenance does not cover {file} with {}", image.config.checksum)),
    }
}

/// Referrers of the index with the name of a signature of one of these files.
fn signatures(
    request: &PullRequest<'_>,
    index: &Digest,
    image: &WantedImage,
) -> Result<Vec<(String, Vec<u8>)>, PullError> {
    let is_wanted = |name: &String| is_plain(name) && is_signature(name, image.config.files.keys().map(String::as_str));
    let mut found = Vec::new();
    for entry in request.repository.referrers(index)? {
        let name = entry.annotations.get(TITLE).filter(|name| is_wanted(name));
        let (Some(name), Some(MEDIA_TYPE)) = (name, entry.artifact_type.as_deref()) else { continue };
        if found.len() == MAX_SIGNATURES {
            break;
        }
        let manifest = request.repository.manifest(&entry.digest.to_string())?;
        let Ok(manifest) = serde_json::from_slice::<ArtifactManifest>(&manifest.bytes) else { continue };
        if let [layer] = &manifest.layers[..]
            && layer.size <= MAX_SIGNATURE
        {
            found.push((name.clone(), request.repository.read_blob(&layer.digest, layer.size)?));
        }
    }
    Ok(found)
}
