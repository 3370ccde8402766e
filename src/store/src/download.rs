//! Downloads a file into the store: resumable, hashed while it is written.
//!
//! Input: URLs and usually the expected digest. Output: a blob with that digest. Ranges follow RFC 9110, section 14.
//! The download restarts if the server ignores ranges, or if the resumed file has the wrong digest.

use std::fs::File;
use std::io::Read;

use crate::http::{Answer, Client, Deadline, Headers, HttpError, Request, broken, header};
use crate::store::{Partial, Store, StoreError};
use vmbake_common::digest::Digest;
use vmbake_common::digest::Hasher;
use vmbake_common::hint::Hint;

/// Buffer size for reading, hashing and writing.
const CHUNK: usize = 256 << 10;

/// Why a file was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{url}: expected {expected} bytes, found {found}")]
    Size {
        url: String,
        /// The expected length in bytes.
        expected: u64,
        found: u64,
    },
    #[error("{url}: expected digest {expected}, found {found}")]
    Digest { url: String, expected: Box<Digest>, found: Box<Digest> },
}

impl Hint for DownloadError {
    vmbake_common::causes!(Http, Store);
}

impl DownloadError {
    /// Whether the URL has another file than the requested one.
    pub(super) fn is_other_file(&self) -> bool {
        matches!(self, Self::Size { .. } | Self::Digest { .. } | Self::Http(HttpError::TooLarge { .. }))
    }

    /// Whether the server reports that the file does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Http(error) if error.is_absent())
    }
}

/// A download request. Headers may contain credentials, so it does not implement `Debug`.
#[derive(Clone, Default)]
pub struct DownloadRequest {
    /// URLs, tried in order until one has the file.
    pub urls: Vec<String>,
    pub headers: Headers,
    /// The expected digest, if known.
    pub digest: Option<Digest>,
    /// The expected length in bytes, if known.
    pub size: Option<u64>,
    /// The maximum length in bytes if it is not.
    pub limit: u64,
}

/// A downloaded file with the expected digest.
#[derive(Debug)]
pub struct Downloaded {
    pub digest: Digest,
    pub size: u64,
    /// Its content, positioned at the start.
    pub file: File,
    /// Whether it was in the store already.
    pub was_there: bool,
}

/// Finds `request` in `store` or downloads it; `progress` receives the number of each newly available byte once.
///
/// A blob in the store is hashed unless it is unchanged since the last time, and replaced if it is corrupt.
pub fn ensure_blob(
    client: &Client,
    store: &Store,
    request: &DownloadRequest,
    progress: &dyn Fn(u64),
) -> Result<Downloaded, DownloadError> {
    let found = match (intact(store, request)?, store.shared(), &request.digest) {
        (None, Some(shared), Some(digest)) if shared.fetch(store, digest, request.size, request.limit) => {
            let found = intact(store, request)?;
            found.iter().for_each(|found| progress(found.size));
            found.map(|found| Downloaded { was_there: false, ..found })
        }
        (Some(found), Some(shared), _) => {
            shared.offer(&found.digest, &found.file, found.size);
            Some(found)
        }
        (found, ..) => found,
    };
    if let Some(found) = found {
        return Ok(found);
    }
    let found = from_upstream(client, store, request, progress)?;
    if let Some(shared) = store.shared() {
        shared.offer(&found.digest, &found.file, found.size);
    }
    Ok(found)
}

fn from_upstream(
    client: &Client,
    store: &Store,
    request: &DownloadRequest,
    progress: &dyn Fn(u64),
) -> Result<Downloaded, DownloadError> {
    let mut refused: Option<DownloadError> = None;
    for url in &request.urls {
        match from_url(client, store, request, url, progress) {
            // Any other error is more informative than an absent file at another URL.
            Err(error) if error.is_absent() || error.is_other_file() || matches!(error, DownloadError::Http(_)) => {
                if refused.as_ref().is_none_or(DownloadError::is_absent) {
                    refused = Some(error);
                }
            }
            result => return result,
        }
    }
    Err(refused.unwrap_or_else(|| HttpError::Invalid { url: String::new() }.into()))
}

/// The requested blob, if it is in the store and intact.
fn intact(store: &Store, request: &DownloadRequest) -> Result<Option<Downloaded>, StoreError> {
    let Some(digest) = request.digest else { return Ok(None) };
    let Some(file) = store.blob(&digest)? else { return Ok(None) };
    let path = store.path(&digest);
    let (found, size) = store.digest(&path, &file, &digest).map_err(|source| StoreError::Read { path, source })?;
    let is_wanted = found == digest && request.size.is_none_or(|expected| expected == size);
    Ok(is_wanted.then_some(Downloaded { digest, size, file, was_there: true }))
}

