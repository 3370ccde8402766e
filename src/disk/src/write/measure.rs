//! The fs-verity digest of an existing file, as printed by `fsverity digest FILE`, computed by several threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::block::is_zero;
use super::merkle::{BLOCK, GROUP, Hash, Hasher};
use super::verity::{SALT, Tree};
use crate::source::ReadAt;

/// The fs-verity digest of `source`, with SHA-256, blocks of 4096 bytes and no salt. Holes are not read.
pub fn fsverity(source: &dyn ReadAt, threads: NonZeroUsize) -> io::Result<[u8; 32]> {
    Ok(GroupHashes::of(source, threads)?.digest())
}

/// The hashes of a file's groups, from which its fs-verity digest is computed. For a similar file, only some must be
/// recomputed.
#[derive(Clone, Debug)]
pub struct GroupHashes {
    len: u64,
    /// By offset of the group; missing ones are zeros.
    groups: BTreeMap<u64, Hash>,
}

impl GroupHashes {
    /// Hashes `source`.
    pub fn of(source: &dyn ReadAt, threads: NonZeroUsize) -> io::Result<Self> {
        let starts = groups(source)?;
        Ok(Self { len: source.len(), groups: hashed(source, &starts, threads)? })
    }

    /// The hashes computed by a writer.
    pub(super) fn made(len: u64, groups: BTreeMap<u64, Hash>) -> Self {
        Self { len, groups }
    }

    /// Hashes of a file similar to `other`: it has the same bytes except for groups that intersect `differ`, and at its
    /// end.
    pub fn of_similar(
        &self,
        other: &dyn ReadAt,
        differ: impl Iterator<Item = Range<u64>>,
        threads: NonZeroUsize,
    ) -> io::Result<Self> {
        let (len, group) = (other.len(), GROUP as u64);
        let shared = self.len.min(len);
        if shared <= BLOCK as u64 {
            return Self::of(other, threads);
        }
        let mut anew: BTreeSet<u64> = BTreeSet::new();
        for Range { start, end } in differ {
            anew.extend((start / group * group..end.min(len)).step_by(GROUP));
        }
        if self.len != len {
            anew.extend(groups(other)?.into_iter().filter(|at| at + group > shared));
        }
        let is_kept = |at: &u64| !anew.contains(at) && (self.len == len || at + group <= shared);
        let kept = self.groups.iter().filter(|(at, _)| is_kept(at)).map(|(at, hash)| (*at, *hash));
        let mut all: BTreeMap<u64, Hash> = kept.collect();
        all.extend(hashed(other, &anew.into_iter().collect::<Vec<_>>(), threads)?);
        Ok(Self { len, groups: all })
    }

    /// The fs-verity digest.
    pub fn digest(self) -> [u8; 32] {
        let mut tree = Tree::new(self.len);
        self.groups.into_iter().for_each(|(at, hash)| tree.append(at, hash));
        tree.finish()
    }
}

fn hashed(source: &dyn ReadAt, starts: &[u64], threads: NonZeroUsize) -> io::Result<BTreeMap<u64, Hash>> {
    let hasher = Hasher::new(source.len(), SALT);
    let hash = |at, buffer: &mut Vec<u8>| group(source, &hasher, at, buffer);
    Ok(each(starts, threads, hash)?.into_iter().collect())
}

/// Calls `work` for all of `starts` on several threads, each with its own buffer; the results are in the order of the
/// starts.
pub(super) fn each<B: Default, T: Send>(
    starts: &[u64],
    threads: NonZeroUsize,
    work: impl Fn(u64, &mut B) -> io::Result<T> + Sync,
) -> io::Result<Vec<(u64, T)>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Ok(Vec::with_capacity(starts.len())));
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                let mut buffer = B::default();
                while let Some(at) = starts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(*at, &mut buffer);
                    let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match (result, &mut *done) {
                        (Ok(result), Ok(results)) => results.push((*at, result)),
                        (Err(error), Ok(_)) => *done = Err(error),
                        (_, Err(_)) => return,
                    }
                }
            });
        }
    });
    let mut results = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    results.sort_unstable_by_key(|(at, _)| *at);
    Ok(results)
}

/// The offsets of groups with data.
pub(super) fn groups(source: &dyn ReadAt) -> io::Result<Vec<u64>> {
    let group = GROUP as u64;
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(data) = source.next_data(at)? {
        let first = data.start / group * group;
        // Two runs of data may start in one group.
        let first = starts.last().map_or(first, |last| first.max(last + group));
        starts.extend((first..data.end).step_by(GROUP));
        at = data.end;
    }
    Ok(starts)
}

fn group(source: &dyn ReadAt, hasher: &Hasher, at: u64, buffer: &mut Vec<u8>) -> io::Result<Hash> {
    let zeros = read_group(source, at, buffer)?;
    Ok(hasher.group(buffer, &zeros))
}

/// Reads the group at `at`; returns for each of its blocks whether it is all zeros.
pub(super) fn read_group(source: &dyn ReadAt, at: u64, buffer: &mut Vec<u8>) -> io::Result<Vec<bool>> {
    let len = usize::try_from(source.len().saturating_sub(at)).map_or(GROUP, |left| left.min(GROUP));
    buffer.resize(len, 0);
    source.read_exact_at(buffer, at)?;
    Ok(buffer.chunks(BLOCK).map(is_zero).collect())
}
