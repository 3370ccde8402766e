//! Associative arrays in the order of bash 5.2 (hashlib.c): FNV-1 over the key, 1024 buckets that grow by four, and the newest entry of a bucket
//! first.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Buckets of a new array: `ASSOC_HASH_BUCKETS`.
const BUCKETS: u32 = 1024;
/// `HASH_REHASH_FACTOR` and `HASH_REHASH_MULTIPLIER`.
const LOAD: u64 = 2;
const GROWTH: u32 = 4;

/// A value, with what its place in the order depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hash: u32,
    /// Larger for what was put into its bucket later.
    sequence: u64,
    value: Rc<Vec<u8>>,
}

/// An associative array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Associative {
    entries: BTreeMap<Vec<u8>, Entry>,
    buckets: u32,
    next: u64,
}

impl Default for Associative {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), buckets: BUCKETS, next: 0 }
    }
}

fn hash(key: &[u8]) -> u32 {
    const OFFSET: u32 = 2_166_136_261;
    const PRIME: u32 = 16_777_619;
    // `char` is signed on amd64.
    key.iter().fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ i32::from(byte.cast_signed()).cast_unsigned())
}

impl Associative {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Rc<Vec<u8>>> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.entries.keys()
    }

    pub(crate) fn insert(&mut self, key: &[u8], value: Rc<Vec<u8>>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = value;
            return;
        }
        if self.entries.len() as u64 >= u64::from(self.buckets).saturating_mul(LOAD) {
            self.grow();
        }
        self.entries.insert(key.to_vec(), Entry { hash: hash(key), sequence: self.next, value });
        self.next += 1;
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Rc<Vec<u8>>> {
        self.entries.remove(key).map(|entry| entry.value)
    }

    /// Removes all entries; the buckets stay.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Moves all entries into more buckets, in their order.
    fn grow(&mut self) {
        let order: Vec<Vec<u8>> = self.iter().map(|(key, _)| key.to_vec()).collect();
        for (sequence, key) in (0..).zip(&order) {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.sequence = sequence;
            }
        }
        self.next = order.len() as u64;
        self.buckets = self.buckets.saturating_mul(GROWTH);
    }

    /// The entries in the order in which bash lists them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Rc<Vec<u8>>)> {
        let mut ordered: Vec<(&Vec<u8>, &Entry)> = self.entries.iter().collect();
        let bucket = |entry: &Entry| entry.hash & self.buckets.wrapping_sub(1);
        ordered.sort_by_key(|(_, entry)| (bucket(entry), u64::MAX - entry.sequence));
        ordered.into_iter().map(|(key, entry)| (key.as_slice(), &entry.value))
    }
}
