//! Inode tables (`ext4_inode`): read sequentially in large pieces; each used inode is validated and decoded.

use mkext4::csum;
use mkext4::spec::inode::FileType;

use super::corruption::InodeFault;
use super::error::REBUILD;
use super::groups::{Table, low16};
use super::superblock::Super;
use super::xattrs::{self, InBody, Owner};
use super::{Location, ReadError, le16, le32};
use crate::tree::Timestamp;

/// Number of the root directory's inode.
pub(super) const ROOT_INODE: u32 = 2;
/// Length of the part that every inode has; `i_extra_isize` is the length of the rest.
const GOOD_OLD_LEN: usize = 128;
/// Offset of `i_block`.
const I_BLOCK: usize = 0x28;
/// Length of `i_block` in bytes.
pub(super) const I_BLOCK_LEN: usize = 60;

/// Bytes to read at once: a multiple of all inode sizes.
const CHUNK: usize = 1 << 20;

// `i_flags`.
const IMMUTABLE: u32 = 0x10;
const APPEND_ONLY: u32 = 0x20;
const ENCRYPTED: u32 = 0x800;
const INDEX: u32 = 0x1000;
const EXTENTS: u32 = 0x8_0000;
const VERITY: u32 = 0x10_0000;
/// The inode is the value of an attribute, not a file, unless it has a name.
const EA_INODE: u32 = 0x20_0000;
const INLINE_DATA: u32 = 0x1000_0000;
const CASEFOLD: u32 = 0x4000_0000;

/// Flags of unreadable contents.
const REFUSED_FLAGS: &[(u32, &str, &str)] = &[(ENCRYPTED, "encrypted file", REBUILD)];

/// Flags that a tree cannot represent, so that an authored volume would lose them.
const NOT_BASE_FLAGS: &[(u32, &str, &str)] = &[
    (IMMUTABLE, "immutable flag", "run `chattr -i` on it"),
    (APPEND_ONLY, "append-only flag", "run `chattr -a` on it"),
    (VERITY, "fs-verity file", REBUILD),
    (CASEFOLD, "case-insensitive directory", REBUILD),
];

/// A used inode, decoded; its blocks have not been read yet.
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
    /// `i_generation`: distinguishes files that had this number.
    generation: u32,
    flags: u32,
    pub(super) i_block: [u8; I_BLOCK_LEN],
    /// Attributes in the inode, and the location of the rest of inline data.
    pub(super) body: InBody,
    /// Block with more attributes, or 0.
    pub(super) xattr_block: u64,
    /// Checksum seed of the blocks of this inode, if the volume has checksums.
    pub(super) seed: Option<u32>,
    /// Offset of the inode in bytes of the volume.
    offset: u64,
}

/// All inodes that may be in a tree, in the order of their numbers.
pub(super) fn read(volume: &Super<'_>) -> Result<Vec<Node>, ReadError> {
    let per_chunk = CHUNK / volume.inode_size;
    let mut nodes = Vec::new();
    let mut buf = vec![0; CHUNK];
    for table in &volume.tables {
        let mut offset = table.block * volume.block;
        let mut numbers = table.first..table.first + table.count;
        while !numbers.is_empty() {
            let count = numbers.len().min(per_chunk);
            let buf = &mut buf[..count * volume.inode_size];
            if fill(volume, buf, offset)? {
                let places = (offset..).step_by(volume.inode_size);
                for ((number, raw), at) in numbers.clone().zip(buf.chunks_exact(volume.inode_size)).zip(places) {
                    if belongs(volume, number) {
                        nodes.extend(decode(volume, number, raw, at)?);
                    }
                }
            }
            offset += buf.len() as u64;
            numbers.by_ref().take(count).for_each(drop);
        }
    }
    Ok(nodes)
}

/// One inode; `None` if the number is out of range, or it is not part of a tree.
pub(super) fn read_one(volume: &Super<'_>, number: u32) -> Result<Option<Node>, ReadError> {
    if belongs(volume, number) { read_any(volume, number) } else { Ok(None) }
}

/// The inode with the value of an attribute; `None` if it does not exist.
pub(super) fn read_value(volume: &Super<'_>, number: u32) -> Result<Option<(Node, ValueHash)>, ReadError> {
    let Some((raw, offset)) = read_raw(volume, number)? else { return Ok(None) };
    let node = decode(volume, number, &raw, offset)?.filter(|node| node.flags & EA_INODE != 0);
    // i_atime, i_mtime, i_generation
    let hash = ValueHash { hash: le32(&raw, 0x08), parent: le32(&raw, 0x10), generation: le32(&raw, 0x64) };
    Ok(node.map(|node| (node, hash)))
}

