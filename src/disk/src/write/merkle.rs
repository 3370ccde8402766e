//! Trees of SHA-256 over blocks of 4096 bytes, computed in parallel, with almost no cost for holes: shared by fs-verity
//! and dm-verity.
//!
//! A block of hashes covers as many blocks as fit, and is padded with zeros. The first level covers the data, each
//! other one the level below it, and the last one has a single hash: the root. Data of one block have no level, and its
//! hash is the root. An optional salt is prepended to each hashed block.

use sha2::{Digest, Sha256};

/// Size of a block of data or hashes in bytes.
pub const BLOCK: usize = 4096;

/// Number of data blocks that a block of hashes covers.
pub const FANOUT: usize = BLOCK / size_of::<Hash>();

/// Bytes of data that a block of hashes covers.
pub const GROUP: usize = FANOUT * BLOCK;

/// A SHA-256.
pub type Hash = [u8; 32];

pub static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Hashes the blocks of a file.
pub struct Hasher {
    /// The state after hashing the salt.
    salted: Sha256,
    zero_block: Hash,
    /// Hash of the block of hashes for a group of zeros.
    zero_group: Hash,
    /// Whether the file has only one block, whose hash is the root.
    is_single: bool,
}

impl Hasher {
    pub fn new(len: u64, salt: &[u8]) -> Self {
        let salted = Sha256::new_with_prefix(salt);
        let zero_block = hash(&salted, &ZEROS);
        let zero_group = hash(&salted, [zero_block; FANOUT].as_flattened());
        Self { salted, zero_block, zero_group, is_single: len <= BLOCK as u64 }
    }

    pub fn zero_block(&self) -> Hash {
        self.zero_block
    }

    /// Hashes of the blocks of `data`; `is_zero` states for each whether it is all zeros.
    pub fn blocks(&self, data: &[u8], is_zero: &[bool]) -> Vec<Hash> {
        let blocks = data.chunks(BLOCK).zip(is_zero);
        blocks.map(|(block, zero)| if *zero { self.zero_block } else { hash(&self.salted, block) }).collect()
    }

    /// Hash of a group: its bytes and, for each of its blocks, whether it is all zeros. The last group of a file may be
    /// short.
    pub fn group(&self, data: &[u8], is_zero: &[bool]) -> Hash {
        self.hashes(&self.blocks(data, is_zero))
    }

    /// Hash of a group of zeros, or of the remaining `len` bytes.
    pub fn zeros(&self, len: u64) -> Hash {
        match usize::try_from(len.div_ceil(BLOCK as u64)) {
            Ok(blocks) if blocks < FANOUT => self.hashes(&vec![self.zero_block; blocks]),
            _ => self.zero_group,
        }
    }

    /// The level above `level`: a hash for each block of hashes.
    pub fn above(&self, level: &[Hash]) -> Vec<Hash> {
        level.chunks(FANOUT).map(|hashes| hash(&self.salted, hashes.as_flattened())).collect()
    }

    fn hashes(&self, hashes: &[Hash]) -> Hash {
        match hashes {
            [one] if self.is_single => *one,
            _ => hash(&self.salted, hashes.as_flattened()),
        }
    }
}

/// Hash of a block, padded with zeros, continuing the state `salted`.
fn hash(salted: &Sha256, block: &[u8]) -> Hash {
    let hash = salted.clone().chain_update(block).chain_update(&ZEROS[block.len()..]);
    hash.finalize().into()
}
