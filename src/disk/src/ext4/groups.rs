//! Block group descriptors (`ext4_group_desc`): location and usage of the inode tables.

use mkext4::csum::crc32c_raw;

use super::corruption::VolumeFault;
use super::superblock::Super;
use super::{Location, ReadError, le16, le32};

/// `bg_flags`: no inode of the group was ever used.
const INODE_UNINIT: u16 = 1;
/// `bg_flags`: the block bitmap of the group is uninitialized.
pub(super) const BG_BLOCK_UNINIT: u16 = 2;
/// Offset of `bg_checksum`.
const BG_CHECKSUM: usize = 0x1e;
/// Length of a descriptor with 32-bit numbers.
const SHORT: usize = 32;

/// The used part of an inode table.
pub(super) struct Table {
    /// First block.
    pub(super) block: u64,
    /// Number of the first inode.
    pub(super) first: u32,
    /// Number of inodes that may be used, from the first on.
    pub(super) count: u32,
}

/// A block group.
pub(super) struct Group {
    /// `bg_flags`, which are meaningless in a volume without checksums of descriptors.
    pub(super) flags: u16,
    /// Block of the block bitmap, not validated.
    pub(super) bitmap: u64,
    /// Checksum of the block bitmap; its high half is 0 if the descriptor has no field for it.
    pub(super) bitmap_sum: u32,
    /// Block of the inode bitmap, not validated.
    pub(super) inode_bitmap: u64,
    /// Whether the descriptor has high halves.
    pub(super) has_high: bool,
    pub(super) table: Table,
}

impl<'a> Super<'a> {
    /// Reads and validates all descriptors; the tables are in the order of their inodes.
    pub(super) fn with_tables(mut self) -> Result<Self, ReadError> {
        let tables = self.each_group(table)?;
        check_disjoint(&self, &tables)?;
        self.tables = tables;
        Ok(self)
    }

    /// Reads and validates all descriptors.
    pub(super) fn read_groups(&self) -> Result<Vec<Group>, ReadError> {
        self.each_group(|volume, group, desc| Ok(Group::of(table(volume, group, desc)?, desc)))
    }

    /// Applies `look` to each descriptor.
    fn each_group<T>(&self, look: impl Fn(&Self, u64, &[u8]) -> Result<T, ReadError>) -> Result<Vec<T>, ReadError> {
        // One block at a time: a forged size must not cause a large allocation.
        let per_block = self.block_len / self.desc_size;
        let mut found = Vec::new();
        let mut raw = vec![0; self.block_len];
        for (group, index) in (0..self.groups).step_by(per_block).zip(0..) {
            self.read(&mut raw, descriptors_at(self, group, index))?;
            for (group, desc) in (group..self.groups).zip(raw.chunks_exact(self.desc_size)) {
                found.push(look(self, group, desc)?);
            }
        }
        Ok(found)
    }
}

impl Group {
    fn of(table: Table, raw: &[u8]) -> Self {
        let has_high = raw.len() > SHORT;
        let high = |at| if has_high { u64::from(le32(raw, at)) << 32 } else { 0 };
        let sum_high = if has_high { u32::from(le16(raw, 0x38)) << 16 } else { 0 }; // bg_block_bitmap_csum_hi
        Self {
            flags: le16(raw, 0x12),
            bitmap: u64::from(le32(raw, 0x00)) | high(0x20), // bg_block_bitmap_lo and _hi
            bitmap_sum: u32::from(le16(raw, 0x18)) | sum_high, // bg_block_bitmap_csum_lo
            inode_bitmap: u64::from(le32(raw, 0x04)) | high(0x24), // bg_inode_bitmap_lo and _hi
            has_high,
            table,
        }
    }
}

/// Refuses groups with overlapping inode tables, which would be read twice.
fn check_disjoint(volume: &Super<'_>, tables: &[Table]) -> Result<(), ReadError> {
    let mut starts: Vec<(u64, u64)> = tables.iter().map(|table| table.block).zip(0..).collect();
    starts.sort_unstable();
    let len = table_blocks(volume);
    match starts.array_windows().find(|[(one, _), (next, _)]| next - one < len) {
        None => Ok(()),
        Some([(_, one), (block, next)]) => {
            let what = VolumeFault::InodeTablesOverlap { block: *block, other: *one };
            Err(ReadError::corrupt(Location::Group(*next), what))
        }
    }
}

/// Blocks of the inode table of a group.
pub(super) fn table_blocks(volume: &Super<'_>) -> u64 {
    (u64::from(volume.inodes_per_group) * volume.inode_size as u64).div_ceil(volume.block)
}

