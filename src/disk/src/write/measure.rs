//! The fs-verity digest of a file that was written earlier: what `fsverity digest FILE` prints, by many threads.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::block::is_zero;
use super::verity::{BLOCK, GROUP, Hash, Hasher, Tree};
use crate::source::ReadAt;

/// The fs-verity digest of `source`, with SHA-256, blocks of 4096 bytes and no salt. Holes are not read.
pub fn fsverity(source: &dyn ReadAt, threads: NonZeroUsize) -> io::Result<[u8; 32]> {
    let len = source.len();
    let (hasher, starts, next) = (Hasher::new(len), groups(source)?, AtomicUsize::new(0));
    let done = Mutex::new(Ok(Vec::with_capacity(starts.len())));
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                let mut buffer = vec![0; GROUP];
                while let Some(at) = starts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let hash = group(source, &hasher, *at, &mut buffer);
                    let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match (hash, &mut *done) {
                        (Ok(hash), Ok(hashes)) => hashes.push((*at, hash)),
                        (Err(error), Ok(_)) => *done = Err(error),
                        (_, Err(_)) => return,
                    }
                }
            });
        }
    });
    let mut hashes = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    hashes.sort_unstable_by_key(|(at, _)| *at);
    let mut tree = Tree::new(len);
    hashes.into_iter().for_each(|(at, hash)| tree.append(at, hash));
    Ok(tree.finish())
}

/// Where the groups begin that have data.
fn groups(source: &dyn ReadAt) -> io::Result<Vec<u64>> {
    let group = GROUP as u64;
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(data) = source.next_data(at)? {
        let first = data.start / group * group;
        // Two runs of data may begin in one group.
        let first = starts.last().map_or(first, |last| first.max(last + group));
        starts.extend((first..data.end).step_by(GROUP));
        at = data.end;
    }
    Ok(starts)
}

fn group(source: &dyn ReadAt, hasher: &Hasher, at: u64, buffer: &mut [u8]) -> io::Result<Hash> {
    let len = usize::try_from(source.len().saturating_sub(at)).map_or(GROUP, |left| left.min(GROUP));
    let data = &mut buffer[..len];
    source.read_exact_at(data, at)?;
    let zeros: Vec<bool> = data.chunks(BLOCK).map(is_zero).collect();
    Ok(hasher.group(data, &zeros))
}
