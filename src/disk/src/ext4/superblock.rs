//! The superblock (1024 bytes at offset 1024): geometry, and what the volume asks of its reader.

use mkext4::csum;
use mkext4::spec::Superblock;

use super::error::{REBUILD, REPAIR};
use super::{BLOCK, BLOCKS_PER_GROUP, Place, ReadError, le16, le32};
use crate::source::ReadAt;

/// Where the superblock starts, in bytes.
const OFFSET: u64 = 1024;
/// Byte offset of `s_magic` inside it.
const S_MAGIC: usize = 0x38;
/// Byte offset of `s_orphan_file_inum`, which the library does not decode.
const S_ORPHAN_FILE_INUM: usize = 0x280;

/// What a tree can do with a feature.
enum Use {
    /// It is read, or it changes nothing for us.
    Read,
    /// It is refused, with what to do about it.
    Refuse(&'static str),
}

/// A feature: bit, name as `dumpe2fs` prints it, and what we do with it.
type Feature = (u32, &'static str, Use);

/// `s_feature_compat`.
const COMPAT: &[Feature] = &[
    (0x1, "dir_prealloc", Use::Read),
    (0x2, "imagic_inodes", Use::Read),
    (0x4, "has_journal", Use::Read),
    (0x8, "ext_attr", Use::Read),
    (0x10, "resize_inode", Use::Read),
    (0x20, "dir_index", Use::Read),
    (0x200, "sparse_super2", Use::Read),
    (0x400, "fast_commit", Use::Read),
    (0x800, "stable_inodes", Use::Read),
    (0x1000, "orphan_file", Use::Read),
];

/// `s_feature_incompat`.
const INCOMPAT: &[Feature] = &[
    (0x1, "compression", Use::Refuse(REBUILD)),
    (0x2, "filetype", Use::Read),
    (0x4, "needs_recovery", Use::Refuse(REPAIR)),
    (0x8, "journal_dev", Use::Refuse("this is an external journal, not a file system")),
    (0x10, "meta_bg", Use::Refuse(REBUILD)),
    (0x40, "extent", Use::Read),
    (0x80, "64bit", Use::Read),
    (0x100, "mmp", Use::Refuse("run `tune2fs -O ^mmp` on it")),
    (0x200, "flex_bg", Use::Read),
    (0x400, "ea_inode", Use::Refuse(REBUILD)),
    (0x1000, "dirdata", Use::Refuse(REBUILD)),
    (0x2000, "metadata_csum_seed", Use::Read),
    (0x4000, "large_dir", Use::Refuse(REBUILD)),
    (0x8000, "inline_data", Use::Refuse(REBUILD)),
    (0x1_0000, "encrypt", Use::Refuse(REBUILD)),
    (0x2_0000, "casefold", Use::Refuse(REBUILD)),
];

/// `s_feature_ro_compat`. A reader may ignore unknown ones, but we write anew what we read, so we may not.
const RO_COMPAT: &[Feature] = &[
    (0x1, "sparse_super", Use::Read),
    (0x2, "large_file", Use::Read),
    (0x8, "huge_file", Use::Read),
    (0x10, "uninit_bg", Use::Read),
    (0x20, "dir_nlink", Use::Read),
    (0x40, "extra_isize", Use::Read),
    (0x100, "quota", Use::Refuse("run `tune2fs -O ^quota` on it")),
    (0x200, "bigalloc", Use::Refuse(REBUILD)),
    (0x400, "metadata_csum", Use::Read),
    (0x1000, "read-only", Use::Read),
    (0x2000, "project", Use::Refuse("run `tune2fs -O ^project` on it")),
    (0x4000, "shared_blocks", Use::Read),
    (0x8000, "verity", Use::Refuse(REBUILD)),
    (0x1_0000, "orphan_present", Use::Refuse(REPAIR)),
];

/// What a volume says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// `s_uuid`.
    pub uuid: [u8; 16],
    /// `s_volume_name` without its padding, at most 16 bytes.
    pub label: Vec<u8>,
    /// `s_hash_seed` as it stands on disk.
    pub hash_seed: [u8; 16],
    /// Bytes of a block.
    pub block_size: u64,
    /// Blocks of the volume.
    pub blocks: u64,
    /// Blocks that hold nothing.
    pub free_blocks: u64,
    /// Blocks that only root may use.
    pub reserved_blocks: u64,
    /// Inodes, reserved ones included.
    pub inodes: u32,
    /// Inodes that hold nothing.
    pub free_inodes: u32,
    /// Names of the features, as `dumpe2fs` prints them.
    pub features: Vec<&'static str>,
}

/// A volume whose superblock was found good, with what the other structures are read by.
pub(super) struct Super<'a> {
    pub(super) source: &'a dyn ReadAt,
    pub(super) info: FileSystem,
    pub(super) inode_size: usize,
    pub(super) inodes_per_group: u32,
    pub(super) groups: u64,
    pub(super) desc_size: usize,
    /// Seed of the metadata checksums, where the volume has them.
    pub(super) seed: Option<u32>,
    /// Whether group descriptors tell which inodes were never used.
    pub(super) counts_unused: bool,
    /// `s_first_ino`: below it only the root directory belongs to the tree.
    pub(super) first_inode: u32,
    /// Inode of the orphan file, 0 without one.
    pub(super) orphan_file: u32,
}