/// How an inode with the value of an attribute is verified.
pub(super) struct ValueHash {
    /// Checksum of the value.
    pub(super) hash: u32,
    /// In volumes of Lustre, the inode with the attribute, and its generation.
    pub(super) parent: u32,
    pub(super) generation: u32,
}

/// One used inode of any purpose, including reserved ones.
pub(super) fn read_any(volume: &Super<'_>, number: u32) -> Result<Option<Node>, ReadError> {
    match read_raw(volume, number)? {
        Some((raw, offset)) => decode(volume, number, &raw, offset),
        None => Ok(None),
    }
}

/// The bytes of an inode and their offset; `None` if the number is out of range or was never used.
fn read_raw(volume: &Super<'_>, number: u32) -> Result<Option<(Vec<u8>, u64)>, ReadError> {
    let after = volume.tables.partition_point(|table| table.first <= number);
    let table: Option<&Table> = after.checked_sub(1).and_then(|index| volume.tables.get(index));
    let Some(table) = table.filter(|table| number - table.first < table.count) else { return Ok(None) };
    let mut raw = vec![0; volume.inode_size];
    let offset = table.block * volume.block + u64::from(number - table.first) * volume.inode_size as u64;
    volume.read(&mut raw, offset)?;
    Ok(Some((raw, offset)))
}

/// Fills `buf` and returns whether it may contain data; holes of a sparse image are skipped.
fn fill(volume: &Super<'_>, buf: &mut [u8], offset: u64) -> Result<bool, ReadError> {
    let len = buf.len();
    let data = volume.source.next_data(offset).map_err(|source| ReadError::Io { offset, len, source })?;
    if data.is_none_or(|data| data.start >= offset + len as u64) {
        return Ok(false);
    }
    volume.read(buf, offset)?;
    Ok(true)
}

/// Whether an inode of that number can be part of a tree.
fn belongs(volume: &Super<'_>, number: u32) -> bool {
    number == ROOT_INODE || (number >= volume.first_inode && !volume.hidden.contains(&number))
}

/// Decodes one slot of a table; `None` if the inode is unused.
fn decode(volume: &Super<'_>, number: u32, raw: &[u8], offset: u64) -> Result<Option<Node>, ReadError> {
    let place = || Location::Inode(number);
    let i_links_count = le16(raw, 0x1a);
    if i_links_count == 0 {
        return Ok(None);
    }
    let i_generation = le32(raw, 0x64);
    let extra = extra_len(raw).map_err(|what| ReadError::corrupt(place(), what))?;
    if let Some(seed) = volume.seed {
        check_sum(seed, number, i_generation, extra, raw)?;
    }
    let flags = le32(raw, 0x20);
    if let Some((_, what, hint)) = REFUSED_FLAGS.iter().find(|(bit, ..)| flags & bit != 0) {
        return Err(ReadError::unsupported(place(), *what, hint));
    }
    let i_mode = le16(raw, 0x00);
    let kind = file_type(i_mode);
    if kind == FileType::Unknown {
        return Err(ReadError::corrupt(place(), InodeFault::Mode { found: i_mode }));
    }
    let mut i_block = [0; I_BLOCK_LEN];
    i_block.copy_from_slice(&raw[I_BLOCK..I_BLOCK + I_BLOCK_LEN]);
    let owner = Owner { number, generation: i_generation };
    Ok(Some(Node {
        number,
        kind,
        mode: i_mode & 0o7777,
        uid: u32::from(le16(raw, 0x02)) | u32::from(le16(raw, 0x78)) << 16,
        gid: u32::from(le16(raw, 0x18)) | u32::from(le16(raw, 0x7a)) << 16,
        mtime: mtime(raw, extra).map_err(|what| ReadError::corrupt(place(), what))?,
        size: size(volume, kind, raw),
        links: i_links_count.into(),
        generation: i_generation,
        flags,
        i_block,
        body: xattrs::in_body(volume, &owner, raw, extra)?,
        xattr_block: xattr_block(volume, raw),
        seed: volume.seed.map(|seed| csum::inode_seed(seed, number, i_generation)),
        offset,
    }))
}

/// `i_extra_isize`: the length of the fields after the first 128 bytes, 0 if there are none.
fn extra_len(raw: &[u8]) -> Result<usize, InodeFault> {
    if raw.len() == GOOD_OLD_LEN {
        return Ok(0);
    }
    let extra = usize::from(le16(raw, 0x80));
    if !extra.is_multiple_of(4) || GOOD_OLD_LEN + extra > raw.len() {
        return Err(InodeFault::ExtraSize { found: extra });
    }
    Ok(extra)
}

