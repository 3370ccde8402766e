//! Free blocks of a volume, according to the block bitmap of each group.
//!
//! Only certain results are returned: a volume that is not clean, or has features that change the meaning of a bit, has
//! no free ranges. An uninitialized bitmap (`BLOCK_UNINIT`) is computed as in the kernel.

use std::ops::Range;

use mkext4::csum::crc32c_raw;

use super::corruption::VolumeFault;
use super::groups::{BG_BLOCK_UNINIT, Group, has_superblock, low16, table_blocks};
use super::superblock::Super;
use super::{Location, ReadError};
use crate::source::ReadAt;

/// The free byte ranges of a volume, ascending and disjoint; only those of at least `least` bytes.
pub fn free_ranges(source: &dyn ReadAt, least: u64) -> Result<Vec<Range<u64>>, ReadError> {
    let volume = Super::open(source)?;
    let features = volume.features;
    if !volume.info.is_clean() || features.bigalloc() || features.shared_blocks() || features.meta_bg() {
        return Ok(Vec::new());
    }
    let groups = volume.read_groups()?;
    let mut free = Free { least, block: volume.block, ranges: Vec::new(), run: 0..0 };
    for (number, group) in (0..).zip(&groups) {
        let range = volume.blocks_of(number);
        if volume.has_checksums() && group.flags & BG_BLOCK_UNINIT != 0 {
            volume.add_unwritten(number, range, group, &mut free);
        } else {
            volume.add_written(number, range, group, &mut free)?;
        }
    }
    free.close();
    Ok(free.ranges)
}

impl Super<'_> {
    /// The blocks of a group, which starts inside the volume.
    fn blocks_of(&self, group: u64) -> Range<u64> {
        let start = u64::from(self.first_data_block) + group * self.blocks_per_group;
        start..(start + self.blocks_per_group).min(self.info.blocks)
    }

    fn has_checksums(&self) -> bool {
        self.seed.is_some() || self.features.gdt_csum()
    }

    /// A group with an initialized bitmap.
    fn add_written(&self, number: u64, range: Range<u64>, group: &Group, free: &mut Free) -> Result<(), ReadError> {
        if !self.holds(group.bitmap, 1) {
            let what = VolumeFault::BlockBitmap { block: group.bitmap, blocks: self.info.blocks };
            return Err(ReadError::corrupt(Location::Group(number), what));
        }
        let bitmap = self.read_block(group.bitmap)?;
        self.check_bitmap(number, group, &bitmap)?;
        for (block, index) in range.zip(0..) {
            let byte = usize::try_from(index / 8).ok().and_then(|at| bitmap.get(at));
            if byte.is_some_and(|byte| byte >> (index % 8) & 1 == 0) {
                free.add(block..block + 1);
            }
        }
        Ok(())
    }

    /// Descriptors of 32 bytes have the low half of the checksum only.
    fn check_bitmap(&self, number: u64, group: &Group, bitmap: &[u8]) -> Result<(), ReadError> {
        let Some(seed) = self.seed else { return Ok(()) };
        let len = usize::try_from(self.blocks_per_group / 8).unwrap_or(bitmap.len()).min(bitmap.len());
        let sum = crc32c_raw(seed, &bitmap[..len]);
        let expected = if group.has_high { sum } else { low16(sum).into() };
        match group.bitmap_sum == expected {
            true => Ok(()),
            false => Err(ReadError::checksum(Location::Group(number), group.bitmap_sum, expected)),
        }
    }

    /// A group with an uninitialized bitmap: free except for copies of the superblock and of the descriptors, and its
    /// own bitmaps and inode table, if they are inside (`ext4_init_block_bitmap` of the kernel).
    fn add_unwritten(&self, number: u64, range: Range<u64>, group: &Group, free: &mut Free) {
        let base = if has_superblock(self, number) { 1 + self.descriptor_blocks() } else { 0 };
        let mut used = [
            range.start..range.start.saturating_add(base),
            group.bitmap..group.bitmap.saturating_add(1),
            group.inode_bitmap..group.inode_bitmap.saturating_add(1),
            group.table.block..group.table.block.saturating_add(table_blocks(self)),
        ];
        used.sort_unstable_by_key(|used| used.start);
        let mut at = range.start;
        for used in used {
            free.add(at..used.start.min(range.end));
            at = at.max(used.end);
        }
        free.add(at..range.end);
    }

    /// Blocks of the descriptors, and those reserved for additional ones.
    fn descriptor_blocks(&self) -> u64 {
        (self.groups * self.desc_size as u64).div_ceil(self.block) + u64::from(self.reserved_descriptor_blocks)
    }
}

/// Joins free blocks to ranges, across groups.
struct Free {
    least: u64,
    block: u64,
    ranges: Vec<Range<u64>>,
    /// The last run of blocks.
    run: Range<u64>,
}

impl Free {
    /// Adds blocks after all previous ones.
    fn add(&mut self, blocks: Range<u64>) {
        if blocks.start >= blocks.end {
            return;
        }
        if self.run.end == blocks.start {
            self.run.end = blocks.end;
        } else {
            self.close();
            self.run = blocks;
        }
    }

    /// Adds the last run to the result if it is long enough. Nothing overflows: the blocks are inside the volume.
    fn close(&mut self) {
        let range = self.run.start * self.block..self.run.end * self.block;
        if !range.is_empty() && range.end - range.start >= self.least {
            self.ranges.push(range);
        }
    }
}
