//! `vmbake bundle push`: uploads a packed bundle to a repository of a registry: blobs, manifests, index and signature in this order, and
//! the tag last.

use std::collections::BTreeSet;

use serde::Serialize;

use super::error::BundleError;
use super::pack::blob_name;
use super::packed::PackedContents;
use super::place::BundlePlace;
use vmbake_common::digest::Digest;
use vmbake_oci::Descriptor;
use vmbake_release::document::{ArtifactManifest, INDEX, MANIFEST, ReleaseIndex};
use vmbake_store::http::Payload;
use vmbake_store::registry::{Arrival, Repository};

/// Longest blob that is held in memory.
const MAX_MEMORY: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BundlePushReport {
    /// Digest of the index.
    pub digest: String,
    /// The tag that it now has.
    pub tag: String,
    /// Blobs that were sent.
    pub sent: u64,
    /// Blobs that were there.
    pub reused: u64,
    /// Signatures that were attached.
    pub signatures: u64,
}

/// Pushes a bundle. A tag that refers to something else is moved only with `force`.
pub fn push(
    packed: &PackedContents,
    repository: &Repository,
    tag: &str,
    force: bool,
) -> Result<BundlePushReport, BundleError> {
    let found = if force { None } else { repository.tag(tag)? };
    if let Some(found) = found.filter(|found| *found != packed.digest) {
        let (name, expected) = (format!("{}:{tag}", repository.name()), Box::new(packed.digest));
        return Err(BundleError::Tagged { name, expected, found: Box::new(found) });
    }
    let mut push =
        Push { from: &packed.place, to: repository, done: BTreeSet::new(), report: BundlePushReport::default() };
    let (digest, bytes) = packed.place.index()?;
    let index: ReleaseIndex = serde_json::from_slice(&bytes)?;
    for entry in &index.manifests {
        push.manifest(entry)?;
    }
    push.put(&digest, INDEX, &bytes)?;
    for entry in packed.place.attached(&digest)? {
        push.attach(&digest, &entry)?;
    }
    repository.put_manifest(tag, INDEX, &bytes)?;
    Ok(BundlePushReport { digest: digest.to_string(), tag: tag.to_owned(), ..push.report })
}

/// A push on its way.
struct Push<'a> {
    from: &'a BundlePlace,
    to: &'a Repository,
    done: BTreeSet<Digest>,
    report: BundlePushReport,
}

impl Push<'_> {
    /// Sends a manifest and all that it names.
    fn manifest(&mut self, entry: &Descriptor) -> Result<(), BundleError> {
        let bytes = self.named_by(entry)?;
        self.put(&entry.digest, MANIFEST, &bytes)
    }

    /// Sends all that a manifest names; returns the manifest.
    fn named_by(&mut self, entry: &Descriptor) -> Result<Vec<u8>, BundleError> {
        let bytes = self.from.document(entry)?;
        let manifest: ArtifactManifest = serde_json::from_slice(&bytes)?;
        std::iter::once(&manifest.config).chain(&manifest.layers).try_for_each(|blob| self.blob(blob))?;
        Ok(bytes)
    }

    fn attach(&mut self, index: &Digest, entry: &Descriptor) -> Result<(), BundleError> {
        if self.to.referrers(index)?.iter().any(|listed| listed.digest == entry.digest) {
            return Ok(());
        }
        let bytes = self.named_by(entry)?;
        self.to.attach(index, entry, MANIFEST, &bytes)?;
        self.report.signatures += 1;
        Ok(())
    }

    fn put(&self, digest: &Digest, media_type: &str, bytes: &[u8]) -> Result<(), BundleError> {
        if !self.to.has_manifest(digest)? {
            self.to.put_manifest(&digest.to_string(), media_type, bytes)?;
        }
        Ok(())
    }

    fn blob(&mut self, blob: &Descriptor) -> Result<(), BundleError> {
        if !self.done.insert(blob.digest) {
            return Ok(());
        }
        let arrival = match blob.size <= MAX_MEMORY {
            true => self.to.put_blob(&blob.digest, Payload::Bytes(&self.from.blob(blob, MAX_MEMORY)?), None)?,
            false => {
                let (file, offset) = self.from.file_of(&blob_name(&blob.digest))?;
                self.to.put_blob(&blob.digest, Payload::Range { file: &file, offset, len: blob.size }, None)?
            }
        };
        match arrival {
            Arrival::Sent => self.report.sent += 1,
            Arrival::There | Arrival::Mounted => self.report.reused += 1,
        }
        Ok(())
    }
}
