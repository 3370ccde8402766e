//! Sizes derived from the size of a volume, as in `mke2fs`. All in blocks unless noted otherwise.

use std::ops::Range;

use crate::ext4::{BLOCK, BLOCKS_PER_GROUP};

/// Without the feature `64bit` block numbers have 32 bits.
pub(super) const MAX_BLOCKS: u64 = u32::MAX as u64 - 1;
/// Minimum size of a volume: the smallest journal, 1024 blocks, may take a quarter of it.
const MIN_BLOCKS: u64 = 4096;
/// Groups whose metadata are placed together (`s_log_groups_per_flex` of 4).
const FLEX: u64 = 16;
/// Inodes of 256 bytes in a block.
const INODES_PER_BLOCK: u64 = 16;
/// Bytes per inode of mke2fs, 16384, in blocks.
const BLOCKS_PER_INODE: u64 = 4;
/// Maximum inodes of a group, so that the tables of 16 groups fit into one.
const MAX_INODES_PER_GROUP: u64 = 32_512;
/// Minimum blocks of the last group after its metadata; mke2fs drops it otherwise.
const LAST_GROUP: u64 = 50;
/// Granularity of computed sizes: 1 MiB.
const STEP: u64 = 256;

/// The fixed metadata of a volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) blocks: u64,
    /// Number of inodes to request.
    pub(super) inodes: u32,
    /// Size of the journal as in mke2fs.
    pub(super) journal_blocks: u32,
    groups: u64,
    table_blocks: u64,
    descriptor_blocks: u64,
}

/// Number of blocks for this many bytes.
pub(super) fn blocks_of(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK)
}

impl Geometry {
    /// The geometry for a volume of this many bytes with at least `inodes`; `None` if it is impossible.
    pub(super) fn of(bytes: u64, inodes: u64) -> Option<Self> {
        let blocks = bytes / BLOCK;
        let whole = Self::with_blocks(blocks, inodes)?;
        let last = blocks % BLOCKS_PER_GROUP;
        let group = whole.groups - 1;
        let mut metadata = LAST_GROUP;
        metadata += if group % FLEX == 0 { 2 + whole.table_blocks } else { 0 };
        metadata += if has_backup(group) { 1 + whole.descriptor_blocks } else { 0 };
        if last != 0 && last < metadata && group > 0 {
            return Self::with_blocks(blocks - last, inodes);
        }
        Some(whole)
    }

    fn with_blocks(blocks: u64, inodes: u64) -> Option<Self> {
        if !(MIN_BLOCKS..=MAX_BLOCKS).contains(&blocks) {
            return None;
        }
        let groups = blocks.div_ceil(BLOCKS_PER_GROUP);
        let wanted = inodes.max(blocks / BLOCKS_PER_INODE);
        let per_group = wanted.div_ceil(groups).next_multiple_of(INODES_PER_BLOCK);
        if per_group > MAX_INODES_PER_GROUP {
            return None;
        }
        Some(Self {
            blocks,
            inodes: u32::try_from(wanted).ok()?,
            journal_blocks: journal_blocks(blocks),
            groups,
            table_blocks: per_group / INODES_PER_BLOCK,
            descriptor_blocks: (groups * 32).div_ceil(BLOCK),
        })
    }

    /// Blocks that are not available for contents and directories.
    pub(super) fn overhead(&self) -> u64 {
        let copies = 1 + (1..self.groups).filter(|group| has_backup(*group)).count() as u64;
        copies * (1 + self.descriptor_blocks) + self.groups * (2 + self.table_blocks) + u64::from(self.journal_blocks)
    }

    /// Blocks that are not available for contents and directories, ascending: copies of the superblock, and metadata of
    /// all groups except the first ones, which precede everything else.
    pub(super) fn reserved(&self) -> Vec<Range<u64>> {
        let mut reserved = Vec::new();
        for group in 1..self.groups {
            let start = group * BLOCKS_PER_GROUP;
            if has_backup(group) {
                reserved.push(start..start + 1 + self.descriptor_blocks);
            } else if group % FLEX == 0 {
                let members = FLEX.min(self.groups - group);
                reserved.push(start..start + members * (2 + self.table_blocks));
            }
        }
        reserved
    }

    /// The boundary at which contents start: a 64th of the volume, 64 KiB to 16 MiB. A Debian root has some 20 MiB of
    /// directories, which grow by a few blocks from one release to the next.
    pub(super) fn alignment(&self) -> u64 {
        (self.blocks / 64).next_power_of_two().clamp(16, 4096)
    }
}

/// The smallest size in bytes, with its geometry, that leaves `need` blocks after the metadata, and with `align` room
/// to align the contents.
pub(super) fn smallest(need: u64, inodes: u64, align: bool) -> Option<(u64, Geometry)> {
    let room = |step: u64| {
        let geometry = Geometry::of(step * STEP * BLOCK, inodes)?;
        let slack = if align { geometry.alignment() } else { 0 };
        let short = (need + slack + geometry.overhead()).saturating_sub(geometry.blocks);
        Some((geometry, short))
    };
    let last = MAX_BLOCKS / STEP;
    let mut step = need.max(MIN_BLOCKS).div_ceil(STEP);
    while step <= last {
        match room(step) {
            Some((geometry, 0)) => return Some((step * STEP * BLOCK, geometry)),
            // A larger volume never needs fewer blocks, so the missing ones can be skipped.
            Some((_, short)) => step += short.div_ceil(STEP),
            None => step += 1,
        }
    }
    None
}

/// `sparse_super`: copies of the superblock are in group 1 and in powers of 3, 5 and 7.
pub(super) fn has_backup(group: u64) -> bool {
    let power = |base: u64| {
        let mut value = base;
        while value < group {
            value *= base;
        }
        value == group
    };
    group == 1 || power(3) || power(5) || power(7)
}

/// Journal length by the table of mke2fs (`ext2fs_default_journal_size`).
fn journal_blocks(blocks: u64) -> u32 {
    match blocks {
        0..=32_767 => 1024,
        32_768..=262_143 => 4096,
        262_144..=524_287 => 8192,
        524_288..=4_194_303 => 16_384,
        4_194_304..=8_388_607 => 32_768,
        8_388_608..=16_777_215 => 65_536,
        16_777_216..=33_554_431 => 131_072,
        _ => 262_144,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_that_of_mke2fs() {
        // `s_overhead_clusters` of volumes made by mke2fs 1.47 without resize_inode and 64bit.
        for (blocks, overhead) in [(131_072, 6158), (16_777_216, 394_305)] {
            assert_eq!(Geometry::of(blocks * BLOCK, 0).unwrap().overhead(), overhead);
        }
    }

    #[test]
    fn a_last_group_without_room_for_its_metadata_is_dropped() {
        let full = 16 * BLOCKS_PER_GROUP;
        assert_eq!(Geometry::of((full + 100) * BLOCK, 0).unwrap().blocks, full);
        assert_eq!(Geometry::of((full + 1000) * BLOCK, 0).unwrap().blocks, full + 1000);
        assert!(Geometry::of(1000 * BLOCK, 0).is_none());
        assert!(Geometry::of(1 << 62, 0).is_none());
    }
}
