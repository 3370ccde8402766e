//! Inode tables: read in large pieces from start to end, each inode in use checked and decoded.

use mkext4::csum;
use mkext4::spec::Inode;
use mkext4::spec::inode::FileType;

use super::error::REBUILD;
use super::groups::{Table, low16};
use super::superblock::Super;
use super::xattrs::{self, Xattrs};
use super::{BLOCK, Place, ReadError, le32};
use crate::tree::Timestamp;

/// Number of the root directory's inode.
pub(super) const ROOT_INODE: u32 = 2;

/// How much of a table is read at once, in bytes: a whole number of inodes of any size.
const CHUNK: usize = 1 << 20;

/// `i_flags` that change what an inode means and that a tree cannot carry.
const REFUSED_FLAGS: &[(u32, &str, &str)] = &[
    (0x10, "immutable flag", "run `chattr -i` on it"),
    (0x20, "append-only flag", "run `chattr -a` on it"),
    (0x800, "encrypted file", REBUILD),
    (0x10_0000, "fs-verity file", REBUILD),
    (0x20_0000, "attribute value in an inode", REBUILD),
    (0x1000_0000, "inline data", REBUILD),
    (0x4000_0000, "case-insensitive directory", REBUILD),
];

/// One inode in use, decoded; its blocks are not read yet.
pub(super) struct Node {
    pub(super) number: u32,
    pub(super) kind: FileType,
    /// `i_mode` without the type.
    pub(super) mode: u16,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mtime: Timestamp,
    pub(super) size: u64,
    pub(super) links: u32,
    /// Whether `i_block` holds an extent tree.
    pub(super) has_extents: bool,
    /// Whether the directory has a hash index.
    pub(super) has_index: bool,
    pub(super) i_block: [u8; 60],
    /// Major and minor number of a device.
    pub(super) device: (u32, u32),
    /// Attributes that stand in the inode.
    pub(super) xattrs: Xattrs,
    /// Block with more attributes, 0 without.
    pub(super) xattr_block: u64,
    /// Checksum seed of the blocks of this inode, where the volume has checksums.
    pub(super) seed: Option<u32>,
}

/// All inodes that a tree could hold, in the order of their numbers.
pub(super) fn read(volume: &Super<'_>, tables: &[Table]) -> Result<Vec<Node>, ReadError> {
    let per_chunk = CHUNK / volume.inode_size;
    let mut nodes = Vec::new();
    let mut buf = vec![0; CHUNK];
    for table in tables {
        let mut offset = table.block * BLOCK;
        let mut numbers = table.first..table.first + table.count;
        while !numbers.is_empty() {
            let count = numbers.len().min(per_chunk);
            let buf = &mut buf[..count * volume.inode_size];
            if fill(volume, buf, offset)? {
                for (number, raw) in numbers.clone().zip(buf.chunks_exact(volume.inode_size)) {
                    nodes.extend(decode(volume, number, raw)?);
                }
            }
            offset += buf.len() as u64;
            numbers.by_ref().take(count).for_each(drop);
        }
    }
    Ok(nodes)
}

/// One inode; `None` when the number is out of range, or nothing that belongs to a tree stands there.
pub(super) fn read_one(volume: &Super<'_>, tables: &[Table], number: u32) -> Result<Option<Node>, ReadError> {
    let table = tables.iter().rev().find(|table| table.first <= number);
    let Some(table) = table.filter(|table| number - table.first < table.count) else { return Ok(None) };
    let mut raw = vec![0; volume.inode_size];
    let offset = u64::from(number - table.first) * volume.inode_size as u64;
    volume.read(&mut raw, table.block * BLOCK + offset)?;
    decode(volume, number, &raw)
}

/// Fills `buf` and tells whether there can be anything but zeros; holes of a sparse image cost no time.
fn fill(volume: &Super<'_>, buf: &mut [u8], offset: u64) -> Result<bool, ReadError> {
    let len = buf.len();
    let data = volume.source.next_data(offset).map_err(|source| ReadError::Io { offset, len, source })?;
    if data.is_none_or(|data| data.start >= offset + len as u64) {
        return Ok(false);
    }
    volume.read(buf, offset)?;
    Ok(true)
}

/// Decodes one slot of a table; `None` when it holds nothing that belongs to a tree.
fn decode(volume: &Super<'_>, number: u32, raw: &[u8]) -> Result<Option<Node>, ReadError> {
    let place = || Place::Inode(number);
    let belongs = number == ROOT_INODE || (number >= volume.first_inode && number != volume.orphan_file);
    let inode = Inode::decode(raw).map_err(|error| ReadError::library(place(), error))?;
    if !belongs || inode.links_count == 0 {
        return Ok(None);
    }
    let seed = volume.seed.map(|seed| csum::inode_seed(seed, number, inode.generation));
    if let Some(seed) = volume.seed {
        check_sum(seed, number, &inode, raw)?;
    }
    if raw.len() > 128 && (inode.extra_isize % 4 != 0 || 128 + usize::from(inode.extra_isize) > raw.len()) {
        return Err(ReadError::corrupt(place(), format!("extra size {}", inode.extra_isize)));
    }
    if let Some((_, what, hint)) = REFUSED_FLAGS.iter().find(|(bit, ..)| inode.flags & bit != 0) {
        return Err(ReadError::unsupported(place(), *what, hint));
    }
    let (secs, nanos) = Inode::timestamp(inode.mtime, inode.mtime_extra);
    if nanos >= 1_000_000_000 {
        return Err(ReadError::corrupt(place(), format!("{nanos} nanoseconds")));
    }
    let kind = inode.file_type();
    if kind == FileType::Unknown {
        return Err(ReadError::corrupt(place(), format!("mode {:#o}", inode.mode)));
    }
    let entries = mkext4::spec::ibody_entries(raw, inode.extra_isize);
    let entries = entries.map_err(|error| ReadError::library(place(), error))?;
    Ok(Some(Node {
        number,
        kind,
        mode: inode.mode & 0o7777,
        uid: inode.uid,
        gid: inode.gid,
        mtime: Timestamp { secs, nanos },
        size: inode.size,
        links: inode.links_count.into(),
        has_extents: inode.uses_extents(),
        has_index: inode.flags & mkext4::spec::iflags::INDEX != 0,
        i_block: inode.block,
        device: inode.dev_numbers().unwrap_or_default(),
        xattrs: xattrs::decode(entries, &place())?,
        xattr_block: inode.file_acl,
        seed,
    }))
}

/// Inodes without room for the high half of the checksum store only the low one.
fn check_sum(seed: u32, number: u32, inode: &Inode, raw: &[u8]) -> Result<(), ReadError> {
    let mut expected = csum::inode(seed, number, inode.generation, raw);
    if raw.len() == 128 || inode.extra_isize < 4 {
        expected = low16(expected).into();
    }
    if inode.checksum != expected {
        return Err(ReadError::checksum(Place::Inode(number), inode.checksum, expected));
    }
    Ok(())
}

impl Node {
    /// Whether `i_block` maps nothing at all.
    pub(super) fn maps_nothing(&self) -> bool {
        !self.has_extents && (0..60).step_by(4).all(|at| le32(&self.i_block, at) == 0)
    }
}
