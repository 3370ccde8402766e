//! The blocks of a snapshot: an image enters, the blocks that count leave with their digests, and which of them a parent lacks.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use vmbake_disk::disk::Disk;
use vmbake_disk::image::{Image, ImageError};
use vmbake_disk::source::{Extent, Map, ReadAt, Sources};
use vmbake_disk::write::{BLOCK_LEN, Chunk, Needs, Sink, WriteError, write_to};

use super::extent::{Extents, extents, without};
use crate::convert::{Unit, lengthen};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::progress::Progress;

/// Bytes of a block.
pub const BLOCK: u64 = BLOCK_LEN as u64;
/// Bytes of the unit in which volumes are sized.
const GIB: u64 = 1 << 30;
/// Longest volume, in GiB.
const MAX_GIB: u64 = 65_536;

/// SHA-256 of a block.
pub type BlockDigest = [u8; 32];

/// The blocks of a disk that count; all others may read as anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Length of the disk in GiB.
    gib: u64,
    /// Blocks that count even as zeros.
    used: Vec<Range<u64>>,
    /// Digests of those that are not all zeros, used or outside of all partitions.
    data: Vec<(u64, BlockDigest)>,
    zeros: BlockDigest,
}

/// Why the blocks of an image are not known.
#[derive(Debug, thiserror::Error)]
pub enum BlocksError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: cannot read the disk")]
    Read { path: PathBuf, source: WriteError },
    #[error("{path}: a snapshot cannot hold a disk of {len} bytes: it needs a whole number of GiB")]
    Unaligned {
        path: PathBuf,
        /// Length of the disk in bytes.
        len: u64,
    },
    #[error("{path}: a snapshot cannot hold a disk of {len} bytes: it needs 1 to {MAX_GIB} GiB")]
    Length {
        path: PathBuf,
        /// Length of the disk in bytes.
        len: u64,
    },
}

impl Hint for BlocksError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unaligned { len, .. } => Some(lengthen(*len, Unit::GiB)),
            _ => None,
        }
    }

    vmbake_common::causes!(Image; Read);
}

impl Blocks {
    /// Reads what counts of an image, once.
    pub fn of_image(path: &Path, threads: NonZeroUsize, progress: &Progress) -> Result<Self, BlocksError> {
        Self::of_disk(path, &open(path)?, threads, progress)
    }

    /// The same of an image that is open.
    pub fn of_disk(
        path: &Path,
        disk: &Arc<dyn ReadAt>,
        threads: NonZeroUsize,
        progress: &Progress,
    ) -> Result<Self, BlocksError> {
        let gib = gib(path, disk.len())?;
        let Extents { used, free } = extents(disk);
        let bar = progress.bar("reading", disk.len());
        let data = write_to(&without_free(disk, &free), Digests(Vec::new()), threads, &|len| bar.inc(len));
        bar.finish_and_clear();
        let data = data.map_err(|source| BlocksError::Read { path: path.to_owned(), source })?;
        Ok(Self { gib, used, data, zeros: zeros() })
    }

    /// The blocks of a disk of so many GiB that [`Blocks::iter`] gave once; `None` where they are not in order, or beyond its end.
    pub fn of_list(gib: u64, list: impl IntoIterator<Item = (u64, BlockDigest)>) -> Option<Self> {
        let mut blocks = Self { gib, used: Vec::new(), data: Vec::new(), zeros: zeros() };
        let end = (1..=MAX_GIB).contains(&gib).then(|| blocks.len())?;
        let mut next = 0;
        for (index, digest) in list {
            if !(next..end).contains(&index) {
                return None;
            }
            next = index + 1;
            match digest == blocks.zeros {
                true => blocks.used.push(index..next),
                false => blocks.data.push((index, digest)),
            }
        }
        Some(blocks)
    }

    /// Length of the disk in GiB.
    pub fn gib(&self) -> u64 {
        self.gib
    }

    /// Length of the disk in blocks.
    pub fn len(&self) -> u64 {
        self.gib * (GIB / BLOCK)
    }

    /// Whether there is none; no disk is so short.
    pub fn is_empty(&self) -> bool {
        self.gib == 0
    }

