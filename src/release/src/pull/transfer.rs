//! Downloads the disk: determines missing chunks, then downloads them concurrently, and verifies each before writing
//! it.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chunks::zeros;
use vmbake_common::atomic_file::Pending;
use vmbake_common::digest::Digest;
use vmbake_common::message::FileError;
use vmbake_common::parallel;
use vmbake_common::parallel::locked;
use vmbake_oci::Descriptor;

use super::error::PullError;
use super::known::OldImage;
use super::partial::PartialImage;
use super::wanted::WantedImage;
use super::{PullReport, PullRequest};

/// Memory limit for chunks being downloaded, in bytes.
const MEMORY: u64 = 192 << 20;

/// A missing content and its offsets.
struct Missing<'a> {
    layer: &'a Descriptor,
    content: Digest,
    chunks: Vec<usize>,
}

/// Completes all chunks of a raw image.
pub(super) fn chunks(
    request: &PullRequest<'_>,
    image: &WantedImage,
    part: &mut PartialImage,
    report: PullReport,
) -> Result<PullReport, PullError> {
    let chunk_size = image.config.chunk_size;
    // Each needs memory for its compressed and uncompressed bytes.
    let most = NonZeroUsize::new(usize::try_from(MEMORY / (2 * chunk_size).max(1)).unwrap_or(1));
    let threads = request.threads.min(most.unwrap_or(NonZeroUsize::MIN));
    let old = request.from.map(|path| OldImage::read(path, chunk_size, threads)).transpose()?;
    let report = Mutex::new(report);
    let missing = missing(image, part, threads, &|len, is_reused| {
        locked(&report).reused_bytes += if is_reused { len as u64 } else { 0 };
        (request.progress)(len as u64);
    })?;
    let has_failed = AtomicBool::new(false);
    let results = parallel::for_each(missing, threads, |missing| {
        if has_failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let result = fetch(request, image, part, old.as_ref(), &missing, &report);
        has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    });
    results.into_iter().collect::<Result<(), _>>()?;
    Ok(report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

/// The missing contents, deduplicated. Holes are created for zeros. `in_place` receives all other chunks, and whether
/// an earlier attempt wrote them.
fn missing<'a>(
    image: &'a WantedImage,
    part: &PartialImage,
    threads: NonZeroUsize,
    in_place: &dyn Fn(usize, bool),
) -> Result<Vec<Missing<'a>>, PullError> {
    let chunk_size = image.config.chunk_size;
    let found = part.found(chunk_size, threads)?;
    let mut empty: BTreeMap<usize, Digest> = BTreeMap::new();
    let mut missing: BTreeMap<(Digest, Digest), Missing<'a>> = BTreeMap::new();
    for (chunk, (layer, content)) in image.layers.iter().zip(&image.config.chunks).enumerate() {
        let (offset, len) = (chunk as u64 * chunk_size, image.chunk_len(chunk));
        if found.get(&offset) == Some(content) {
            in_place(len, true);
            continue;
        }
        if found.contains_key(&offset) {
            part.clear(offset, len)?;
        }
        if let std::collections::btree_map::Entry::Vacant(entry) = empty.entry(len) {
            let plain =
                zeros(len).map_err(|source| PullError::File(FileError::new(image.file_name(), "write", source)))?;
            entry.insert(plain.content);
        }
        if empty.get(&len) == Some(content) {
            in_place(len, false);
            continue;
        }
        let entry = missing.entry((layer.digest, *content));
        entry.or_insert(Missing { layer, content: *content, chunks: Vec::new() }).chunks.push(chunk);
    }
    let mut missing: Vec<_> = missing.into_values().collect();
    missing.sort_by_key(|missing| missing.chunks.first().copied());
    Ok(missing)
}

/// Downloads one content and writes it to its offsets.
fn fetch(
    request: &PullRequest<'_>,
    image: &WantedImage,
    part: &PartialImage,
    old: Option<&OldImage>,
    missing: &Missing<'_>,
    report: &Mutex<PullReport>,
) -> Result<(), PullError> {
    let Missing { layer, content: expected, chunks } = missing;
    let Some(first) = chunks.first() else { return Ok(()) };
    let len = image.chunk_len(*first);
    let known = old.map(|old| old.content(expected, len)).transpose()?.flatten();
    let content = match known {
        Some(content) => {
            locked(report).reused_bytes += (len * chunks.len()) as u64;
            content
        }
        None => {
            let compressed = request.repository.read_blob(&layer.digest, layer.size)?;
            locked(report).downloaded_bytes += layer.size;
            let wrong = || PullError::Chunk {
                digest: Box::new(layer.digest),
                chunk: *first,
                len,
                expected: Box::new(*expected),
            };
            // Decompression stops at the expected length.
            let content = zstd::bulk::decompress(&compressed, len).map_err(|_| wrong())?;
            match content.len() == len && Digest::of(&content) == *expected {
                true => content,
                false => return Err(wrong()),
            }
        }
    };
    for chunk in chunks {
        part.place(&content, *chunk as u64 * image.config.chunk_size)?;
        (request.progress)(len as u64);
    }
    Ok(())
}

/// Downloads a qcow2 image into the store, and copies it to its partial file.
pub(super) fn whole(
    request: &PullRequest<'_>,
    layer: &Descriptor,
    target: &Path,
    report: PullReport,
) -> Result<(Pending, PullReport), PullError> {
    let mut found = request.repository.ensure_blob(request.store, layer, layer.size)?;
    let pending = Pending::create(target, request.force)?;
    io::copy(&mut found.file, &mut pending.file())
        .map_err(|source| PullError::File(FileError::new(target, "write", source)))?;
    (request.progress)(found.size);
    Ok((pending, PullReport { downloaded_bytes: found.size, ..report }))
}
