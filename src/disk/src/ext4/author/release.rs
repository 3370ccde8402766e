//! Removes the placeholders from the metadata of a volume: frees their inodes and blocks, and updates all counts and
//! checksums.
//!
//! Structures and field names are those of the kernel's `Documentation/filesystems/ext4`; offsets are bytes, little endian.

use mkext4::csum;
use mkext4::spec::extent::{self, Extent, ExtentHeader};
use mkext4::spec::{GroupDesc, Superblock};

use super::AuthorError;
use super::geometry::has_backup;
use super::metadata::Metadata;
use super::seal::{Placeholders, library};
use crate::ext4::{BLOCK, BLOCK_LEN, BLOCKS_PER_GROUP, le16, le32};

/// Offset of the superblock in the first block.
const SUPERBLOCK: usize = 1024;
/// Length of a group descriptor.
const DESCRIPTOR: usize = 32;
/// Length of an inode.
const INODE: usize = 256;
/// Number of the root directory's inode.
const ROOT: u32 = 2;
/// `i_links_count`, `i_block`, and both halves of `i_checksum`.
const LINKS: usize = 0x1a;
const I_BLOCK: std::ops::Range<usize> = 0x28..0x64;
const CHECKSUM: (usize, usize) = (0x7c, 0x82);
/// Link count of a directory with too many subdirectories to count.
const UNCOUNTED: u16 = 1;

/// Removes the placeholders from `metadata`.
pub(super) fn release(metadata: &mut Metadata, placeholders: &Placeholders) -> Result<(), AuthorError> {
    let Some(folder) = placeholders.folder else { return Ok(()) };
    let first = metadata.block(0).ok_or(inconsistent("missing superblock"))?;
    let sb = Superblock::decode(&first[SUPERBLOCK..SUPERBLOCK + Superblock::LEN]).map_err(library)?;
    let groups = descriptors(metadata, &sb)?;
    let seed = csum::fs_seed(&sb.uuid);
    let mut release = Release { metadata, groups, sb, seed };
    release.forget_name(folder)?;
    for inode in &placeholders.inodes {
        release.inode(*inode)?;
    }
    release.inode(folder)?;
    let group = release.position(folder).0;
    release.groups[group].used_dirs_count -= 1;
    release.finish()
}

fn inconsistent(what: &'static str) -> AuthorError {
    AuthorError::Layout { source: what.into() }
}

fn descriptors(metadata: &mut Metadata, sb: &Superblock) -> Result<Vec<GroupDesc>, AuthorError> {
    let count = sb.blocks_count.div_ceil(BLOCKS_PER_GROUP);
    let mut groups = Vec::new();
    for (block, first) in (1..).zip((0..count).step_by(BLOCK_LEN / DESCRIPTOR)) {
        let raw = metadata.block(block).ok_or(inconsistent("missing group descriptors"))?;
        for (raw, _) in raw.chunks_exact(DESCRIPTOR).zip(first..count) {
            groups.push(GroupDesc::decode(raw).map_err(library)?);
        }
    }
    Ok(groups)
}

struct Release<'a> {
    metadata: &'a mut Metadata,
    groups: Vec<GroupDesc>,
    sb: Superblock,
    seed: u32,
}