/// Offset of block `index` of the descriptors in bytes; the first of them is that of `group`.
fn descriptors_at(volume: &Super<'_>, group: u64, index: u64) -> u64 {
    // The block of the superblock: 1 for blocks of 1 KiB, regardless of `s_first_data_block`.
    let superblock = u64::from(volume.block == 1024);
    let block = if !volume.features.meta_bg() || index < u64::from(volume.first_meta_bg) {
        superblock + 1 + index
    } else {
        let start = u64::from(volume.first_data_block) + group * volume.blocks_per_group;
        let before = u64::from(has_superblock(volume, group));
        // With clusters, blocks of 1 KiB are counted from 0, and the superblock is in block 1 of group 0.
        let boot = u64::from(volume.block == 1024 && group == 0 && volume.first_data_block == 0);
        start + before + boot
    };
    // No overflow: the group starts inside the volume.
    block * volume.block
}

/// Whether a group starts with a copy of the superblock.
pub(super) fn has_superblock(volume: &Super<'_>, group: u64) -> bool {
    if group == 0 {
        return true;
    }
    if volume.features.sparse_super2() {
        return volume.backup_groups.iter().any(|backup| u64::from(*backup) == group);
    }
    let power_of = |base: u64| {
        let mut power = base;
        while power < group {
            power *= base;
        }
        power == group
    };
    group == 1 || !volume.features.sparse_super() || [3, 5, 7].into_iter().any(power_of)
}

fn table(volume: &Super<'_>, group: u64, raw: &[u8]) -> Result<Table, ReadError> {
    let place = || Location::Group(group);
    let number = u32::try_from(group).map_err(|_| ReadError::corrupt(place(), VolumeFault::GroupNumber))?;
    check_sum(volume, number, raw)?;
    let has_high = raw.len() > SHORT;
    let high = if has_high { u64::from(le32(raw, 0x28)) << 32 } else { 0 }; // bg_inode_table_hi
    let block = u64::from(le32(raw, 0x08)) | high; // bg_inode_table_lo
    let per_group = volume.inodes_per_group;
    if !volume.holds(block, table_blocks(volume)) {
        let what = VolumeFault::InodeTable { block, blocks: volume.info.blocks };
        return Err(ReadError::corrupt(place(), what));
    }
    let counts_unused = volume.seed.is_some() || volume.features.gdt_csum();
    let bg_flags = le16(raw, 0x12);
    let unused = if !counts_unused {
        0
    } else if bg_flags & INODE_UNINIT != 0 {
        per_group
    } else {
        // bg_itable_unused_lo and _hi
        u32::from(le16(raw, 0x1c)) | if has_high { u32::from(le16(raw, 0x32)) << 16 } else { 0 }
    };
    let Some(count) = per_group.checked_sub(unused) else {
        return Err(ReadError::corrupt(place(), VolumeFault::UnusedInodes { found: unused, per_group }));
    };
    // No overflow: the superblock's inode count, a u32, is this product for all groups.
    Ok(Table { block, first: number * per_group + 1, count })
}

fn check_sum(volume: &Super<'_>, group: u32, raw: &[u8]) -> Result<(), ReadError> {
    let expected = match volume.seed {
        Some(seed) => checksum(seed, group, raw),
        None if volume.features.gdt_csum() => crc16_checksum(volume, group, raw),
        None => return Ok(()),
    };
    let found = le16(raw, BG_CHECKSUM);
    if found != expected {
        return Err(ReadError::checksum(Location::Group(group.into()), found.into(), expected.into()));
    }
    Ok(())
}

/// Low half of the checksum over group number and descriptor, with its own field as zeros.
fn checksum(seed: u32, group: u32, raw: &[u8]) -> u16 {
    let sum = crc32c_raw(seed, &group.to_le_bytes());
    let sum = crc32c_raw(sum, &raw[..BG_CHECKSUM]);
    let sum = crc32c_raw(sum, &[0; 2]);
    let sum = crc32c_raw(sum, &raw[BG_CHECKSUM + 2..]);
    low16(sum)
}

/// The older checksum, over UUID, group number and descriptor, without its own field.
fn crc16_checksum(volume: &Super<'_>, group: u32, raw: &[u8]) -> u16 {
    let sum = crc16(!0, &volume.info.uuid);
    let sum = crc16(sum, &group.to_le_bytes());
    let sum = crc16(sum, &raw[..BG_CHECKSUM]);
    crc16(sum, &raw[BG_CHECKSUM + 2..])
}

/// CRC-16 with the polynomial 0x8005, its bits reflected (`lib/crc16.c` of the kernel).
fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    let shift = |sum: u16| if sum & 1 == 0 { sum >> 1 } else { sum >> 1 ^ 0xa001 };
    bytes.iter().fold(seed, |sum, byte| (0..8).fold(sum ^ u16::from(*byte), |sum, _| shift(sum)))
}

/// The low half of a checksum, as stored in 16-bit fields.
pub(super) fn low16(sum: u32) -> u16 {
    let [low, high, ..] = sum.to_le_bytes();
    u16::from_le_bytes([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_is_that_of_its_check_value() {
        // The catalogue's check value of CRC-16/ARC, which starts at 0.
        assert_eq!(crc16(0, b"123456789"), 0xbb3d);
    }
}
