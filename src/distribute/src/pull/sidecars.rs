//! The files beside an image: the config names them with their digests, so the registry cannot choose them. Signatures are what refers to
//! the index under the names of signatures; whoever verifies the files judges them.

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
use crate::release::document::{ArtifactManifest, TITLE};
use crate::release::{MAX_ATTACHED, is_signature};

/// Longest signature that is read.
const MAX_SIGNATURE: u64 = 1 << 20;
/// As many signatures are taken along.
const MAX_SIGNATURES: usize = 64;

/// Files beside an image, by name.
#[derive(Debug)]
pub(super) struct Sidecars {
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Sidecars {
    /// Downloads them, and looks whether the provenance is of this image.
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
            None => return Err(invalid(format!("the release has no {provenance}"))),
        }
        for (name, content) in signatures(request, index, image)? {
            files.entry(name).or_insert(content);
        }
        Ok(Self { files })
    }

    /// Fails if something else is where the image or one of these goes to, unless it may be replaced.
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
    let statement = json::parse(text).map_err(|error| format!("the provenance is no JSON: {error}"))?;
    if statement["predicateType"] != PREDICATE_TYPE {
        return Err("the provenance is none".to_owned());
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
        false => Err(format!("the provenance does not speak of {file} with {}", image.config.checksum)),
    }
}

/// What refers to the index under the name of a signature of one of these files.
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
