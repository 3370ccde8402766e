//! The dm-verity hash tree: computes a root hash and a hash device from a file and a salt, with which Linux verifies
//! each block of the file on reading.
//!
//! Specification: `Documentation/admin-guide/device-mapper/verity.rst` of Linux, and `lib/verity/verity.c` of
//! cryptsetup for the superblock: version 1, hash type 1, SHA-256, blocks of 4096 bytes for data and hashes. Integers
//! are little-endian. The superblock takes one block, followed by the levels, the root's first. `veritysetup format
//! --salt --uuid` writes the same.

use std::io;
use std::num::NonZeroUsize;

use super::measure::{each, groups, read_group};
use super::merkle::{BLOCK, FANOUT, Hash, Hasher, ZEROS};
use crate::source::ReadAt;

/// Size of the superblock in bytes, which takes a whole block.
const SUPERBLOCK: usize = 512;

/// Parameters that are usually random.
#[derive(Clone, Copy, Debug)]
pub struct DmVerity {
    /// Prepended to each hashed block.
    pub salt: [u8; 32],
    /// `uuid` of the superblock.
    pub uuid: [u8; 16],
}

/// The data that verify a file.
#[derive(Clone, Debug)]
pub struct HashTree {
    /// The root hash.
    pub root: [u8; 32],
    /// The hash device: superblock and levels.
    pub bytes: Vec<u8>,
}

impl HashTree {
    /// Computes the tree of `source`, which must have whole blocks. Holes are not read.
    pub fn of(source: &dyn ReadAt, identity: &DmVerity, threads: NonZeroUsize) -> io::Result<Self> {
        let blocks = source.len() / BLOCK as u64;
        if blocks == 0 || !source.len().is_multiple_of(BLOCK as u64) {
            let what = format!("{} bytes are not whole blocks of {BLOCK}", source.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let hasher = Hasher::new(source.len(), &identity.salt);
        let mut level = hashes(source, blocks, &hasher, threads)?;
        let mut levels = Vec::new();
        while level.len() > 1 {
            let above = hasher.above(&level);
            levels.push(level);
            level = above;
        }
        let mut bytes = superblock(blocks, identity);
        for hashes in levels.iter().rev().flat_map(|level| level.chunks(FANOUT)) {
            bytes.extend_from_slice(hashes.as_flattened());
            pad(&mut bytes);
        }
        Ok(Self { root: level.first().copied().unwrap_or_default(), bytes })
    }
}

/// The hash of each of this many blocks.
fn hashes(source: &dyn ReadAt, blocks: u64, hasher: &Hasher, threads: NonZeroUsize) -> io::Result<Vec<Hash>> {
    let index = |number: u64| usize::try_from(number).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory));
    let mut all = vec![hasher.zero_block(); index(blocks)?];
    let hash = |at, buffer: &mut Vec<u8>| {
        let zeros = read_group(source, at, buffer)?;
        Ok(hasher.blocks(buffer, &zeros))
    };
    for (at, hashes) in each(&groups(source)?, threads, hash)? {
        let first = index(at / BLOCK as u64)?;
        all[first..first + hashes.len()].copy_from_slice(&hashes);
    }
    Ok(all)
}

/// `struct verity_sb`, padded to its block.
fn superblock(blocks: u64, identity: &DmVerity) -> Vec<u8> {
    let mut algorithm = [0; 32];
    algorithm[..6].copy_from_slice(b"sha256");
    let len = 4096_u32.to_le_bytes();
    let mut bytes = Vec::with_capacity(BLOCK);
    // 0x00: signature, version of the superblock, type of hashes.
    bytes.extend_from_slice(b"verity\0\0\x01\0\0\0\x01\0\0\0");
    // 0x10: uuid, algorithm.
    bytes.extend_from_slice(&identity.uuid);
    bytes.extend_from_slice(&algorithm);
    // 0x40: length of blocks of data and of hashes, number of blocks of data.
    bytes.extend_from_slice(&len);
    bytes.extend_from_slice(&len);
    bytes.extend_from_slice(&blocks.to_le_bytes());
    // 0x50: length of the salt and padding, the salt.
    bytes.extend_from_slice(&[32, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&identity.salt);
    bytes.resize(SUPERBLOCK, 0);
    pad(&mut bytes);
    bytes
}

/// Pads the last block with zeros.
fn pad(bytes: &mut Vec<u8>) {
    let rest = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    bytes.extend_from_slice(&ZEROS[..rest]);
}
