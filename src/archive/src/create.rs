//! Writes an archive in one pass: documents first, so that readers know what follows.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ArchiveError;
use super::document::{ArchiveIndex, SINCE};
use super::earlier::Earlier;
use super::parts::PartWriter;
pub use super::plan::Catalogs;
use super::plan::{ArchivePlan, BlobContent};
use super::tar::{END, header, padding};
use vmbake_bake::release::key::PrivateKey;
use vmbake_bake::release::sign::sign_document;
use vmbake_common::digest::Digest;
use vmbake_common::progress::Progress;
use vmbake_oci::{INDEX, MARKER, MARKER_FILE};
use vmbake_store::store::Store;

/// The contents of an archive.
pub struct ArchiveRequest<'a> {
    /// Manifests whose inputs to include.
    pub manifests: &'a [PathBuf],
    /// Baked images: their files, and the inputs that they were baked from.
    pub images: &'a [PathBuf],
    /// Whether to include the inputs of images.
    pub with_inputs: bool,
    /// Whether to include the files of images.
    pub with_images: bool,
    /// Base image, if a manifest pins a local file.
    pub base: Option<&'a Path>,
    /// Layers, sources and trust anchors.
    pub catalogs: &'a Catalogs,
    /// The contents that the site has already.
    pub since: Option<&'a Earlier>,
    pub out: &'a Path,
    /// Maximum size of a part in bytes.
    pub split: Option<u64>,
    /// Whether existing files may be replaced.
    pub force: bool,
    /// The store with the blobs.
    pub store: &'a Store,
    /// The key that signs the index.
    pub key: Option<&'a PrivateKey>,
    /// Threads for hashing.
    pub threads: NonZeroUsize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrittenArchive {
    pub parts: Vec<PathBuf>,
    /// Digest of its index, which covers all contents.
    pub index: Digest,
    pub blobs: usize,
    /// Its length in bytes.
    pub length: u64,
    /// The signature of its index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<PathBuf>,
}

/// Writes an archive.
pub fn create(request: &ArchiveRequest<'_>, progress: &Progress) -> Result<WrittenArchive, ArchiveError> {
    let mut annotations = BTreeMap::new();
    if let Some(since) = request.since {
        annotations.insert(SINCE.to_owned(), since.digest.to_string());
    }
    let held = request.since.map(|since| since.blobs.clone()).unwrap_or_default();
    let mut plan = ArchivePlan::new(request.store, held);
    for manifest in request.manifests {
        plan.inputs(manifest, request.base, None, request.catalogs)?;
    }
    for image in request.images {
        if request.with_images {
            plan.image(image)?;
        }
        if request.with_inputs {
            plan.inputs_of(image, request.base, request.catalogs)?;
        }
    }
    plan.check(request.threads)?;
    let index = ArchiveIndex::of(plan.manifests.clone(), annotations);
    let index = serde_json::to_vec(&index).map_err(ArchiveError::Json)?;
    let (parts, length) = write(request, &plan, &index, progress)?;
    let bundle = request.key.map(|key| sign_document(request.out, &index, key)).transpose()?;
    Ok(WrittenArchive { parts, index: Digest::of(&index), blobs: plan.blobs.len(), length, bundle })
}

fn write(
    request: &ArchiveRequest<'_>,
    plan: &ArchivePlan<'_>,
    index: &[u8],
    progress: &Progress,
) -> Result<(Vec<PathBuf>, u64), ArchiveError> {
    let mut out = PartWriter::new(request.out, request.split, request.force)?;
    let bar = progress.bar("archiving", plan.blobs.values().map(|blob| blob.len).sum());
    for (name, bytes) in [(MARKER_FILE, MARKER.as_bytes()), (INDEX, index)] {
        let len = bytes.len() as u64;
        [&header(name, len)?, bytes, padding(len)].into_iter().try_for_each(|bytes| out.write(bytes))?;
    }
    for (digest, blob) in &plan.blobs {
        out.write(&header(&format!("blobs/{}/{}", digest.algorithm(), digest.hex()), blob.len)?)?;
        match (&blob.content, plan.open(digest, blob)?) {
            (BlobContent::Bytes(bytes), _) => out.write(bytes)?,
            (_, Some(file)) => out.copy(&file, blob.len)?,
            (_, None) => {
                return Err(ArchiveError::NoBlob { title: blob.title.clone(), digest: Box::new(*digest) });
            }
        }
        out.write(padding(blob.len))?;
        bar.inc(blob.len);
    }
    bar.finish_and_clear();
    out.write(&END)?;
    let length = out.total();
    Ok((out.publish()?, length))
}
