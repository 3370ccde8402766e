//! Block group descriptors (from block 1): where the inode tables are and how much of each is in use.

use mkext4::csum::crc32c_raw;
use mkext4::spec::GroupDesc;

use super::superblock::Super;
use super::{BLOCK, BLOCK_LEN, Place, ReadError};

/// `bg_flags`: no inode of the group was ever used.
const INODE_UNINIT: u16 = 1;

/// The part of an inode table that may hold inodes.
pub(super) struct Table {
    /// First block.
    pub(super) block: u64,
    /// Number of the first inode.
    pub(super) first: u32,
    /// How many may be in use, from the first on.
    pub(super) count: u32,
}

/// Reads and checks all descriptors; the tables come back in the order of their inodes.
pub(super) fn read(volume: &Super<'_>) -> Result<Vec<Table>, ReadError> {
    // A block at a time: a forged size must not become an allocation.
    let per_block = BLOCK_LEN / volume.desc_size;
    let mut tables = Vec::new();
    let mut raw = vec![0; BLOCK_LEN];
    for (group, block) in (0..volume.groups).step_by(per_block).zip(1..) {
        volume.read(&mut raw, block * BLOCK)?;
        for (group, desc) in (group..volume.groups).zip(raw.chunks_exact(volume.desc_size)) {
            tables.push(table(volume, group, desc)?);
        }
    }
    Ok(tables)
}

fn table(volume: &Super<'_>, group: u64, raw: &[u8]) -> Result<Table, ReadError> {
    let place = || Place::Group(group);
    let desc = GroupDesc::decode(raw).map_err(|error| ReadError::library(place(), error))?;
    let number = u32::try_from(group).map_err(|_| ReadError::corrupt(place(), "number out of range"))?;
    if let Some(seed) = volume.seed {
        let expected = checksum(seed, number, raw);
        if desc.checksum != expected {
            return Err(ReadError::checksum(place(), desc.checksum.into(), expected.into()));
        }
    }
    let per_group = volume.inodes_per_group;
    let table_blocks = (u64::from(per_group) * volume.inode_size as u64).div_ceil(BLOCK);
    let end = desc.inode_table.checked_add(table_blocks).filter(|end| *end <= volume.info.blocks);
    if desc.inode_table == 0 || end.is_none() {
        let what = format!("inode table at block {} of {}", desc.inode_table, volume.info.blocks);
        return Err(ReadError::corrupt(place(), what));
    }
    let unused = if !volume.counts_unused {
        0
    } else if desc.flags & INODE_UNINIT != 0 {
        per_group
    } else {
        desc.itable_unused
    };
    let Some(count) = per_group.checked_sub(unused) else {
        return Err(ReadError::corrupt(place(), format!("{unused} unused inodes of {per_group}")));
    };
    // No overflow: the superblock's inode count, a u32, is this product for all groups.
    Ok(Table { block: desc.inode_table, first: number * per_group + 1, count })
}

/// Low half of the checksum over group number and descriptor, its own field (at 0x1e) taken as zeros.
fn checksum(seed: u32, group: u32, raw: &[u8]) -> u16 {
    let sum = crc32c_raw(seed, &group.to_le_bytes());
    let sum = crc32c_raw(sum, &raw[..0x1e]);
    let sum = crc32c_raw(sum, &[0; 2]);
    let sum = crc32c_raw(sum, &raw[0x20..]);
    low16(sum)
}

/// The low half of a checksum, which is all that 16-bit fields store.
pub(super) fn low16(sum: u32) -> u16 {
    let [low, high, ..] = sum.to_le_bytes();
    u16::from_le_bytes([low, high])
}
