//! One file from the network into the store: continued where it stopped, hashed while it is written.
//!
//! What enters is an address and, mostly, the digest that its content must have; what leaves is a blob with that digest.
//! Ranges follow RFC 9110, section 14. A server that ignores them starts over, and so does a file whose two halves turn
//! out not to belong together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};

use crate::http::{ATTEMPTS, Answer, Client, HttpError, pause};
use crate::manifest::{Digest, Hasher};
use crate::store::{Partial, Store, StoreError};

/// Bytes that are read, hashed and written at a time.
const CHUNK: usize = 256 << 10;

/// Why a file was not downloaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum DownloadError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{url}: has {found} bytes, not {expected}")]
    Size { url: String, expected: u64, found: u64 },
    #[error("{url}: has digest {found}, not {expected}")]
    Digest { url: String, expected: Box<Digest>, found: Box<Digest> },
}

impl DownloadError {
    /// The error that this one only passes on.
    pub(crate) fn inner(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Http(error) => Some(error),
            Self::Store(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the server says that there is nothing at that address.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Http(error) if error.is_absent())
    }
}

/// A file that is to be downloaded.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Where it is; the later addresses are asked when nothing is at the earlier ones.
    pub urls: Vec<String>,
    /// Headers of the request.
    pub headers: BTreeMap<&'static str, String>,
    /// Its digest, unless nobody states one.
    pub digest: Option<Digest>,
    /// Its length in bytes, where it is known.
    pub size: Option<u64>,
    /// The most it may have where it is not.
    pub limit: u64,
}

/// A file that was downloaded and has the wanted digest.
#[derive(Debug)]
pub struct Downloaded {
    /// Its digest.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Its content, open at the start.
    pub file: File,
}

/// Finds `wanted` in `store`, or downloads it; `progress` is told of every byte that arrives.
///
/// A blob that is there already is hashed, and replaced when it is damaged.
pub fn obtain(
    client: &Client,
    store: &Store,
    wanted: &Wanted,
    progress: &dyn Fn(u64),
) -> Result<Downloaded, DownloadError> {
    if let Some(found) = intact(store, wanted)? {
        return Ok(found);
    }
    let mut result = Err(HttpError::Invalid { url: String::new() }.into());
    for url in &wanted.urls {
        result = from_url(client, store, wanted, url, progress);
        match &result {
            Err(error) if error.is_absent() => {}
            _ => break,
        }
    }
    result
}

/// The wanted blob, if it is in the store and is what its name says.
fn intact(store: &Store, wanted: &Wanted) -> Result<Option<Downloaded>, StoreError> {
    let Some(digest) = wanted.digest else { return Ok(None) };
    let Some(mut file) = store.blob(&digest)? else { return Ok(None) };
    let read = |source| StoreError::Read { path: store.path(&digest), source };
    let (found, size) = digest.of_stream(&mut file).map_err(read)?;
    file.rewind().map_err(read)?;
    let is_wanted = found == digest && wanted.size.is_none_or(|wanted| wanted == size);
    Ok(is_wanted.then_some(Downloaded { digest, size, file }))
}

fn from_url(
    client: &Client,
    store: &Store,
    wanted: &Wanted,
    url: &str,
    progress: &dyn Fn(u64),
) -> Result<Downloaded, DownloadError> {
    let mut partial = match &wanted.digest {
        Some(digest) => store.partial(&digest.hex(), digest.hasher())?,
        // What an earlier attempt left may be of another version, and no digest would tell.
        None => {
            let mut partial = store.partial(&format!("url-{}", Digest::of(url.as_bytes()).hex()), Hasher::sha256())?;
            partial.reset()?;
            partial
        }
    };
    // Another process may have finished it while this one waited for the lock.
    if let Some(found) = intact(store, wanted)? {
        return Ok(found);
    }
    let resumed = !partial.is_empty();
    receive(client, wanted, url, &mut partial, progress)?;
    match check(wanted, url, &partial) {
        Err(DownloadError::Digest { .. }) if resumed => {
            partial.reset()?;
            receive(client, wanted, url, &mut partial, progress)?;
            finish(wanted, url, partial)
        }
        _ => finish(wanted, url, partial),
    }
}

