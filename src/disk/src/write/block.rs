//! Blocks of 512 KiB: the unit for sinks of uncompressed data, such as raw files and block stores.

use std::iter;

use super::merkle;

/// Block size in bytes: that of EBS snapshots, and of the data under one block of fs-verity hashes.
pub const BLOCK_LEN: usize = 512 << 10;
const _: () = assert!(BLOCK_LEN == merkle::GROUP, "a raw file needs one hash of each block");

/// Page size in bytes, the smallest hole: blocks of file systems and of fs-verity have the same size.
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
    /// Its bytes: [`BLOCK_LEN`], or up to the end of the disk.
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

    /// Its runs of pages of 4096 bytes that are not all zeros, with their offsets on the disk: the data that a file
    /// must contain.
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
