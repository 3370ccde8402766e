//! Blocks of 512 KiB: how a disk is cut for whoever wants its bytes as they are, a raw file or a store of blocks.

use std::iter;

use super::merkle;

/// Bytes of a block: as many as one of an EBS snapshot has, and as one block of fs-verity's hashes describes.
pub const BLOCK_LEN: usize = 512 << 10;
const _: () = assert!(BLOCK_LEN == merkle::GROUP, "a raw file needs one hash of each block");

/// Bytes of a page, the smallest hole: blocks of file systems and of fs-verity are as long.
pub const PAGE: usize = merkle::BLOCK;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROS.len()).all(|part| part == &ZEROS[..part.len()])
}

/// A block of the disk that is not all zeros.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Position on the disk, in blocks.
    pub number: u64,
    /// All its bytes: [`BLOCK_LEN`], or what is left of the disk.
    pub bytes: &'a [u8],
    /// Its hash, if the sink needs one.
    pub hash: Option<[u8; 32]>,
    /// For each page whether it is all zeros.
    pub(super) zeros: &'a [bool],
}

impl<'a> Block<'a> {
    /// Position on the disk, in bytes.
    pub fn at(&self) -> u64 {
        self.number * BLOCK_LEN as u64
    }

    /// Its runs of pages of 4096 bytes that are not all zeros, with their positions on the disk: what a file has no hole for.
    pub fn data_runs(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let (end, mut rest) = (self.at() + self.bytes.len() as u64, self.bytes);
        let mut runs = self.zeros.chunk_by(|a, b| a == b);
        let all = iter::from_fn(move || {
            let run = runs.next()?;
            let at = end - rest.len() as u64;
            let (data, behind) = rest.split_at(rest.len().min(run.len() * PAGE));
            rest = behind;
            Some((run.first() == Some(&false), at, data))
        });
        all.filter_map(|(is_data, at, data)| is_data.then_some((at, data)))
    }
}