/// Reads the superblock alone and tells whether the volume can be read.
pub fn probe(source: &dyn ReadAt) -> Result<FileSystem, ReadError> {
    Ok(Super::open(source)?.info)
}

impl<'a> Super<'a> {
    pub(super) fn open(source: &'a dyn ReadAt) -> Result<Self, ReadError> {
        let mut raw = [0; Superblock::LEN];
        read_at(source, &mut raw, OFFSET)?;
        if le16(&raw, S_MAGIC) != mkext4::spec::SB_MAGIC {
            return Err(ReadError::NotExt4 { found: le16(&raw, S_MAGIC) });
        }
        let sb = Superblock::decode(&raw).map_err(|error| ReadError::library(Place::Superblock, error))?;
        // The checksum comes first, so that a flipped bit is reported as what it is, not as an unknown feature.
        if sb.feature_ro_compat & 0x400 != 0 {
            let expected = csum::superblock(&raw);
            if sb.checksum != expected {
                return Err(ReadError::checksum(Place::Superblock, sb.checksum, expected));
            }
        }
        let features = features(&sb)?;
        check_state(&sb)?;
        check_geometry(&sb, source.len())?;
        let seed = (sb.feature_ro_compat & 0x400 != 0)
            .then(|| if sb.feature_incompat & 0x2000 != 0 { sb.checksum_seed } else { csum::fs_seed(&sb.uuid) });
        let orphan_file = if sb.feature_compat & 0x1000 != 0 { le32(&raw, S_ORPHAN_FILE_INUM) } else { 0 };
        Ok(Self {
            source,
            info: info(&sb, &raw, features),
            inode_size: usize::from(sb.inode_size),
            inodes_per_group: sb.inodes_per_group,
            groups: sb.blocks_count.div_ceil(BLOCKS_PER_GROUP),
            desc_size: if sb.feature_incompat & 0x80 != 0 { 64 } else { 32 },
            seed,
            counts_unused: sb.feature_ro_compat & 0x410 != 0,
            first_inode: sb.first_ino,
            orphan_file,
        })
    }

    /// Fills `buf` from a byte offset of the volume.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> Result<(), ReadError> {
        read_at(self.source, buf, offset)
    }
}

fn read_at(source: &dyn ReadAt, buf: &mut [u8], offset: u64) -> Result<(), ReadError> {
    let len = buf.len();
    source.read_exact_at(buf, offset).map_err(|source| ReadError::Io { offset, len, source })
}

fn info(sb: &Superblock, raw: &[u8; Superblock::LEN], features: Vec<&'static str>) -> FileSystem {
    let mut hash_seed = [0; 16];
    hash_seed.copy_from_slice(&raw[0xec..0xfc]);
    let end = sb.volume_name.iter().position(|byte| *byte == 0).unwrap_or(sb.volume_name.len());
    FileSystem {
        uuid: sb.uuid,
        label: sb.volume_name[..end].to_vec(),
        hash_seed,
        block_size: BLOCK,
        blocks: sb.blocks_count,
        free_blocks: sb.free_blocks_count,
        reserved_blocks: sb.r_blocks_count,
        inodes: sb.inodes_count,
        free_inodes: sb.free_inodes_count,
        features,
    }
}