/// Inodes without a field for the high half of the checksum store only the low one.
fn check_sum(seed: u32, number: u32, generation: u32, extra: usize, raw: &[u8]) -> Result<(), ReadError> {
    let expected = csum::inode(seed, number, generation, raw);
    let low = u32::from(le16(raw, 0x7c)); // l_i_checksum_lo
    let (found, expected) = if extra < 4 {
        (low, u32::from(low16(expected)))
    } else {
        (low | u32::from(le16(raw, 0x82)) << 16, expected) // i_checksum_hi
    };
    if found != expected {
        return Err(ReadError::checksum(Location::Inode(number), found, expected));
    }
    Ok(())
}

fn file_type(i_mode: u16) -> FileType {
    match i_mode >> 12 {
        0o01 => FileType::Fifo,
        0o02 => FileType::CharDev,
        0o04 => FileType::Dir,
        0o06 => FileType::BlockDev,
        0o10 => FileType::Regular,
        0o12 => FileType::Symlink,
        0o14 => FileType::Socket,
        _ => FileType::Unknown,
    }
}

/// `i_mtime`, with two more bits for the seconds and nanoseconds from `i_mtime_extra`.
fn mtime(raw: &[u8], extra: usize) -> Result<Timestamp, InodeFault> {
    let seconds = i64::from(i32::from_le_bytes([raw[0x10], raw[0x11], raw[0x12], raw[0x13]]));
    let i_mtime_extra = if extra >= 12 { le32(raw, 0x88) } else { 0 };
    let nanos = i_mtime_extra >> 2;
    if nanos >= 1_000_000_000 {
        return Err(InodeFault::Nanoseconds { found: nanos });
    }
    Ok(Timestamp { secs: seconds + (i64::from(i_mtime_extra & 3) << 32), nanos })
}

/// `i_size`. Its high half had another meaning in directories, until they could be that large.
fn size(volume: &Super<'_>, kind: FileType, raw: &[u8]) -> u64 {
    let low = u64::from(le32(raw, 0x04));
    let has_high = kind == FileType::Regular || (kind == FileType::Dir && volume.features.large_dir());
    if has_high { low | u64::from(le32(raw, 0x6c)) << 32 } else { low }
}

/// `i_file_acl`. Its high half is used in volumes with 64-bit block numbers.
fn xattr_block(volume: &Super<'_>, raw: &[u8]) -> u64 {
    let low = u64::from(le32(raw, 0x68));
    if volume.features.bits64() { low | u64::from(le16(raw, 0x76)) << 32 } else { low }
}

impl Node {
    /// The owner of the attributes in its block.
    pub(super) fn owner(&self) -> Owner {
        Owner { number: self.number, generation: self.generation }
    }

    /// Whether `i_block` is an extent tree.
    pub(super) fn has_extents(&self) -> bool {
        self.flags & EXTENTS != 0
    }

    /// Whether the content is in the inode, not in blocks.
    pub(super) fn has_inline_data(&self) -> bool {
        self.flags & INLINE_DATA != 0
    }

    /// Whether the directory has a hash index.
    pub(super) fn has_index(&self, volume: &Super<'_>) -> bool {
        self.flags & INDEX != 0 && volume.features.dir_index()
    }

    /// Whether `i_block` maps no blocks.
    pub(super) fn maps_nothing(&self) -> bool {
        !self.has_extents() && self.i_block.iter().all(|byte| *byte == 0)
    }

    /// Major and minor number of a device: one byte each in the first word, or 12 and 20 bits in the second.
    pub(super) fn device(&self) -> (u32, u32) {
        let (old, new) = (le32(&self.i_block, 0), le32(&self.i_block, 4));
        if old != 0 { (old >> 8 & 0xff, old & 0xff) } else { (new >> 8 & 0xfff, new & 0xff | new >> 12 & !0xff) }
    }

    /// Offset of `i_block` in bytes of the volume.
    pub(super) fn i_block_at(&self) -> u64 {
        self.offset + I_BLOCK as u64
    }

    /// Offset of a byte of the inode in bytes of the volume.
    pub(super) fn at(&self, byte: usize) -> u64 {
        self.offset + byte as u64
    }

    /// Refuses flags that an authored volume would lose.
    pub(super) fn check_base(&self) -> Result<(), ReadError> {
        match NOT_BASE_FLAGS.iter().find(|(bit, ..)| self.flags & bit != 0) {
            Some((_, what, hint)) => Err(ReadError::unsupported(Location::Inode(self.number), *what, hint)),
            None => Ok(()),
        }
    }
}
