//! Directory blocks (`ext4_dir_entry_2`): lists of entries with a checksum at their end, and the index nodes of large
//! directories (`dx_root`, `dx_node`). Index nodes look like blocks without entries, so the entries are found without
//! the index, independent of its depth and hash.

use mkext4::csum;
use mkext4::spec::dirent;

use super::corruption::DirectoryFault;
use super::inodes::Node;
use super::superblock::Super;
use super::{Location, ReadError, inline, le16, le32};

/// Length of an entry without its name.
const ENTRY: usize = 8;
/// From this block size on, lengths of entries have two more bits.
const LARGE_BLOCK: usize = 65_536;
/// Offset of count and limit of the entries of a `dx_root`, after `.`, `..` and 8 bytes of information.
const ROOT_LIMIT: usize = 0x20;
/// The same offset in a `dx_node`, after an entry that spans the block.
const NODE_LIMIT: usize = 0x08;

/// An entry of a directory.
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) inode: u32,
    /// Type in the entry, if the volume has the feature; 0 means unknown, other values must match the inode's.
    pub(super) file_type: Option<u8>,
}

/// The contents of the blocks of a directory.
#[derive(Default)]
pub(super) struct Directory {
    /// The inode of `..`.
    pub(super) parent: u32,
    /// All entries except for `.` and `..`, unsorted.
    pub(super) entries: Vec<Entry>,
}

impl Directory {
    /// A directory stored in its inode, which starts with the number of its parent.
    pub(super) fn inline(volume: &Super<'_>, node: &Node) -> Result<Self, ReadError> {
        let place = Location::Inode(node.number);
        let [first, second] = inline::bytes(volume, node)?;
        let Some((parent, first)) = first.split_at_checked(4) else {
            return Err(ReadError::corrupt(place, DirectoryFault::Len { len: node.size }));
        };
        let mut directory = Self { parent: le32(parent, 0), entries: Vec::new() };
        for list in [first, &second] {
            for entry in entries(volume, list, &place)? {
                directory.entries.push(entry);
            }
        }
        Ok(directory)
    }

    /// Adds the entries of block `logical` of the directory, at `block` of the volume.
    pub(super) fn add_block(
        &mut self,
        volume: &Super<'_>,
        node: &Node,
        logical: u64,
        block: u64,
        bytes: &[u8],
    ) -> Result<(), ReadError> {
        let place = Location::Block { inode: node.number, block };
        if let Some(seed) = node.seed {
            check_sum(seed, node.has_index(volume), logical, bytes, &place)?;
        }
        for (index, entry) in entries(volume, bytes, &place)?.into_iter().enumerate() {
            match (logical, index) {
                (0, 0) if entry.name == b"." && entry.inode == node.number => {}
                (0, 1) if entry.name == b".." => self.parent = entry.inode,
                (0, 0 | 1) => return Err(ReadError::corrupt(place, DirectoryFault::Dots)),
                _ => self.entries.push(entry),
            }
        }
        Ok(())
    }
}

/// The used entries of a list. Their lengths must add up to that of the list.
fn entries(volume: &Super<'_>, bytes: &[u8], place: &Location) -> Result<Vec<Entry>, ReadError> {
    let corrupt = |what: DirectoryFault| ReadError::corrupt(place.clone(), what);
    let mut all = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let len = if rest.len() < ENTRY { 0 } else { rec_len(le16(rest, 0x04), bytes.len()) };
        if len < ENTRY || !len.is_multiple_of(4) || len > rest.len() {
            return Err(corrupt(DirectoryFault::EntryLen { len, at }));
        }
        let (entry, after) = rest.split_at(len);
        rest = after;
        let inode = le32(entry, 0x00);
        if inode == 0 {
            continue;
        }
        if inode > volume.info.inodes {
            return Err(corrupt(DirectoryFault::EntryInode { inode, inodes: volume.info.inodes }));
        }
        // Before entries had a type, its byte was the high half of the name's length.
        let (name_len, file_type) = match volume.features.filetype() {
            true => (entry[0x06].into(), Some(entry[0x07])),
            false => (usize::from(le16(entry, 0x06)), None),
        };
        let name = entry.get(ENTRY..ENTRY + name_len);
        let name = name.ok_or_else(|| corrupt(DirectoryFault::EntryName { name_len, len }))?;
        all.push(Entry { name: name.to_vec(), inode, file_type });
    }
    Ok(all)
}

/// The length of an entry in a list of `list_len` bytes.
fn rec_len(found: u16, list_len: usize) -> usize {
    let len = usize::from(found);
    match found {
        _ if list_len < LARGE_BLOCK => len,
        0 | u16::MAX => list_len,
        _ => len & !3 | (len & 3) << 16,
    }
}

/// Verifies the checksum of a list of entries or of an index node.
fn check_sum(seed: u32, has_index: bool, logical: u64, bytes: &[u8], place: &Location) -> Result<(), ReadError> {
    let is_node = le32(bytes, 0) == 0 && rec_len(le16(bytes, 0x04), bytes.len()) == bytes.len();
    let sums = if has_index && logical == 0 {
        index_sums(seed, bytes, ROOT_LIMIT)
    } else if has_index && is_node {
        index_sums(seed, bytes, NODE_LIMIT)
    } else {
        dirent::tail_checksum(bytes).map(|found| (found, csum::dirent_block(seed, bytes))).ok_or(DirectoryFault::Tail)
    };
    let (found, expected) = sums.map_err(|what| ReadError::corrupt(place.clone(), what))?;
    if found != expected {
        return Err(ReadError::checksum(place.clone(), found, expected));
    }
    Ok(())
}

/// The stored and the computed checksum of an index node. `dx_countlimit` is at `at`, the checksum after the last
/// possible entry.
fn index_sums(seed: u32, bytes: &[u8], at: usize) -> Result<(u32, u32), DirectoryFault> {
    let (limit, count) = (le16(bytes, at), le16(bytes, at + 2));
    let tail = at + usize::from(limit) * 8;
    if count == 0 || count > limit || tail + 8 > bytes.len() {
        return Err(DirectoryFault::Index { count, limit });
    }
    Ok((le32(bytes, tail + 4), csum::dx_block(seed, bytes, at, count, limit)))
}