/// The names of all features; the first that cannot be carried over is an error.
fn features(sb: &Superblock) -> Result<Vec<&'static str>, ReadError> {
    let mut names = Vec::new();
    let words = [(sb.feature_compat, COMPAT), (sb.feature_incompat, INCOMPAT), (sb.feature_ro_compat, RO_COMPAT)];
    for (kind, (bits, table)) in ["compat", "incompat", "ro_compat"].into_iter().zip(words) {
        let mut unknown = bits;
        for (bit, name, usage) in table.iter().filter(|(bit, ..)| bits & bit != 0) {
            if let Use::Refuse(hint) = usage {
                return Err(ReadError::unsupported(Place::Superblock, format!("feature {name}"), hint));
            }
            unknown &= !bit;
            names.push(*name);
        }
        if unknown != 0 {
            let feature = format!("unknown {kind} features {unknown:#x}");
            return Err(ReadError::unsupported(Place::Superblock, feature, REBUILD));
        }
    }
    // Without these two, entries have no type and contents no extents: an ext2 or ext3 volume.
    for name in ["filetype", "extent"] {
        if !names.contains(&name) {
            return Err(ReadError::unsupported(
                Place::Superblock,
                format!("no feature {name} (ext2 or ext3)"),
                REBUILD,
            ));
        }
    }
    Ok(names)
}

/// `s_state` is 1 when the volume was left clean; 2 is set by errors, 4 while orphans are removed.
fn check_state(sb: &Superblock) -> Result<(), ReadError> {
    if sb.state != 1 {
        let feature = format!("not clean: state {:#x}, expected 0x1", sb.state);
        return Err(ReadError::unsupported(Place::Superblock, feature, REPAIR));
    }
    if sb.last_orphan != 0 {
        let feature = format!("list of deleted but open files starts at inode {}", sb.last_orphan);
        return Err(ReadError::unsupported(Place::Superblock, feature, REPAIR));
    }
    Ok(())
}

/// Checks once whatever is divided by, multiplied or allocated by later.
fn check_geometry(sb: &Superblock, source_len: u64) -> Result<(), ReadError> {
    let corrupt = |what: String| Err(ReadError::corrupt(Place::Superblock, what));
    if sb.log_block_size > 6 {
        return corrupt(format!("block size 1024 << {}", sb.log_block_size));
    }
    if sb.block_size() != BLOCK {
        let feature = format!("block size {}, not {BLOCK}", sb.block_size());
        return Err(ReadError::unsupported(Place::Superblock, feature, REBUILD));
    }
    let held = source_len / BLOCK;
    if sb.blocks_count == 0 || sb.blocks_count > held {
        return corrupt(format!("{} blocks, but the partition holds {held}", sb.blocks_count));
    }
    if u64::from(sb.blocks_per_group) != BLOCKS_PER_GROUP || sb.first_data_block != 0 {
        return corrupt(format!("{} blocks per group from block {}", sb.blocks_per_group, sb.first_data_block));
    }
    if !matches!(sb.inode_size, 128 | 256 | 512 | 1024 | 2048 | 4096) {
        return corrupt(format!("inodes of {} bytes", sb.inode_size));
    }
    let inodes_per_block = 4096 / u32::from(sb.inode_size);
    if sb.inodes_per_group == 0
        || u64::from(sb.inodes_per_group) > BLOCKS_PER_GROUP
        || !sb.inodes_per_group.is_multiple_of(inodes_per_block)
    {
        return corrupt(format!("{} inodes per group", sb.inodes_per_group));
    }
    let groups = sb.blocks_count.div_ceil(BLOCKS_PER_GROUP);
    if u64::from(sb.inodes_count) != groups * u64::from(sb.inodes_per_group) || sb.inodes_count == u32::MAX {
        return corrupt(format!("{} inodes in {groups} groups of {}", sb.inodes_count, sb.inodes_per_group));
    }
    let desc_size_ok = if sb.feature_incompat & 0x80 != 0 { sb.desc_size == 64 } else { sb.desc_size <= 64 };
    if !desc_size_ok || groups * 64 > BLOCKS_PER_GROUP * BLOCK {
        return corrupt(format!("{groups} group descriptors of {} bytes", sb.desc_size));
    }
    if sb.first_ino < 11 {
        return corrupt(format!("first inode {}", sb.first_ino));
    }
    Ok(())
}