impl Release<'_> {
    /// Group of an inode, and its index there.
    fn position(&self, inode: u32) -> (usize, usize) {
        let (inode, per_group) = (u64::from(inode - 1), u64::from(self.sb.inodes_per_group));
        (index(inode / per_group), index(inode % per_group))
    }

    fn raw(&mut self, inode: u32) -> Result<&mut [u8], AuthorError> {
        let (group, index) = self.position(inode);
        let at = index * INODE;
        let block = self.groups[group].inode_table + (at / BLOCK_LEN) as u64;
        let table = self.metadata.block(block).ok_or(inconsistent("missing inode table"))?;
        Ok(&mut table[at % BLOCK_LEN..at % BLOCK_LEN + INODE])
    }

    /// The blocks of an inode whose extents are stored in the inode.
    fn blocks(&mut self, inode: u32) -> Result<Vec<u64>, AuthorError> {
        let i_block = &self.raw(inode)?[I_BLOCK];
        let header = ExtentHeader::decode(i_block).map_err(library)?;
        if header.depth > 0 {
            return Err(inconsistent("a placeholder has an extent tree"));
        }
        let extents = (0..usize::from(header.entries)).map(|at| Extent::decode(extent::entry(i_block, at)));
        Ok(extents.flat_map(|extent| extent.start..extent.start + u64::from(extent.len())).collect())
    }

    /// Frees an inode and its blocks.
    fn inode(&mut self, inode: u32) -> Result<(), AuthorError> {
        for block in self.blocks(inode)? {
            let (group, bit) = (index(block / BLOCKS_PER_GROUP), index(block % BLOCKS_PER_GROUP));
            clear(self.metadata, self.groups[group].block_bitmap, bit)?;
            self.groups[group].free_blocks_count += 1;
            self.sb.free_blocks_count += 1;
            self.sb.kbytes_written -= BLOCK / 1024;
            if let Some(bytes) = self.metadata.block(block) {
                bytes.fill(0);
            }
        }
        self.raw(inode)?.fill(0);
        let (group, bit) = self.position(inode);
        clear(self.metadata, self.groups[group].inode_bitmap, bit)?;
        self.groups[group].free_inodes_count += 1;
        self.sb.free_inodes_count += 1;
        Ok(())
    }

    /// Removes the entry for `inode` from the root directory, and the link of its `..`.
    fn forget_name(&mut self, inode: u32) -> Result<(), AuthorError> {
        let seed = csum::inode_seed(self.seed, ROOT, 0);
        let mut removed = false;
        for block in self.blocks(ROOT)? {
            let bytes = self.metadata.block(block).ok_or(inconsistent("missing root directory"))?;
            if remove_entry(bytes, inode) {
                let sum = csum::dirent_block(seed, bytes);
                bytes[BLOCK_LEN - 4..].copy_from_slice(&sum.to_le_bytes());
                removed = true;
            }
        }
        if !removed {
            return Err(inconsistent("no directory entry for the placeholders"));
        }
        let fs_seed = self.seed;
        let raw = self.raw(ROOT)?;
        let links = le16(raw, LINKS);
        if links != UNCOUNTED {
            raw[LINKS..LINKS + 2].copy_from_slice(&(links - 1).to_le_bytes());
        }
        let [a, b, c, d] = csum::inode(fs_seed, ROOT, 0, raw).to_le_bytes();
        raw[CHECKSUM.0..CHECKSUM.0 + 2].copy_from_slice(&[a, b]);
        raw[CHECKSUM.1..CHECKSUM.1 + 2].copy_from_slice(&[c, d]);
        Ok(())
    }

    /// Writes descriptors and superblock, and all their copies.
    fn finish(mut self) -> Result<(), AuthorError> {
        let per_group = self.sb.inodes_per_group;
        let mut table = vec![0; self.groups.len() * DESCRIPTOR];
        for ((number, group), raw) in (0..).zip(&mut self.groups).zip(table.chunks_exact_mut(DESCRIPTOR)) {
            if let Some(bitmap) = self.metadata.block(group.block_bitmap) {
                group.block_bitmap_csum = csum::block_bitmap(self.seed, bitmap).into();
            }
            // An uninitialized bitmap has no checksum.
            if let Some(bitmap) = self.metadata.block(group.inode_bitmap) {
                group.inode_bitmap_csum = csum::inode_bitmap(self.seed, bitmap, per_group).into();
            }
            group.checksum = 0;
            group.encode32(raw);
            group.checksum = csum::group_desc(self.seed, number, raw);
            group.encode32(raw);
        }
        self.write(0, SUPERBLOCK, &table)?;
        for group in (1..self.groups.len() as u64).filter(|group| has_backup(*group)) {
            self.write(group * BLOCKS_PER_GROUP, 0, &table)?;
        }
        Ok(())
    }

    /// Writes a superblock, preserving the number of its group, and the descriptors after it.
    fn write(&mut self, block: u64, offset: usize, table: &[u8]) -> Result<(), AuthorError> {
        let missing = || inconsistent("missing copy of the superblock");
        let raw = self.metadata.block(block).ok_or_else(missing)?;
        let raw = &mut raw[offset..offset + Superblock::LEN];
        let mut sb = self.sb.clone();
        sb.block_group_nr = Superblock::decode(raw).map_err(library)?.block_group_nr;
        sb.encode(raw);
        sb.checksum = csum::superblock(raw);
        sb.encode(raw);
        for (block, part) in (block + 1..).zip(table.chunks(BLOCK_LEN)) {
            self.metadata.block(block).ok_or_else(missing)?[..part.len()].copy_from_slice(part);
        }
        Ok(())
    }
}

/// Converts an offset in memory to an index.
fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

/// Clears a bit of a bitmap.
fn clear(metadata: &mut Metadata, bitmap: u64, bit: usize) -> Result<(), AuthorError> {
    let bytes = metadata.block(bitmap).ok_or(inconsistent("missing bitmap"))?;
    bytes[bit / 8] &= !(1 << (bit % 8));
    Ok(())
}

/// Removes the entry for `inode` from a block of a directory, as the kernel does: the previous entry is extended over
/// it, and a first entry gets inode 0.
fn remove_entry(block: &mut [u8], inode: u32) -> bool {
    let (mut at, mut before) = (0, None);
    while at + 12 < BLOCK_LEN {
        let len = usize::from(le16(block, at + 4));
        if le32(block, at) == inode {
            let name = 8 + usize::from(block[at + 6]);
            match before {
                Some(before) => {
                    let joined = le16(block, before + 4) + le16(block, at + 4);
                    block[before + 4..before + 6].copy_from_slice(&joined.to_le_bytes());
                    block[at..at + name].fill(0);
                }
                None => {
                    block[at..at + 4].fill(0);
                    block[at + 6..at + name].fill(0);
                }
            }
            return true;
        }
        if len < 8 {
            return false;
        }
        before = Some(at);
        at += len;
    }
    false
}
