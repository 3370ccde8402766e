//! The fs-verity digest of a file: computed from the root of a hash tree and a descriptor.
//!
//! Specification: `Documentation/filesystems/fsverity.rst` of Linux, "Merkle tree" and "fs-verity descriptor": version 1,
//! SHA-256, blocks of 4096 bytes, no salt. `fsverity digest FILE` computes the same.

use sha2::{Digest, Sha256};

use super::merkle::{GROUP, Hash, Hasher};

/// Digests of files are unsalted, so that they are unique.
pub const SALT: &[u8] = &[];

/// The tree of a file, built sequentially.
pub struct Tree {
    hasher: Hasher,
    len: u64,
    groups: Vec<Hash>,
}

impl Tree {
    pub fn new(len: u64) -> Self {
        Self { hasher: Hasher::new(len, SALT), len, groups: Vec::new() }
    }

    /// Adds zeros between the last group and the one at `offset`, and the hash of that one.
    pub fn append(&mut self, offset: u64, group: Hash) {
        self.fill(offset);
        self.groups.push(group);
    }

    /// The digest; missing groups are zeros.
    pub fn finish(mut self) -> Hash {
        self.fill(self.len);
        let mut level = self.groups;
        while level.len() > 1 {
            level = self.hasher.above(&level);
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