fn finish(wanted: &Wanted, url: &str, mut partial: Partial) -> Result<Downloaded, DownloadError> {
    if let Err(error) = check(wanted, url, &partial) {
        partial.reset()?;
        return Err(error);
    }
    let size = partial.len();
    let (digest, file) = partial.publish()?;
    Ok(Downloaded { digest, size, file })
}

fn check(wanted: &Wanted, url: &str, partial: &Partial) -> Result<(), DownloadError> {
    if let Some(expected) = wanted.size.filter(|size| *size != partial.len()) {
        return Err(DownloadError::Size { url: url.to_owned(), expected, found: partial.len() });
    }
    match wanted.digest {
        Some(expected) if partial.digest() != expected => {
            let (expected, found) = (Box::new(expected), Box::new(partial.digest()));
            Err(DownloadError::Digest { url: url.to_owned(), expected, found })
        }
        _ => Ok(()),
    }
}

/// Receives the rest of the file; a broken connection is continued, as long as each attempt brings something.
fn receive(
    client: &Client,
    wanted: &Wanted,
    url: &str,
    partial: &mut Partial,
    progress: &dyn Fn(u64),
) -> Result<(), DownloadError> {
    let limit = wanted.size.unwrap_or(wanted.limit);
    if partial.len() > limit {
        partial.reset()?;
    }
    let mut failures = 0;
    loop {
        let before = partial.len();
        if wanted.size == Some(before) && before > 0 {
            return Ok(());
        }
        match attempt(client, wanted, url, limit, partial, progress) {
            Err(DownloadError::Http(error)) if error.is_temporary() => {
                failures = if partial.len() > before { 1 } else { failures + 1 };
                if failures >= ATTEMPTS {
                    return Err(error.into());
                }
                pause(&error, failures);
            }
            // 416: there is nothing after what is here, so what is here is not the beginning of the file.
            Err(DownloadError::Http(HttpError::Status { status: 416, .. })) if before > 0 => partial.reset()?,
            result => return result,
        }
    }
}

fn attempt(
    client: &Client,
    wanted: &Wanted,
    url: &str,
    limit: u64,
    partial: &mut Partial,
    progress: &dyn Fn(u64),
) -> Result<(), DownloadError> {
    let mut headers = wanted.headers.clone();
    if !partial.is_empty() {
        headers.insert("range", format!("bytes={}-", partial.len()));
    }
    let answer = client.open(url, &headers)?;
    if !continues(&answer, partial.len()) {
        partial.reset()?;
    }
    progress(partial.len());
    let url = answer.url.clone();
    let announced = answer.header("content-length").and_then(|len| len.parse::<u64>().ok());
    let too_large = || HttpError::TooLarge { url: url.clone(), limit };
    if announced.is_some_and(|len| len.saturating_add(partial.len()) > limit) {
        partial.reset()?;
        return Err(too_large().into());
    }
    let mut reader = answer.into_reader();
    let mut buffer = vec![0; CHUNK];
    loop {
        let received = partial.len();
        let broken = |source| HttpError::Broken { url: url.clone(), received, source };
        let len = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(source) if source.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(broken(source).into()),
        };
        if received + len as u64 > limit {
            partial.reset()?;
            return Err(too_large().into());
        }
        partial.write(&buffer[..len])?;
        progress(len as u64);
    }
    Ok(())
}

/// Whether the body starts at byte `at` of the file: 206 with `Content-Range: bytes <at>-…`.
fn continues(answer: &Answer, at: u64) -> bool {
    let range = answer.header("content-range").and_then(|range| range.strip_prefix("bytes "));
    let start = range.and_then(|range| range.split_once('-')?.0.parse::<u64>().ok());
    answer.status.as_u16() == 206 && start == Some(at)
}
