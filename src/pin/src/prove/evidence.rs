//! Evidence: documents by digest, from the store or their original URL.

use std::fs::File;
use std::io::{Read, Seek};

use super::{LinkError, Prover};
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_manifest::{Content, Dependency, Document, Form};
use vmbake_proof::sigstore::rekor;
use vmbake_store::download::{DownloadError, DownloadRequest, ensure_blob};
use vmbake_store::http::Client;

/// Maximum size of an index: that of Debian's `main` has 13 MB.
pub(super) const MAX_INDEX: u64 = 128 << 20;
/// Maximum size of other documents: the largest `InRelease` of Debian has 0.3 MB.
pub(super) const MAX_LEN: u64 = 16 << 20;

/// The expected evidence of a proof.
pub(super) struct Wants {
    /// The accepted URLs: that in the manifest must be one of these.
    pub(super) urls: Vec<String>,
    /// The part that is kept.
    pub(super) form: Form,
    /// Its maximum size in bytes.
    pub(super) limit: u64,
}

impl Wants {
    /// A whole document from one URL.
    pub(super) fn from(url: String) -> Self {
        Self { urls: vec![url], form: Form::Whole, limit: MAX_LEN }
    }
}

impl Prover<'_> {
    /// The manifest's entry for the document of that digest, if it is the expected one.
    pub(super) fn listed<'a>(
        &self,
        content: &'a Content,
        digest: &Digest,
        wants: &Wants,
    ) -> Result<&'a Document, LinkError> {
        let boxed = || Box::new(*digest);
        let Some(listed) = content.evidence.get(digest) else { return Err(LinkError::Unlisted { digest: boxed() }) };
        if listed.size > wants.limit {
            return Err(LinkError::Message(message!(
                "evidence {}: {} bytes, more than the limit of {}",
                boxed(),
                listed.size,
                wants.limit
            )));
        }
        if listed.form != wants.form || !wants.urls.contains(&listed.url) {
            let (found, expected) = (listed.url.clone(), wants.urls.first().cloned().unwrap_or_default());
            return Err(LinkError::Elsewhere { digest: boxed(), found, expected });
        }
        Ok(listed)
    }

    /// The document of that digest, whose entry must be the expected one.
    pub(super) fn document(&self, content: &Content, digest: &Digest, wants: Wants) -> Result<Vec<u8>, LinkError> {
        let listed = self.listed(content, digest, &wants)?;
        match (self.stored(digest, listed), self.client) {
            (Ok(bytes), _) => Ok(bytes),
            (Err(LinkError::Absent { .. } | LinkError::Damaged { .. }), Some(client)) => {
                self.download(client, digest, listed, wants.urls)?;
                self.stored(digest, listed)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The file of an entry, by its digest, positioned at the start.
    pub(super) fn artifact(&self, entry: &Dependency) -> Result<File, LinkError> {
        let (path, digest) = (self.store.path(&entry.digest), Box::new(entry.digest));
        let read = |source| vmbake_store::store::StoreError::Read { path: path.clone(), source };
        let damage = match self.store.blob(&entry.digest)? {
            None => LinkError::Absent { digest, url: entry.url.clone() },
            Some(mut file) => {
                let (actual, found) = self.store.digest(&path, &file, &entry.digest).map_err(read)?;
                if actual == entry.digest {
                    file.rewind().map_err(read)?;
                    return Ok(file);
                }
                LinkError::Damaged { digest, actual: Box::new(actual), expected: entry.size, found }
            }
        };
        let Some(client) = self.client else { return Err(damage) };
        let (urls, digest, size) = (vec![entry.url.clone()], Some(entry.digest), Some(entry.size));
        let wanted = DownloadRequest { urls, digest, size, limit: entry.size, ..DownloadRequest::default() };
        let obtained = ensure_blob(client, self.store, &wanted, &|_| {});
        let mut file = obtained.map_err(|source| LinkError::Download { digest: Box::new(entry.digest), source })?.file;
        file.rewind().map_err(read)?;
        Ok(file)
    }

    fn stored(&self, digest: &Digest, listed: &Document) -> Result<Vec<u8>, LinkError> {
        let Some(file) = self.store.blob(digest)? else {
            return Err(LinkError::Absent { digest: Box::new(*digest), url: listed.url.clone() });
        };
        let read = |source| vmbake_store::store::StoreError::Read { path: self.store.path(digest), source };
        let mut bytes = Vec::new();
        file.take(listed.size.saturating_add(1)).read_to_end(&mut bytes).map_err(read)?;
        let mut hasher = digest.hasher();
        hasher.update(&bytes);
        let actual = hasher.finish();
        let found = bytes.len() as u64;
        if actual != *digest || found != listed.size {
            let (digest, actual) = (Box::new(*digest), Box::new(actual));
            return Err(LinkError::Damaged { digest, actual, expected: listed.size, found });
        }
        Ok(bytes)
    }

    fn download(
        &self,
        client: &Client,
        digest: &Digest,
        listed: &Document,
        urls: Vec<String>,
    ) -> Result<(), LinkError> {
        let failed = |source| LinkError::Download { digest: Box::new(*digest), source };
        match listed.form {
            Form::Whole => {
                let (digest, size, limit) = (Some(*digest), Some(listed.size), listed.size);
                ensure_blob(
                    client,
                    self.store,
                    &DownloadRequest { urls, digest, size, limit, ..DownloadRequest::default() },
                    &|_| {},
                )
                .map_err(failed)?;
            }
            Form::LogEntry => {
                let url = listed.url.clone();
                let answer = client.get(&url, MAX_LEN).map_err(|error| failed(error.into()))?;
                let entry = rekor::lasting(&answer)?;
                let found = Digest::of(&entry);
                if found != *digest {
                    let (expected, found) = (Box::new(*digest), Box::new(found));
                    return Err(failed(DownloadError::Digest { url, expected, found }));
                }
                self.store.insert(&entry)?;
            }
        }
        Ok(())
    }
}
