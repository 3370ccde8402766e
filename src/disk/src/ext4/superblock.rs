//! The superblock (`ext4_super_block`, 1024 bytes at offset 1024): geometry and features.

use std::cell::Cell;

use mkext4::csum;

use super::corruption::VolumeFault;
use super::error::{REBUILD, REPAIR};
use super::features::Features;
use super::groups::Table;
use super::{Location, ReadError, le16, le32};
use crate::source::ReadAt;

/// Where the superblock starts, in bytes.
const OFFSET: u64 = 1024;
/// Its length in bytes.
const LEN: usize = 1024;
/// `s_magic`.
const MAGIC: u16 = 0xef53;
/// Largest `s_log_block_size` (`EXT4_MAX_BLOCK_LOG_SIZE`): blocks of 64 KiB.
const MAX_LOG_BLOCK_SIZE: u32 = 6;
/// Largest `s_log_cluster_size` (`EXT4_MAX_CLUSTER_LOG_SIZE`): clusters of 1 GiB.
const MAX_LOG_CLUSTER_SIZE: u32 = 20;
/// Length of an inode, and the first unreserved one, before revision 1.
const GOOD_OLD: (u16, u32) = (128, 11);

/// Maximum bytes of attributes outside of inodes, counted for each inode that has them: a million labels of SELinux.
const MAX_ATTRIBUTES: u64 = 128 << 20;
/// Overhead of an attribute in addition to name and value.
const ATTRIBUTE: u64 = 64;

/// The description of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// `s_uuid`.
    pub uuid: [u8; 16],
    /// `s_volume_name` without its padding, at most 16 bytes.
    pub label: Vec<u8>,
    /// `s_hash_seed` as stored.
    pub hash_seed: [u8; 16],
    /// Bytes of a block.
    pub block_size: u64,
    /// Blocks of the volume.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Blocks that only root may use.
    pub reserved_blocks: u64,
    /// Inodes, including reserved ones.
    pub inodes: u32,
    pub free_inodes: u32,
    /// Names of the features, as `dumpe2fs` prints them.
    pub features: Vec<&'static str>,
    /// Unknown features that a reader may ignore: `FEATURE_R27` is bit 27 of `s_feature_ro_compat`.
    pub unknown_features: Vec<String>,
    /// The features as stored.
    words: Features,
    /// `s_state`: 1 if the volume is clean; 2 is set by errors, 4 while orphans are removed.
    state: u16,
    /// `s_last_orphan`: first of the files that were deleted while they were open.
    last_orphan: u32,
}

impl FileSystem {
    /// Fails unless the volume can be the base of a bake: no feature may be lost, and it must be clean. Inodes are
    /// checked when they are read.
    pub fn check_base(&self) -> Result<(), ReadError> {
        self.words.check_base()?;
        let refuse = |feature| Err(ReadError::unsupported(Location::Superblock, feature, REPAIR));
        match (self.state, self.last_orphan) {
            (1, 0) => Ok(()),
            (1, first) => refuse(format!("list of deleted but open files starts at inode {first}")),
            (state, _) => refuse(format!("not clean: state {state:#x}, expected 0x1")),
        }
    }

    /// Whether the volume is clean.
    pub(super) fn is_clean(&self) -> bool {
        self.state == 1 && self.last_orphan == 0 && !self.words.needs_recovery()
    }
}

/// A validated superblock, with the parameters for reading other structures.
pub(super) struct Super<'a> {
    pub(super) source: &'a dyn ReadAt,
    pub(super) info: FileSystem,
    pub(super) features: Features,
    /// Bytes of a block.
    pub(super) block: u64,
    /// The same as `usize`.
    pub(super) block_len: usize,
    /// `s_first_data_block`: the block that holds the superblock.
    pub(super) first_data_block: u32,
    pub(super) blocks_per_group: u64,
    pub(super) groups: u64,
    pub(super) desc_size: usize,
    pub(super) first_meta_bg: u32,
    /// `s_reserved_gdt_blocks`: blocks after each copy of the descriptors reserved for additional ones.
    pub(super) reserved_descriptor_blocks: u16,
    /// `s_backup_bgs`: the groups with a backup, if there are at most two.
    pub(super) backup_groups: [u32; 2],
    pub(super) inode_size: usize,
    pub(super) inodes_per_group: u32,
    /// Seed of the metadata checksums, if the volume has them.
    pub(super) seed: Option<u32>,
    /// Seed of the checksums of attribute values in inodes, which are always present.
    pub(super) value_seed: u32,
    /// `s_first_ino`: below it, only the root directory is part of the tree.
    pub(super) first_inode: u32,
    /// Inodes of the volume itself: quota files and the orphan file; 0 for missing ones.
    pub(super) hidden: [u32; 4],
    /// `s_journal_inum`, 0 without one.
    pub(super) journal_inode: u32,
    /// Bytes of attributes that may still be read: many inodes can share a block of them, and many attributes one
    /// value.
    attributes_left: Cell<u64>,
    /// The inode tables, once located.
    pub(super) tables: Vec<Table>,
}

