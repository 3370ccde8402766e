//! `vmbake push`: uploads a release to a repository of a registry. Chunks first, tags last, so that a tag never refers
//! to an incomplete release; existing blobs are not uploaded again.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::Serialize;

use vmbake_bake::release::key::PrivateKey;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::parallel;
use vmbake_common::parallel::locked;
use vmbake_oci::Descriptor;
use vmbake_store::http::Payload;
use vmbake_store::registry::{Arrival, RegistryError, Repository};

use crate::attachments::Attachment;
use crate::binding::ReleaseBinding;
use crate::document::{INDEX, MANIFEST, Written, empty_config};
use crate::signature::sign_index;
use crate::{DocumentError, EachBlob, ReleaseBlob, ReleaseDocuments, ReleaseFolder, assemble};

/// Why a release was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error(transparent)]
    Documents(#[from] DocumentError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("{repository}:{tag}: tag refers to {found}, expected {expected}")]
    Tagged { repository: String, tag: String, found: Box<Digest>, expected: Box<Digest> },
}

impl Hint for PushError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::Tagged { .. })
            .then(|| "use --force to move the tag; users of the tag then get another release".to_owned())
    }

    vmbake_common::causes!(Documents, Registry);
}

pub struct PushRequest<'a> {
    /// The images and their documents.
    pub folder: &'a ReleaseFolder,
    /// Name and version for the index.
    pub binding: &'a ReleaseBinding,
    /// Additional files to attach.
    pub attach: &'a [PathBuf],
    pub tags: &'a [String],
    /// Whether existing tags may be moved.
    pub force: bool,
    /// The key that signs the index.
    pub key: Option<&'a PrivateKey>,
    /// Number of chunks to compress and upload concurrently.
    pub threads: NonZeroUsize,
    /// Receives the number of bytes uploaded or found existing.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushReport {
    /// Digest of the index.
    pub digest: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Number of uploaded blobs.
    pub sent: u64,
    pub sent_bytes: u64,
    /// Number of existing blobs.
    pub reused: u64,
    pub reused_bytes: u64,
    /// Attachments of the index.
    pub attached: Vec<String>,
}

impl PushReport {
    fn count(&mut self, arrival: Arrival, bytes: u64) {
        let (count, total) = match arrival {
            Arrival::Sent => (&mut self.sent, &mut self.sent_bytes),
            Arrival::There | Arrival::Mounted => (&mut self.reused, &mut self.reused_bytes),
        };
        *count += 1;
        *total += bytes;
    }
}

/// Describes what would be pushed, without network access.
pub fn plan(request: &PushRequest<'_>) -> Result<(ReleaseDocuments, PushReport), DocumentError> {
    let PushRequest { folder, binding, attach, threads, .. } = request;
    let documents = assemble::<DocumentError>(folder, binding, attach, *threads, &|_, _| Ok(()))?;
    let blobs = documents.blobs.iter().map(|blob| blob.descriptor.size);
    let attached = documents.attachments.iter().map(|attachment| attachment.name.clone());
    let report = PushReport {
        digest: documents.index.descriptor.digest.to_string(),
        tags: request.tags.to_vec(),
        sent: blobs.len() as u64,
        sent_bytes: blobs.sum(),
        attached: attached.collect(),
        ..PushReport::default()
    };
    Ok((documents, report))
}

