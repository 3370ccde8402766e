//! Applies an overlay to a disk: writes the result and computes the digests of both, reading everything once.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::Chunk;
use super::files::Files;
use super::measure::GroupHashes;
use super::merkle::{Hash, Hasher};
use super::sink::{Needs, Sink};
use super::verity::SALT;
use super::{Output, WriteError, Written, write_to};
use crate::disk::Disk;
use crate::image::{Overlay, OverlayPart};
use crate::source::{Extent, Map, ReadAt, Sources};

/// The result of applying an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    pub written: Written,
    /// The fs-verity digest of the disk that the overlay was applied to, as a raw file.
    pub base: [u8; 32],
    /// The fs-verity digest of the disk that it became, as a raw file.
    pub result: [u8; 32],
}

/// Writes the disk that results from applying `overlay` to `base` to an empty file, and syncs it; `progress` receives
/// the number of additional bytes done. The caller must check the digests before naming the file.
pub fn patch(
    base: &Arc<dyn ReadAt>,
    overlay: &Arc<Overlay>,
    output: Output<'_>,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Patched, WriteError> {
    let unreadable = |offset: u64| move |source| WriteError::Read { offset, source };
    let parts = overlay.parts().map_err(|error| unreadable(0)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let disk = on(base, overlay, &parts);
    let files = Files::begin(&disk, &[output], |_| None, None)?;
    let sink = Measured { files, len: disk.len(), hashes: BTreeMap::new() };
    let (written, result) = write_to(&disk, sink, threads, progress)?;
    let written = written.into_iter().next().ok_or(WriteError::ThreadLost)?;
    let differ = parts.into_iter().map(|part| part.range);
    let base = result.of_similar(&**base, differ, threads).map_err(unreadable(0))?;
    Ok(Patched { written, base: base.digest(), result: result.digest() })
}

/// The disk that results from applying the overlay to `base`, padded with zeros.
fn on(base: &Arc<dyn ReadAt>, overlay: &Arc<Overlay>, parts: &[OverlayPart]) -> Disk {
    let mut sources = Sources::default();
    let (under, over) = (sources.add(Arc::clone(base)), sources.add(Arc::<Overlay>::clone(overlay)));
    let (mut map, mut at) = (Map::hole(overlay.len()), 0);
    let mut place = |source, Range { start, end }: Range<u64>| {
        map.push(Extent { at: start, len: end.saturating_sub(start), source, offset: start });
    };
    let shared = base.len().min(overlay.len());
    for OverlayPart { range, is_zero } in parts {
        place(under, at..range.start.min(shared));
        at = range.end;
        if !is_zero {
            place(over, range.clone());
        }
    }
    place(under, at..shared);
    Disk::new(map, sources)
}

/// Writes files, and keeps the hashes of the disk's blocks.
struct Measured<'a> {
    files: Files<'a>,
    len: u64,
    hashes: BTreeMap<u64, Hash>,
}

impl Sink for Measured<'_> {
    type Written = (Vec<Written>, GroupHashes);
    type Error = WriteError;

    fn needs(&self) -> Needs {
        let hasher = Hasher::new(self.len, SALT);
        self.files.needs().and(Needs::blocks(Some(Box::new(move |block| hasher.group(block.bytes, block.zeros)))))
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        self.hashes.extend(chunk.blocks().filter_map(|block| Some((block.at(), block.hash?))));
        self.files.append(chunk)
    }

    fn finish(self) -> Result<Self::Written, WriteError> {
        Ok((self.files.finish()?, GroupHashes::made(self.len, self.hashes)))
    }
}