    /// All blocks that count, by position on the disk in blocks.
    pub fn iter(&self) -> impl Iterator<Item = (u64, BlockDigest)> + '_ {
        let mut used = self.used.iter().cloned().flatten().peekable();
        let mut data = self.data.iter().copied().peekable();
        std::iter::from_fn(move || match (used.peek(), data.peek()) {
            (Some(zero), Some((next, _))) if zero < next => used.next().map(|index| (index, self.zeros)),
            (Some(_), None) => used.next().map(|index| (index, self.zeros)),
            (_, Some((next, _))) => {
                used.next_if_eq(next);
                data.next()
            }
            (None, None) => None,
        })
    }

    /// The blocks that a snapshot has to be sent so that it reads as this disk when it begins as `parent` does. What counted in
    /// the parent and no longer does is sent as zeros, so that nothing of it stays.
    pub fn beyond<'a>(&'a self, parent: &'a Self) -> impl Iterator<Item = (u64, BlockDigest)> + 'a {
        let (mut own, mut old) = (self.iter().peekable(), parent.iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let (next, before) = (own.peek().copied(), old.peek().copied());
                match (next, before) {
                    (Some((index, _)), Some((gone, digest))) if gone < index => {
                        old.next();
                        if digest != self.zeros {
                            return Some((gone, self.zeros));
                        }
                    }
                    (None, Some((gone, digest))) => {
                        old.next();
                        if digest != self.zeros {
                            return Some((gone, self.zeros));
                        }
                    }
                    (Some(next), Some(before)) if next.0 == before.0 => {
                        own.next();
                        old.next();
                        if next != before {
                            return Some(next);
                        }
                    }
                    _ => return own.next(),
                }
            }
        })
    }

    /// The digest by which a machine image of this disk is found again: that of all that a machine sees of it, and of the key that
    /// encrypts it.
    pub fn disk_digest(&self, boot_mode: &str, kms_key: Option<&str>) -> Digest {
        let mut hasher = Sha256::new_with_prefix(b"vmbake disk of blocks 1\0");
        hasher.update(self.gib.to_le_bytes());
        for text in [boot_mode, kms_key.unwrap_or_default()] {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        for (index, digest) in self.iter() {
            hasher.update(index.to_le_bytes());
            hasher.update(digest);
        }
        Digest::Sha256(hasher.finalize().into())
    }
}

/// Opens an image as a disk.
pub fn open(path: &Path) -> Result<Arc<dyn ReadAt>, BlocksError> {
    Ok(Arc::new(Image::open(path)?))
}

/// SHA-256 of a block of zeros.
pub fn zeros() -> BlockDigest {
    Sha256::digest(vec![0; BLOCK_LEN]).into()
}

/// The checksum that completes a snapshot (`LINEAR`): SHA-256 over the digests of all blocks that were sent, in their order.
pub fn linear_checksum(sent: impl IntoIterator<Item = BlockDigest>) -> BlockDigest {
    sent.into_iter().fold(Sha256::new(), Sha256::chain_update).finalize().into()
}

/// The length of a disk in GiB, if a volume can have it.
fn gib(path: &Path, len: u64) -> Result<u64, BlocksError> {
    let path = || path.to_owned();
    match len / GIB {
        _ if !len.is_multiple_of(GIB) => Err(BlocksError::Unaligned { path: path(), len }),
        gib if !(1..=MAX_GIB).contains(&gib) => Err(BlocksError::Length { path: path(), len }),
        gib => Ok(gib),
    }
}

/// The disk with holes where it is free, so that these are not read.
fn without_free(disk: &Arc<dyn ReadAt>, free: &[Range<u64>]) -> Disk {
    let (mut sources, mut map) = (Sources::default(), Map::hole(disk.len()));
    let source = sources.add(disk.clone());
    // Whole blocks only: the disk ends with one.
    for range in without(std::slice::from_ref(&(0..disk.len() / BLOCK)), free) {
        let (at, len) = (range.start * BLOCK, (range.end - range.start) * BLOCK);
        map.push(Extent { at, len, source, offset: at });
    }
    Disk::new(map, sources)
}

/// Takes the digests of blocks that are not all zeros.
struct Digests(Vec<(u64, BlockDigest)>);

impl Sink for Digests {
    type Written = Vec<(u64, BlockDigest)>;
    type Error = WriteError;

    fn needs(&self) -> Needs {
        Needs::blocks(Some(Box::new(|block| Sha256::digest(block.bytes).into())))
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        self.0.extend(chunk.blocks().filter_map(|block| Some((block.number, block.hash?))));
        Ok(())
    }

    fn finish(self) -> Result<Self::Written, WriteError> {
        Ok(self.0)
    }
}
