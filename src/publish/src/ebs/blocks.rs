//! The blocks of a snapshot: the used blocks of an image with their digests, and those that differ from a parent.

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

/// Block size in bytes.
pub const BLOCK: u64 = BLOCK_LEN as u64;
/// Unit of volume sizes in bytes.
const GIB: u64 = 1 << 30;
/// Maximum size of a volume in GiB.
const MAX_GIB: u64 = 65_536;

/// SHA-256 of a block.
pub type BlockDigest = [u8; 32];

/// The used blocks of a disk; the contents of all others are irrelevant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Size of the disk in GiB.
    gib: u64,
    /// Used blocks, including zeros.
    used: Vec<Range<u64>>,
    /// Digests of blocks that are not all zeros, used or outside of partitions.
    data: Vec<(u64, BlockDigest)>,
    zeros: BlockDigest,
}

/// Why the blocks of an image cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum BlocksError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: cannot read the disk")]
    Read { path: PathBuf, source: WriteError },
    #[error("{path}: disk of {len} bytes: a snapshot requires a multiple of one GiB")]
    Unaligned { path: PathBuf, len: u64 },
    #[error("{path}: disk of {len} bytes: a snapshot requires 1 to {MAX_GIB} GiB")]
    Length { path: PathBuf, len: u64 },
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
    /// Reads the used blocks of an image once.
    pub fn of_image(path: &Path, threads: NonZeroUsize, progress: &Progress) -> Result<Self, BlocksError> {
        Self::of_disk(path, &open(path)?, threads, progress)
    }

    /// As [`Blocks::of_image`], for an open image.
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

    /// Restores the blocks of a disk of this size from a list by [`Blocks::iter`]; `None` if they are unordered or
    /// beyond its end.
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

    /// Size of the disk in GiB.
    pub fn gib(&self) -> u64 {
        self.gib
    }

    /// Size of the disk in blocks.
    pub fn len(&self) -> u64 {
        self.gib * (GIB / BLOCK)
    }

    /// Always false: a disk has at least one block.
    pub fn is_empty(&self) -> bool {
        self.gib == 0
    }

    /// All used blocks, by index.
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

    /// The blocks to upload so that a snapshot with the contents of `parent` becomes this disk. Blocks used only in the
    /// parent are uploaded as zeros, to erase their contents.
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

    /// The digest that identifies an AMI of this disk: it covers everything that a machine sees, and the encryption
    /// key.
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

/// The checksum that completes a snapshot (`LINEAR`): SHA-256 over the digests of all uploaded blocks, in order.
pub fn linear_checksum(sent: impl IntoIterator<Item = BlockDigest>) -> BlockDigest {
    sent.into_iter().fold(Sha256::new(), Sha256::chain_update).finalize().into()
}

/// The size of a disk in GiB, if it is valid for a volume.
fn gib(path: &Path, len: u64) -> Result<u64, BlocksError> {
    let path = || path.to_owned();
    match len / GIB {
        _ if !len.is_multiple_of(GIB) => Err(BlocksError::Unaligned { path: path(), len }),
        gib if !(1..=MAX_GIB).contains(&gib) => Err(BlocksError::Length { path: path(), len }),
        gib => Ok(gib),
    }
}

/// The disk with holes in free space, which is then not read.
fn without_free(disk: &Arc<dyn ReadAt>, free: &[Range<u64>]) -> Disk {
    let (mut sources, mut map) = (Sources::default(), Map::hole(disk.len()));
    let source = sources.add(disk.clone());
    // Whole blocks only: the disk ends at a block boundary.
    for range in without(std::slice::from_ref(&(0..disk.len() / BLOCK)), free) {
        let (at, len) = (range.start * BLOCK, (range.end - range.start) * BLOCK);
        map.push(Extent { at, len, source, offset: at });
    }
    Disk::new(map, sources)
}

/// Collects the digests of blocks that are not all zeros.
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
