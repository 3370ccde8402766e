//! Gaps between the groups of a volume, so that one of them can grow without moving the others.
//!
//! The library places inodes and contents contiguously and does not support gaps. So placeholders are declared between
//! the groups: empty files that occupy inodes, and files that occupy blocks. [`super::release`] removes them from the
//! finished metadata, which frees their space. The number of blocks of a placeholder is computed by simulating the
//! allocator of the library.

use std::ops::Range;

use super::geometry::Geometry;
use super::plan::{Content, Plan};
use crate::ext4::BLOCK;

/// Maximum blocks of an extent.
const MAX_EXTENT: u64 = 32_768;
/// Extents that fit into an inode, and into a block of an extent tree.
const ROOT_EXTENTS: u64 = 4;
const LEAF_EXTENTS: u64 = 340;
/// Reserved inodes before those of the tree.
const RESERVED: u64 = 11;
/// Minimum gap of inodes between groups: four blocks of an inode table.
const INODES: u64 = 64;
/// Blocks of 512 KiB, as in cloud snapshots: no two groups share one.
const GRAIN: u64 = 128;
/// How contents of groups are rounded up, in order of preference: to a multiple of this many blocks, and of the next
/// power of two divided by the second number.
const STEPS: [(u64, u64); 5] = [(GRAIN, 1), (GRAIN, 2), (GRAIN, 4), (GRAIN, 8), (16, 16)];
/// The base is followed by a gap of at most an eighth: later groups change more often.
const BASE_STEP: u64 = 8;

/// The placeholders of a volume.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Index of the plan's item that follows each row of placeholders, with the blocks of each; ascending.
    pub(super) rows: Vec<(usize, Vec<u64>)>,
}

impl Gaps {
    /// Distributes free inodes between the groups, without blocks yet. The first placeholder precedes all contents.
    pub(super) fn new(plan: &Plan<'_>, geometry: &Geometry) -> Self {
        let found = [Some(INODES), Some(16), None].into_iter().find_map(|least| {
            let gaps = Self::with_step(plan, least);
            let placeholders: u64 = gaps.rows.iter().map(|(_, row)| row.len() as u64).sum();
            // One more for the directory of the placeholders.
            let needed = RESERVED + plan.items.len() as u64 + placeholders + 1;
            (needed <= u64::from(geometry.inodes)).then_some(gaps)
        });
        found.unwrap_or_default()
    }

    fn with_step(plan: &Plan<'_>, least: Option<u64>) -> Self {
        let Some((last, groups)) = plan.groups.split_last() else { return Self::default() };
        let first = groups.first().unwrap_or(last);
        let mut rows = vec![(first.files.start, vec![0])];
        let mut more = 1;
        for group in groups {
            let end = RESERVED + group.files.end as u64 + more;
            let count = least.map_or(1, |least| {
                let own = group.files.end as u64 - group.start as u64;
                (end + 1).next_multiple_of(least.max(own.next_power_of_two() / 8)) - end
            });
            rows.push((group.files.end, vec![0; usize::try_from(count).unwrap_or(1)]));
            more += count;
        }
        Self { rows }
    }

    /// Assigns blocks to the placeholders, given that contents start at block `start` without them. Without enough
    /// room, they get none.
    pub(super) fn fill(&mut self, plan: &Plan<'_>, geometry: &Geometry, start: u64) {
        let reserved = geometry.reserved();
        let mut attempts = STEPS.into_iter().map(Some).chain([None]);
        let lengths = attempts.find_map(|steps| lengths(plan, geometry, Cursor::new(&reserved, start), steps));
        let Some(lengths) = lengths else { return };
        for ((_, row), mut blocks) in self.rows.iter_mut().zip(lengths) {
            for placeholder in row {
                *placeholder = blocks.min(MAX_EXTENT);
                blocks -= *placeholder;
            }
        }
    }
}

/// Blocks of each gap, starting with the one before all contents; `None` if the volume is too small.
fn lengths(
    plan: &Plan<'_>,
    geometry: &Geometry,
    mut cursor: Cursor<'_>,
    steps: Option<(u64, u64)>,
) -> Option<Vec<u64>> {
    let boundary = cursor.at.next_multiple_of(geometry.alignment());
    let mut gaps = vec![cursor.skip_to(boundary)];
    for (index, group) in plan.groups.iter().enumerate() {
        let begin = Cursor { taken: 0, ..cursor };
        cursor.taken = 0;
        for item in &plan.items[group.files.clone()] {
            if let Content::File { data, .. } = &item.content {
                cursor.file(data);
            }
        }
        let Some((grain, divisor)) = steps.filter(|_| index + 1 < plan.groups.len()) else {
            gaps.push(0);
            continue;
        };
        let divisor = if index == 0 { divisor.max(BASE_STEP) } else { divisor };
        let step = grain.max(cursor.taken.next_power_of_two() / divisor);
        let mut end = begin;
        end.take(cursor.taken.next_multiple_of(step));
        let target = end.at.next_multiple_of(grain);
        gaps.push(cursor.skip_to(target));
    }
    (cursor.at <= geometry.blocks).then_some(gaps)
}

/// Simulates the library's allocator: ascending blocks, skipping reserved ones.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    /// Not yet passed.
    reserved: &'a [Range<u64>],
    at: u64,
    /// Blocks allocated so far.
    taken: u64,
}

impl<'a> Cursor<'a> {
    fn new(reserved: &'a [Range<u64>], at: u64) -> Self {
        Self { reserved, at, taken: 0 }
    }

    /// The next free block, and the number of free blocks from there.
    fn room(&mut self) -> u64 {
        while let Some((next, rest)) = self.reserved.split_first().filter(|(next, _)| next.start <= self.at) {
            self.at = self.at.max(next.end);
            self.reserved = rest;
        }
        self.reserved.first().map_or(u64::MAX, |next| next.start) - self.at
    }

    /// Allocates blocks; returns the number of extents.
    fn take(&mut self, mut blocks: u64) -> u64 {
        let mut extents = 0;
        while blocks > 0 {
            let len = self.room().min(blocks);
            extents += len.div_ceil(MAX_EXTENT);
            self.at += len;
            self.taken += len;
            blocks -= len;
        }
        extents
    }

    /// Allocates the blocks of a file, followed by those of its extent tree.
    fn file(&mut self, data: &[Range<u64>]) {
        let extents: u64 = data.iter().map(|range| self.take((range.end - range.start).div_ceil(BLOCK))).sum();
        if extents > ROOT_EXTENTS {
            let leaves = extents.div_ceil(LEAF_EXTENTS);
            self.take(leaves);
            if leaves > ROOT_EXTENTS {
                self.take(leaves.div_ceil(LEAF_EXTENTS));
            }
        }
    }

    /// Allocates free blocks before `target`; returns their number.
    fn skip_to(&mut self, target: u64) -> u64 {
        let before = self.taken;
        while self.at < target {
            let len = self.room().min(target.saturating_sub(self.at));
            self.at += len;
            self.taken += len;
        }
        self.taken - before
    }
}
