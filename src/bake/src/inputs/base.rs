//! Decodes a verified base image to a raw disk.
//!
//! A raw image is used in place. Any other image becomes a sparse file in the store, written in pieces by several
//! threads; with a read-only store, its clusters are decoded on demand.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_disk::image::{Format, Image};
use vmbake_disk::source::{FileSource, ReadAt};
use vmbake_disk::write::PIECE;

use super::DecodedBase;
use vmbake_common::content_id::identified;
use vmbake_common::digest::Digest;
use vmbake_fetch::verify::Base;
use vmbake_store::store::{Decoded, DecodedForm, Spool, Store};

/// Bytes of the disk per job: small enough that the threads finish at about the same time.
const JOB: u64 = 32 << 20;

/// Granularity of holes, the block size of common file systems.
const BLOCK: usize = 4096;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// The base's disk, complete when all its pieces are done.
pub(super) struct Raw {
    path: PathBuf,
    digest: Digest,
    image: Arc<Image>,
    decoded: Option<DecodedDisk>,
}

enum DecodedDisk {
    Found(File),
    Made(Arc<Making>),
}

/// The state shared by the pieces.
struct Making {
    image: Arc<Image>,
    spool: Spool,
}

/// A part of the disk to decode.
pub(super) struct Piece {
    making: Arc<Making>,
    range: Range<u64>,
}

/// Why a piece was not decoded.
#[derive(Debug)]
pub(super) enum PieceError {
    /// The image is corrupt or cannot be read.
    Read(io::Error),
    /// The store cannot be written.
    Write,
}

impl Raw {
    /// Finds the decoded disk in `store`, or returns the pieces to decode.
    pub(super) fn start(base: Base, store: &Store, mut hand_out: impl FnMut(Piece)) -> Self {
        let (path, digest) = (base.path().to_owned(), base.digest());
        let image = base.image();
        let is_encoded = image.format() != Format::Raw;
        let decoded = is_encoded.then(|| store.decoded(&digest, DecodedForm::Disk).ok()).flatten();
        let decoded = match decoded {
            Some(Decoded::Found(file)) => Some(DecodedDisk::Found(file)),
            Some(Decoded::Missing(spool)) if spool.is_named() && spool.file().set_len(image.len()).is_ok() => {
                let making = Arc::new(Making { image: Arc::clone(&image), spool });
                jobs(&image).for_each(|range| hand_out(Piece { making: Arc::clone(&making), range }));
                Some(DecodedDisk::Made(making))
            }
            _ => None,
        };
        Self { path, digest, image, decoded }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the decoded disk, if it is `complete`.
    pub(super) fn finish(self, complete: bool) -> DecodedBase {
        let Self { path, digest, image, decoded } = self;
        let file = match decoded {
            Some(DecodedDisk::Found(file)) => Some(file),
            Some(DecodedDisk::Made(making)) if complete => {
                Arc::into_inner(making).and_then(|made| made.spool.keep().ok())
            }
            _ => None,
        };
        let source = file.and_then(|file| FileSource::new(file).ok()).filter(|source| source.len() == image.len());
        let disk: Arc<dyn ReadAt> = match source {
            Some(source) => Arc::new(source),
            None => image,
        };
        let disk = identified(disk, &digest, DecodedForm::Disk.name());
        DecodedBase { path, digest, disk }
    }
}

/// The allocated parts of a disk: an empty disk of petabytes has none. If the image cannot be read, decoding the part
/// reports the error.
fn jobs(image: &Image) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, is_last) = match image.next_data(at) {
            Ok(data) => (data?.start, false),
            Err(_) => (at, true),
        };
        let range = start / JOB * JOB..image.len().min((start / JOB + 1).saturating_mul(JOB));
        at = if is_last { image.len() } else { range.end };
        Some(range)
    })
}

impl Piece {
    /// Decodes allocated data; blocks of zeros become holes.
    pub(super) fn decode(self) -> Result<(), PieceError> {
        let Self { making, range } = self;
        let mut buffer = vec![0; PIECE];
        let mut at = range.start;
        while let Some(data) = making.image.next_data(at).map_err(PieceError::Read)? {
            let len = data.end.min(range.end).saturating_sub(data.start).min(PIECE as u64);
            if len == 0 {
                break;
            }
            let part = &mut buffer[..usize::try_from(len).unwrap_or(PIECE)];
            making.image.read_exact_at(part, data.start).map_err(PieceError::Read)?;
            write_blocks(making.spool.file(), part, data.start).map_err(|_| PieceError::Write)?;
            at = data.start + len;
        }
        Ok(())
    }
}

fn write_blocks(file: &File, data: &[u8], mut at: u64) -> io::Result<()> {
    let is_zero = |block: &[u8]| block == &ZEROS[..block.len()];
    let blocks: Vec<&[u8]> = data.chunks(BLOCK).collect();
    let mut rest = data;
    for run in blocks.chunk_by(|a, b| is_zero(a) == is_zero(b)) {
        let (now, later) = rest.split_at(run.iter().map(|block| block.len()).sum());
        if !is_zero(run[0]) {
            file.write_all_at(now, at)?;
        }
        at += now.len() as u64;
        rest = later;
    }
    Ok(())
}