fn from_url(
    client: &Client,
    store: &Store,
    request: &DownloadRequest,
    url: &str,
    progress: &dyn Fn(u64),
) -> Result<Downloaded, DownloadError> {
    let partial = match &request.digest {
        Some(digest) => store.partial(&digest.hex(), digest.hasher())?,
        // A partial file may be of another version, which cannot be detected without a digest.
        None => {
            let mut partial = store.partial(&format!("url-{}", Digest::of(url.as_bytes()).hex()), Hasher::sha256())?;
            partial.reset()?;
            partial
        }
    };
    // Another process may have finished it while this one waited for the lock.
    if let Some(found) = intact(store, request)? {
        partial.discard()?;
        return Ok(found);
    }
    let joined = !partial.is_empty();
    let deadline = Deadline::after(client.limits().artifact);
    let mut transfer = Transfer { client, request, url, progress, partial, joined, most: 0, deadline };
    transfer.receive()?;
    if transfer.joined && matches!(transfer.check(), Err(DownloadError::Digest { .. })) {
        transfer.partial.reset()?;
        transfer.receive()?;
    }
    transfer.finish()
}

/// A download from one URL.
struct Transfer<'a> {
    client: &'a Client,
    request: &'a DownloadRequest,
    url: &'a str,
    progress: &'a dyn Fn(u64),
    partial: Partial,
    /// Whether the partial file consists of several responses.
    joined: bool,
    /// The largest length so far, as reported to `progress`.
    most: u64,
    /// The deadline for all attempts together.
    deadline: Deadline,
}

impl Transfer<'_> {
    fn finish(mut self) -> Result<Downloaded, DownloadError> {
        if let Err(error) = self.check() {
            self.partial.reset()?;
            return Err(error);
        }
        let size = self.partial.len();
        let (digest, file) = self.partial.publish()?;
        Ok(Downloaded { digest, size, file, was_there: false })
    }

    fn check(&self) -> Result<(), DownloadError> {
        let (url, len) = (self.url.to_owned(), self.partial.len());
        if let Some(expected) = self.request.size.filter(|size| *size != len) {
            return Err(DownloadError::Size { url, expected, found: len });
        }
        match self.request.digest {
            Some(expected) if self.partial.digest() != expected => {
                let (expected, found) = (Box::new(expected), Box::new(self.partial.digest()));
                Err(DownloadError::Digest { url, expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Receives the rest of the file; resumes broken connections as long as attempts make progress.
    fn receive(&mut self) -> Result<(), DownloadError> {
        let limit = self.request.size.unwrap_or(self.request.limit);
        if self.partial.len() > limit {
            self.partial.reset()?;
        }
        let mut failures = self.client.limits().retry.failures(self.partial.len());
        loop {
            let before = self.partial.len();
            if self.request.size == Some(before) && before > 0 {
                return Ok(());
            }
            match self.attempt(limit) {
                // 416: the file ends at or before this offset, so the partial file is not a prefix of it.
                Err(DownloadError::Http(HttpError::Status { status: 416, .. })) if before > 0 => {
                    self.partial.reset()?
                }
                Err(DownloadError::Http(error)) => failures.wait(error, self.partial.len())?,
                result => return result,
            }
        }
    }

    fn attempt(&mut self, limit: u64) -> Result<(), DownloadError> {
        let mut request = Request::get(self.url).headers(&self.request.headers);
        if !self.partial.is_empty() {
            request = request.header(header::RANGE, format!("bytes={}-", self.partial.len()));
        }
        let answer = self.client.send_once(&request, self.deadline)?;
        if continues(&answer, self.partial.len()) {
            self.joined |= !self.partial.is_empty();
        } else {
            self.partial.reset()?;
        }
        self.report_progress();
        let url = answer.url.clone();
        let announced = answer.header(header::CONTENT_LENGTH).and_then(|len| len.parse::<u64>().ok());
        let too_large = || HttpError::TooLarge { url: url.clone(), limit };
        if announced.is_some_and(|len| len.saturating_add(self.partial.len()) > limit) {
            self.partial.reset()?;
            return Err(too_large().into());
        }
        let mut reader = answer.into_reader();
        let mut buffer = vec![0; CHUNK];
        loop {
            let received = self.partial.len();
            let len = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => len,
                Err(source) if source.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(broken(&url, received, source).into()),
            };
            if received + len as u64 > limit {
                self.partial.reset()?;
                return Err(too_large().into());
            }
            self.partial.write(&buffer[..len])?;
            self.report_progress();
        }
        Ok(())
    }

    /// Reports bytes beyond the largest length so far.
    fn report_progress(&mut self) {
        let len = self.partial.len();
        if len > self.most {
            (self.progress)(len - self.most);
            self.most = len;
        }
    }
}

/// Whether the body starts at offset `at` of the file: 206 with `Content-Range: bytes <at>-…`.
fn continues(answer: &Answer, at: u64) -> bool {
    let range = answer.header(header::CONTENT_RANGE).and_then(|range| range.strip_prefix("bytes "));
    let start = range.and_then(|range| range.split_once('-')?.0.parse::<u64>().ok());
    answer.status.as_u16() == 206 && start == Some(at)
}
