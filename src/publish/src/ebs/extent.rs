//! Determines used and free blocks of a disk from its partitions.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use vmbake_disk::ext4;
use vmbake_disk::layout::{Layout, Part, Scheme};
use vmbake_disk::source::ReadAt;
use vmbake_disk::write::BLOCK_LEN;

/// Block size in bytes.
const BLOCK: u64 = BLOCK_LEN as u64;

/// Ranges of blocks, ascending and disjoint. Blocks in neither list are outside of partitions: they are relevant unless
/// they are zeros.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extents {
    /// Blocks that may be read, including zeros.
    pub(super) used: Vec<Range<u64>>,
    /// Blocks in partitions that are completely free.
    pub(super) free: Vec<Range<u64>>,
}

/// The used and free blocks of a disk. In case of doubt, all blocks are used.
pub(super) fn extents(disk: &Arc<dyn ReadAt>) -> Extents {
    let end = disk.len().div_ceil(BLOCK);
    let Ok(layout) = Layout::read(disk.clone()) else {
        return Extents { used: joined(iter::once(0..end).collect()), free: Vec::new() };
    };
    let (mut used, mut inside) = (Vec::new(), Vec::new());
    if !matches!(layout.scheme(), Scheme::Whole(_)) {
        // Both copies of a partition table and boot code are shorter than a block.
        used.extend([0..end.min(1), end.saturating_sub(1)..end]);
    }
    for part in layout.parts() {
        let range = part.start.min(disk.len())..part.start.saturating_add(part.len).min(disk.len());
        used.extend(
            used_bytes(&layout, part, &range).into_iter().map(|bytes| bytes.start / BLOCK..bytes.end.div_ceil(BLOCK)),
        );
        inside.push(range);
    }
    let used = joined(used);
    // A block that spans two partitions is inside their union.
    let inside =
        joined(inside).into_iter().map(|bytes| bytes.start.div_ceil(BLOCK)..whole_blocks(bytes.end, disk.len()));
    let free = without(&joined(inside.collect()), &used);
    Extents { used, free }
}

/// Number of blocks that end at or before `at`; the last one of a disk may be shorter.
fn whole_blocks(at: u64, len: u64) -> u64 {
    if at == len { len.div_ceil(BLOCK) } else { at / BLOCK }
}

/// The bytes of the disk that a partition uses: all except for free blocks of ext4.
fn used_bytes(layout: &Layout, part: &Part, range: &Range<u64>) -> Vec<Range<u64>> {
    let free = layout.open(part).ok().and_then(|volume| ext4::free_ranges(&*volume, BLOCK).ok()).unwrap_or_default();
    let free: Vec<_> = free.into_iter().map(|free| part.start + free.start..part.start + free.end).collect();
    without(std::slice::from_ref(range), &free)
}

/// Sorts ranges, and joins those that touch or overlap.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut found: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match found.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => found.push(range),
        }
    }
    found
}

/// `ranges` without `others`; both are ascending and disjoint.
pub(super) fn without(ranges: &[Range<u64>], others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for range in ranges {
        let mut at = range.start;
        let first = others.partition_point(|other| other.end <= range.start);
        for other in others[first..].iter().take_while(|other| other.start < range.end) {
            left.push(at..other.start.max(at));
            at = other.end;
        }
        left.push(at.min(range.end)..range.end);
    }
    left.retain(|range| !range.is_empty());
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_taken_away() {
        assert_eq!(joined(vec![5..7, 0..2, 2..3, 6..9, 4..4]), [0..3, 5..9]);
        for (others, left) in [
            (vec![], vec![0..10, 20..30]),
            (vec![0..10, 20..30], vec![]),
            (vec![0..5, 25..40], vec![5..10, 20..25]),
            (vec![2..3, 5..6, 9..22], vec![0..2, 3..5, 6..9, 22..30]),
            (vec![10..20, 30..40], vec![0..10, 20..30]),
        ] {
            assert_eq!(without(&[0..10, 20..30], &others), left, "{others:?}");
        }
    }

    #[test]
    fn an_unknown_disk_is_used() {
        let disk: Arc<dyn ReadAt> = Arc::new(vec![0xa5; 3 * BLOCK_LEN]);
        let found = extents(&disk);
        assert_eq!((found.used.first(), found.used.len(), found.free), (Some(&(0..3)), 1, vec![]));
    }
}
