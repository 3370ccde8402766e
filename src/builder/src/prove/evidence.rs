//! Evidence: documents by their digests, from the store or from where they were published.

use std::io::Read;

use super::{LinkError, Prover};
use crate::download::{DownloadError, Wanted, obtain};
use crate::http::Client;
use crate::manifest::{Content, Digest, Document, Form};
use crate::proof::sigstore::rekor;

/// Longest document: Debian's index of `main` has 13 MB.
const MAX_LEN: u64 = 128 << 20;

impl Prover<'_> {
    /// The document of that digest. `urls` are where it must have been published, if that is known; the first also is where the
    /// manifest may say that it was found.
    pub(super) fn document(&self, content: &Content, digest: &Digest, urls: Vec<String>) -> Result<Vec<u8>, LinkError> {
        let boxed = || Box::new(*digest);
        let Some(listed) = content.evidence.get(digest) else { return Err(LinkError::Unlisted { digest: boxed() }) };
        if listed.size > MAX_LEN {
            return Err(LinkError::TooLarge { digest: boxed(), size: listed.size, limit: MAX_LEN });
        }
        match (self.stored(digest, listed), self.client) {
            (Ok(bytes), _) => Ok(bytes),
            (Err(LinkError::Absent { .. } | LinkError::Damaged { .. }), Some(client)) => {
                let urls = if urls.is_empty() { vec![listed.url.clone()] } else { urls };
                self.download(client, digest, listed, urls)
                    .map_err(|source| LinkError::Download { digest: boxed(), source })?;
                self.stored(digest, listed)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn stored(&self, digest: &Digest, listed: &Document) -> Result<Vec<u8>, LinkError> {
        let Some(file) = self.store.blob(digest)? else {
            return Err(LinkError::Absent { digest: Box::new(*digest), url: listed.url.clone() });
        };
        let read = |source| crate::store::StoreError::Read { path: self.store.path(digest), source };
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
    ) -> Result<(), DownloadError> {
        match listed.form {
            Form::Whole => {
                let (digest, size, limit) = (Some(*digest), Some(listed.size), listed.size);
                obtain(client, self.store, &Wanted { urls, digest, size, limit, ..Wanted::default() }, &|_| {})?;
            }
            Form::LogEntry => {
                let url = listed.url.clone();
                let answer = client.get(&url, MAX_LEN.min(16 << 20))?;
                // Another answer has another digest, whatever it is.
                let found = self.store.insert(&rekor::lasting(&answer).unwrap_or(answer))?;
                if found != *digest {
                    let (expected, found) = (Box::new(*digest), Box::new(found));
                    return Err(DownloadError::Digest { url, expected, found });
                }
            }
        }
        Ok(())
    }
}
