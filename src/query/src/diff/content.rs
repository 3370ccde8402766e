//! Compares the contents of files as streams.

use std::num::NonZeroUsize;

use vmbake_common::message;
use vmbake_disk::source::{Map, Sources};
use vmbake_disk::tree::Tree;

use super::DiffError;
use super::paths::Pair;
use vmbake_common::parallel::for_each;

/// Bytes per read.
const CHUNK: u64 = 256 << 10;

/// Bytes of files per unit of work. Neighbors on the disk stay together, since they share compressed clusters.
const BATCH: u64 = 8 << 20;

/// Two files of the same length that may differ: their position in the list of pairs, and their contents.
struct Task<'a> {
    index: usize,
    from: &'a Map,
    to: &'a Map,
}

/// Compares files of the same length, and records where they differ. `same` means that both trees
/// belong to one image, so that equal runs have equal bytes.
pub(super) fn compare(
    from: &Tree,
    to: &Tree,
    pairs: &mut [Pair<'_>],
    same: bool,
    threads: NonZeroUsize,
) -> Result<(), DiffError> {
    let files = pairs.iter().enumerate().filter_map(|(index, pair)| Some((index, pair.contents()?)));
    let mut tasks: Vec<Task<'_>> = files
        .filter(|(_, (from, to))| !same || from != to)
        .map(|(index, (from, to))| Task { index, from, to })
        .collect();
    tasks.sort_by_key(|task| task.from.extents().first().map(|extent| extent.offset));
    let results = for_each(batches(tasks), threads, |batch| {
        let mut buffers = Buffers::default();
        let compared = batch.into_iter().map(|Task { index, from: a, to: b }| {
            (index, buffers.first_difference((a, from.sources()), (b, to.sources())))
        });
        compared.collect::<Vec<_>>()
    });
    for (index, result) in results.into_iter().flatten() {
        let pair = &mut pairs[index];
        let found = result.map_err(|source| {
            DiffError::Message(message!("{}: cannot compare the contents", pair.text()).by(source))
        })?;
        if let Some(at) = found {
            pair.differs_at(at);
        }
    }
    Ok(())
}

fn batches(tasks: Vec<Task<'_>>) -> Vec<Vec<Task<'_>>> {
    let mut batches: Vec<Vec<Task<'_>>> = Vec::new();
    let mut room = 0;
    for task in tasks {
        let len = task.from.data_len();
        match batches.last_mut() {
            Some(batch) if room >= len => {
                batch.push(task);
                room -= len;
            }
            _ => {
                batches.push(vec![task]);
                room = BATCH.saturating_sub(len);
            }
        }
    }
    batches
}

/// Read buffers of both files.
#[derive(Default)]
struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Buffers {
    /// Offset of the first difference between two contents of the same length. Common holes are not read.
    fn first_difference(&mut self, from: (&Map, &Sources), to: (&Map, &Sources)) -> std::io::Result<Option<u64>> {
        let len = from.0.len();
        let mut at = 0;
        loop {
            let data = [from, to].map(|(map, sources)| map.next_data(sources, at));
            let starts = data.into_iter().filter_map(|data| data.transpose()).map(|data| data.map(|data| data.start));
            let Some(start) = starts.collect::<std::io::Result<Vec<u64>>>()?.into_iter().min() else { return Ok(None) };
            let size = usize::try_from(CHUNK.min(len - start)).unwrap_or(usize::MAX);
            for ((map, sources), buffer) in [(from, &mut self.from), (to, &mut self.to)] {
                buffer.resize(size, 0);
                map.read_exact_at(sources, buffer, start)?;
            }
            if self.from != self.to {
                let equal = self.from.iter().zip(&self.to).take_while(|(a, b)| a == b).count();
                return Ok(Some(start + equal as u64));
            }
            at = start + size as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vmbake_disk::source::Extent;

    use super::*;

    fn map(sources: &mut Sources, len: u64, runs: &[(u64, &[u8])]) -> Map {
        let mut map = Map::hole(len);
        for (at, bytes) in runs {
            let source = sources.add(Arc::new(bytes.to_vec()));
            map.push(Extent { at: *at, len: bytes.len() as u64, source, offset: 0 });
        }
        map
    }

    #[test]
    fn the_first_difference_is_found_across_holes_and_chunks() {
        let far = 1 << 40;
        let long = vec![7; 600 << 10];
        let mut other = long.clone();
        other[500 << 10] = 8;
        for (a, b, expected) in [
            (&[][..], &[][..], None),
            (&[(0, &b"ab"[..])][..], &[(0, &b"a"[..]), (1, b"b")][..], None),
            (&[(5, b"\0\0")], &[], None),
            (&[(5, b"\0x")], &[], Some(6)),
            (&[], &[(far - 1, b"x")], Some(far - 1)),
            (&[(3, &long)], &[(3, &other)], Some(3 + (500 << 10))),
            (&[(3, &long)], &[(3, &long)], None),
        ] {
            let (mut left, mut right) = (Sources::default(), Sources::default());
            let (a, b) = (map(&mut left, far, a), map(&mut right, far, b));
            assert_eq!(Buffers::default().first_difference((&a, &left), (&b, &right)).unwrap(), expected);
        }
    }
}