/// Reads the superblock only and checks that the volume can be read.
pub fn probe(source: &dyn ReadAt) -> Result<FileSystem, ReadError> {
    Ok(Super::open(source)?.info)
}

impl<'a> Super<'a> {
    /// Validates the superblock; the tables are empty.
    pub(super) fn open(source: &'a dyn ReadAt) -> Result<Self, ReadError> {
        let mut raw = [0; LEN];
        read_at(source, &mut raw, OFFSET)?;
        let s_magic = le16(&raw, 0x38);
        if s_magic != MAGIC {
            return Err(ReadError::NotExt4 { found: s_magic });
        }
        let features = features(&raw);
        // The checksum is verified first, so that a flipped bit is not reported as an unknown feature.
        if features.metadata_csum() {
            check_sum(&raw)?;
        }
        features.check()?;
        let info = info(&raw, features)?;
        let geometry = Geometry::check(&raw, &info, source.len())?;
        let fs_seed = csum::fs_seed(&info.uuid);
        let value_seed = if features.csum_seed() { le32(&raw, 0x270) } else { fs_seed }; // s_checksum_seed
        let hidden = |used, at| if used { le32(&raw, at) } else { 0 };
        Ok(Self {
            source,
            features,
            block: info.block_size,
            block_len: usize::try_from(info.block_size).unwrap_or(0),
            first_data_block: le32(&raw, 0x14),
            blocks_per_group: geometry.blocks_per_group,
            groups: geometry.groups,
            desc_size: geometry.desc_size,
            first_meta_bg: le32(&raw, 0x104),
            reserved_descriptor_blocks: le16(&raw, 0xce),
            backup_groups: [le32(&raw, 0x24c), le32(&raw, 0x250)],
            inode_size: geometry.inode_size,
            inodes_per_group: le32(&raw, 0x28),
            seed: features.metadata_csum().then_some(value_seed),
            value_seed,
            first_inode: geometry.first_inode,
            hidden: [
                hidden(features.quota(), 0x240),       // s_usr_quota_inum
                hidden(features.quota(), 0x244),       // s_grp_quota_inum
                hidden(features.quota(), 0x26c),       // s_prj_quota_inum
                hidden(features.orphan_file(), 0x280), // s_orphan_file_inum
            ],
            journal_inode: hidden(features.has_journal(), 0xe0),
            attributes_left: Cell::new(MAX_ATTRIBUTES),
            tables: Vec::new(),
            info,
        })
    }

    /// Fills `buf` from a byte offset of the volume.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), ReadError> {
        read_at(self.source, buf, offset)
    }

    /// One block of the volume.
    pub(super) fn read_block(&self, block: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; self.block_len];
        let offset = block.saturating_mul(self.block);
        self.read(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Accounts for an attribute of `len` bytes.
    pub(super) fn spend_on_attribute(&self, len: u64) -> Result<(), ReadError> {
        let left = self.attributes_left.get().checked_sub(len.saturating_add(ATTRIBUTE));
        let too_many = || format!("more than {MAX_ATTRIBUTES} bytes of shared attributes");
        let left = left.ok_or_else(|| ReadError::unsupported(Location::Superblock, too_many(), REBUILD))?;
        self.attributes_left.set(left);
        Ok(())
    }

    /// Whether `count` blocks from `block` on can belong to an inode.
    pub(super) fn holds(&self, block: u64, count: u64) -> bool {
        block > u64::from(self.first_data_block) && block.checked_add(count).is_some_and(|end| end <= self.info.blocks)
    }
}

fn read_at(source: &dyn ReadAt, buf: &mut [u8], offset: u64) -> Result<(), ReadError> {
    let len = buf.len();
    source.read_exact_at(buf, offset).map_err(|source| ReadError::Io { offset, len, source })
}

fn features(raw: &[u8; LEN]) -> Features {
    Features { compat: le32(raw, 0x5c), incompat: le32(raw, 0x60), ro_compat: le32(raw, 0x64) }
}

fn check_sum(raw: &[u8; LEN]) -> Result<(), ReadError> {
    let (found, expected) = (le32(raw, 0x3fc), csum::superblock(raw)); // s_checksum
    if found != expected {
        return Err(ReadError::checksum(Location::Superblock, found, expected));
    }
    match raw[0x175] {
        1 => Ok(()), // s_checksum_type: CRC-32C
        other => Err(ReadError::unsupported(Location::Superblock, format!("checksums of type {other}"), REBUILD)),
    }
}

