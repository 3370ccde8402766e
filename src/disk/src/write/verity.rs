//! The fs-verity digest of a file: SHA-256 over a tree of hashes, which many threads can make, and in which a hole costs
//! next to nothing.
//!
//! Specification: `Documentation/filesystems/fsverity.rst` of Linux, "Merkle tree" and "fs-verity descriptor": version 1,
//! SHA-256, blocks of 4096 bytes, no salt. `fsverity digest FILE` computes the same.

use sha2::{Digest, Sha256};

/// Bytes of a block, of data and of hashes.
pub const BLOCK: usize = 4096;

/// Blocks of data that a block of hashes describes.
const FANOUT: usize = BLOCK / size_of::<Hash>();

/// Bytes of data that a block of hashes describes.
pub const GROUP: usize = FANOUT * BLOCK;

/// A SHA-256.
pub type Hash = [u8; 32];

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Hashes the blocks of a file.
pub struct Hasher {
    /// Hash of a block of zeros.
    zero_block: Hash,
    /// Hash of the block of hashes of a group of zeros.
    zero_group: Hash,
    /// Whether the file has only one block, whose hash is the whole tree.
    is_single: bool,
}

impl Hasher {
    /// For a file of `len` bytes.
    pub fn new(len: u64) -> Self {
        let zero_block = hash(&ZEROS);
        let zero_group = hash([zero_block; FANOUT].as_flattened());
        Self { zero_block, zero_group, is_single: len <= BLOCK as u64 }
    }

    /// Hash of a group: its bytes and, for each of its blocks, whether that is all zeros. The last group of a file may be short.
    pub fn group(&self, data: &[u8], is_zero: &[bool]) -> Hash {
        let blocks = data.chunks(BLOCK).zip(is_zero);
        self.hashes(&blocks.map(|(block, zero)| if *zero { self.zero_block } else { hash(block) }).collect::<Vec<_>>())
    }

    /// Hash of a group of zeros, or of the `len` bytes that are left.
    fn zeros(&self, len: u64) -> Hash {
        match usize::try_from(len.div_ceil(BLOCK as u64)) {
            Ok(blocks) if blocks < FANOUT => self.hashes(&vec![self.zero_block; blocks]),
            _ => self.zero_group,
        }
    }

    fn hashes(&self, hashes: &[Hash]) -> Hash {
        match hashes {
            [one] if self.is_single => *one,
            _ => hash(hashes.as_flattened()),
        }
    }
}

/// The tree of a file, from its start to its end.
pub struct Tree {
    hasher: Hasher,
    /// Length of the file.
    len: u64,
    groups: Vec<Hash>,
}

impl Tree {
    /// Of a file of `len` bytes.
    pub fn new(len: u64) -> Self {
        Self { hasher: Hasher::new(len), len, groups: Vec::new() }
    }

    /// Takes what is between the last group and the one at `offset` for zeros, and adds the hash of that one.
    pub fn append(&mut self, offset: u64, group: Hash) {
        self.fill(offset);
        self.groups.push(group);
    }

    /// The digest; what was not added is zeros.
    pub fn finish(mut self) -> Hash {
        self.fill(self.len);
        let mut level = self.groups;
        while level.len() > 1 {
            level = level.chunks(FANOUT).map(|hashes| hash(hashes.as_flattened())).collect();
        }
        let mut descriptor = [0; 256];
        // Version, algorithm, and the logarithm of the length of a block.
        descriptor[..3].copy_from_slice(&[1, 1, 12]);
        descriptor[8..16].copy_from_slice(&self.len.to_le_bytes());
        descriptor[16..48].copy_from_slice(&level.first().copied().unwrap_or_default());
        Sha256::digest(descriptor).into()
    }

    fn fill(&mut self, end: u64) {
        loop {
            let at = self.groups.len() as u64 * GROUP as u64;
            if at >= end {
                return;
            }
            self.groups.push(self.hasher.zeros(end - at));
        }
    }
}

/// Hash of a block, which is padded with zeros.
fn hash(block: &[u8]) -> Hash {
    let mut hash = Sha256::new_with_prefix(block);
    hash.update(&ZEROS[block.len()..]);
    hash.finalize().into()
}