/// Pushes a release.
pub fn push(request: &PushRequest<'_>, repository: &Repository) -> Result<PushReport, PushError> {
    let push = Push { request, repository, done: Mutex::default(), report: Mutex::default() };
    let documents = match !request.force && push.has_tags()? {
        // Conflicts are refused before the upload.
        true => {
            let (documents, _) = plan(request)?;
            push.check_tags(&documents.index.descriptor.digest)?;
            push.missing(&documents.blobs)?;
            documents
        }
        false => {
            let each: &EachBlob<'_, PushError> = &|blob, payload| push.blob(blob, payload);
            assemble(request.folder, request.binding, request.attach, request.threads, each)?
        }
    };
    for manifest in &documents.manifests {
        push.manifest(manifest, MANIFEST)?;
    }
    let index = &documents.index;
    push.manifest(index, INDEX)?;
    let signature = request.key.map(|key| sign_index(&index.descriptor, key)).transpose()?;
    push.attach(&index.descriptor.digest, documents.attachments.iter().chain(&signature))?;
    if !request.force {
        push.check_tags(&index.descriptor.digest)?;
    }
    for tag in request.tags {
        repository.put_manifest(tag, INDEX, &index.bytes)?;
    }
    let report = locked(&push.report).clone();
    Ok(PushReport { digest: index.descriptor.digest.to_string(), tags: request.tags.to_vec(), ..report })
}

/// A push in progress.
struct Push<'a> {
    request: &'a PushRequest<'a>,
    repository: &'a Repository,
    /// Blobs that exist in the repository.
    done: Mutex<BTreeSet<Digest>>,
    report: Mutex<PushReport>,
}

impl Push<'_> {
    fn has_tags(&self) -> Result<bool, PushError> {
        Ok(!self.tagged()?.is_empty())
    }

    /// The current digests of the tags.
    fn tagged(&self) -> Result<BTreeMap<&String, Digest>, PushError> {
        let mut found = BTreeMap::new();
        for tag in self.request.tags {
            found.extend(self.repository.tag(tag)?.map(|digest| (tag, digest)));
        }
        Ok(found)
    }

    fn check_tags(&self, index: &Digest) -> Result<(), PushError> {
        match self.tagged()?.into_iter().find(|(_, found)| found != index) {
            None => Ok(()),
            Some((tag, found)) => Err(PushError::Tagged {
                repository: self.repository.name().to_string(),
                tag: tag.clone(),
                found: Box::new(found),
                expected: Box::new(*index),
            }),
        }
    }

    fn blob(&self, blob: &Descriptor, payload: Payload<'_>) -> Result<(), PushError> {
        if !locked(&self.done).insert(blob.digest) {
            return Ok(());
        }
        let arrival = self.repository.put_blob(&blob.digest, payload, None)?;
        self.count(arrival, blob);
        Ok(())
    }

    /// Uploads missing blobs.
    fn missing(&self, blobs: &[ReleaseBlob]) -> Result<(), PushError> {
        let results = parallel::for_each(blobs.iter().collect(), self.request.threads, |blob: &ReleaseBlob| match self
            .repository
            .has_blob(&blob.descriptor.digest)?
        {
            true => {
                locked(&self.done).insert(blob.descriptor.digest);
                self.count(Arrival::There, &blob.descriptor);
                Ok(())
            }
            false => blob.with_payload(|payload| self.blob(&blob.descriptor, payload)),
        });
        results.into_iter().collect()
    }

    fn count(&self, arrival: Arrival, blob: &Descriptor) {
        locked(&self.report).count(arrival, blob.size);
        (self.request.progress)(blob.size);
    }

    fn manifest(&self, manifest: &Written, media_type: &str) -> Result<(), PushError> {
        let digest = manifest.descriptor.digest;
        if !self.repository.has_manifest(&digest)? {
            self.repository.put_manifest(&digest.to_string(), media_type, &manifest.bytes)?;
        }
        Ok(())
    }

    fn attach<'a>(&self, index: &Digest, all: impl Iterator<Item = &'a Attachment>) -> Result<(), PushError> {
        let listed = self.repository.referrers(index)?;
        let empty = empty_config();
        for attachment in all {
            if !listed.iter().any(|entry| entry.digest == attachment.entry.digest) {
                self.blob(&empty.descriptor, Payload::Bytes(&empty.bytes))?;
                self.blob(&attachment.content.descriptor, Payload::Bytes(&attachment.content.bytes))?;
                self.repository.attach(index, &attachment.entry, MANIFEST, &attachment.manifest.bytes)?;
            }
            locked(&self.report).attached.push(attachment.name.clone());
        }
        Ok(())
    }
}