fn info(raw: &[u8; LEN], features: Features) -> Result<FileSystem, ReadError> {
    let log_block_size = le32(raw, 0x18);
    if log_block_size > MAX_LOG_BLOCK_SIZE {
        return Err(corrupt(VolumeFault::BlockSize { log: log_block_size }));
    }
    // The high halves of block counts are used in volumes with 64-bit numbers.
    let high = |at| if features.bits64() { u64::from(le32(raw, at)) << 32 } else { 0 };
    let array = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&raw[at..at + 16]);
        bytes
    };
    let name = &raw[0x78..0x88];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(FileSystem {
        uuid: array(0x68),
        label: name[..end].to_vec(),
        hash_seed: array(0xec),
        block_size: 1024 << log_block_size,
        blocks: u64::from(le32(raw, 0x04)) | high(0x150),
        // In blocks, even with clusters: only group descriptors count clusters.
        free_blocks: u64::from(le32(raw, 0x0c)) | high(0x158),
        reserved_blocks: u64::from(le32(raw, 0x08)) | high(0x154),
        inodes: le32(raw, 0x00),
        free_inodes: le32(raw, 0x10),
        features: features.names(),
        unknown_features: features.unknown(),
        words: features,
        state: le16(raw, 0x3a),
        last_orphan: le32(raw, 0xe8),
    })
}

/// Blocks of a cluster: 1 without the feature `bigalloc`.
fn cluster_blocks(raw: &[u8; LEN], features: Features) -> Result<u64, ReadError> {
    let (s_log_block_size, s_log_cluster_size) = (le32(raw, 0x18), le32(raw, 0x1c));
    match s_log_cluster_size.checked_sub(s_log_block_size) {
        Some(0) => Ok(1),
        Some(shift) if features.bigalloc() && s_log_cluster_size <= MAX_LOG_CLUSTER_SIZE => Ok(1 << shift),
        _ => Err(corrupt(VolumeFault::ClusterSize { log: s_log_cluster_size })),
    }
}

/// Values used for divisions, multiplications or allocations.
struct Geometry {
    blocks_per_group: u64,
    groups: u64,
    desc_size: usize,
    inode_size: usize,
    first_inode: u32,
}

impl Geometry {
    fn check(raw: &[u8; LEN], info: &FileSystem, source_len: u64) -> Result<Self, ReadError> {
        let held = source_len / info.block_size;
        let first_data_block = le32(raw, 0x14);
        if info.blocks <= u64::from(first_data_block) || info.blocks > held {
            return Err(corrupt(VolumeFault::Blocks { found: info.blocks, held }));
        }
        let blocks_per_group = u64::from(le32(raw, 0x20));
        let most = info.block_size * 8 * cluster_blocks(raw, info.words)?;
        let first_ok = first_data_block == 0 || (first_data_block == 1 && info.block_size == 1024);
        if !(8..=most).contains(&blocks_per_group) || !first_ok {
            return Err(corrupt(VolumeFault::BlocksPerGroup { found: blocks_per_group, first: first_data_block }));
        }
        let groups = (info.blocks - u64::from(first_data_block)).div_ceil(blocks_per_group);
        let (inode_size, first_inode) = inodes(raw, info, groups)?;
        // Without the feature 64bit, the kernel ignores the field.
        let desc_size = if info.words.bits64() { le16(raw, 0xfe) } else { 32 };
        if info.words.bits64()
            && (desc_size < 64 || !desc_size.is_power_of_two() || u64::from(desc_size) > info.block_size)
        {
            return Err(corrupt(VolumeFault::DescriptorSize { groups, found: desc_size }));
        }
        let (first, blocks) = (le32(raw, 0x104), groups.div_ceil(info.block_size / u64::from(desc_size)));
        if info.words.meta_bg() && u64::from(first) > blocks {
            return Err(corrupt(VolumeFault::MetaGroups { first, blocks })); // s_first_meta_bg
        }
        Ok(Self { blocks_per_group, groups, desc_size: desc_size.into(), inode_size, first_inode })
    }
}

/// The length of an inode and the first unreserved one.
fn inodes(raw: &[u8; LEN], info: &FileSystem, groups: u64) -> Result<(usize, u32), ReadError> {
    let s_rev_level = le32(raw, 0x4c);
    let (size, first) = if s_rev_level == 0 { GOOD_OLD } else { (le16(raw, 0x58), le32(raw, 0x54)) };
    if size < 128 || !size.is_power_of_two() || u64::from(size) > info.block_size {
        return Err(corrupt(VolumeFault::InodeSize { found: size }));
    }
    let per_group = le32(raw, 0x28);
    if per_group == 0 || u64::from(per_group) > info.block_size * 8 {
        return Err(corrupt(VolumeFault::InodesPerGroup { found: per_group }));
    }
    if groups.checked_mul(per_group.into()) != Some(info.inodes.into()) || info.inodes == u32::MAX {
        return Err(corrupt(VolumeFault::Inodes { found: info.inodes, groups, per_group }));
    }
    if first < GOOD_OLD.1 {
        return Err(corrupt(VolumeFault::FirstInode { found: first }));
    }
    Ok((size.into(), first))
}

fn corrupt(what: VolumeFault) -> ReadError {
    ReadError::corrupt(Location::Superblock, what)
}
