//! Extent trees (`ext4_extent_header` and the entries after it): the root is in `i_block`, deeper nodes are in blocks
//! with a checksum at their end.

use mkext4::csum;

use super::corruption::MappingFault;
use super::mapping::{Run, Runs};
use super::{Location, ReadError, le16, le32};

/// `eh_magic`.
const MAGIC: u16 = 0xf30a;
/// Length of the header, and of each entry.
const ENTRY: usize = 12;
/// Maximum depth in the kernel (`EXT4_MAX_EXTENT_DEPTH`).
pub(super) const MAX_DEPTH: u16 = 5;
/// Capacity of `i_block`.
const ROOT_ENTRIES: u16 = 4;
/// Maximum length of a written extent (`EXT_INIT_MAX_LEN`); larger values mark unwritten extents.
const MAX_WRITTEN: u16 = 32768;

/// Reads the tree of an inode. The walk terminates, because every node below the root has at least one entry, depths
/// descend, and each entry follows all before it: no block is visited twice.
pub(super) fn read(runs: &mut Runs<'_>) -> Result<(), ReadError> {
    let place = Location::Inode(runs.node.number);
    let root = &runs.node.i_block;
    let header = Header::decode(root, ROOT_ENTRIES).map_err(|what| ReadError::corrupt(place.clone(), what))?;
    if header.depth > MAX_DEPTH {
        return Err(ReadError::corrupt(place, MappingFault::ExtentDepth { found: header.depth }));
    }
    node(runs, root, &header, &place)
}

/// The header of a node.
struct Header {
    /// `eh_entries`: the number of entries.
    entries: u16,
    /// `eh_max`: the capacity.
    max: u16,
    /// `eh_depth`: 0 for extents, otherwise nodes are below.
    depth: u16,
}

impl Header {
    /// `capacity` is the number of entries that fit; tools may have left some of it unused.
    fn decode(bytes: &[u8], capacity: u16) -> Result<Self, MappingFault> {
        let magic = le16(bytes, 0x00);
        if magic != MAGIC {
            return Err(MappingFault::ExtentMagic { found: magic });
        }
        let (entries, max, depth) = (le16(bytes, 0x02), le16(bytes, 0x04), le16(bytes, 0x06));
        if max == 0 || max > capacity || entries > max {
            return Err(MappingFault::ExtentCount { entries, max, capacity });
        }
        Ok(Self { entries, max, depth })
    }
}

fn node(runs: &mut Runs<'_>, bytes: &[u8], header: &Header, place: &Location) -> Result<(), ReadError> {
    for entry in bytes.chunks_exact(ENTRY).skip(1).take(header.entries.into()) {
        if header.depth == 0 {
            leaf(runs, entry, place)?;
        } else {
            child(runs, entry, header.depth, place)?;
        }
    }
    Ok(())
}

/// `ext4_extent`.
fn leaf(runs: &mut Runs<'_>, entry: &[u8], place: &Location) -> Result<(), ReadError> {
    let ee_len = le16(entry, 0x04);
    let written = ee_len <= MAX_WRITTEN;
    let run = Run {
        logical: le32(entry, 0x00).into(),
        physical: u64::from(le16(entry, 0x06)) << 32 | u64::from(le32(entry, 0x08)),
        len: u64::from(if written { ee_len } else { ee_len - MAX_WRITTEN }),
        written,
    };
    runs.push(run, place)
}

/// `ext4_extent_idx`.
fn child(runs: &mut Runs<'_>, entry: &[u8], depth: u16, place: &Location) -> Result<(), ReadError> {
    let logical = le32(entry, 0x00);
    let block = u64::from(le32(entry, 0x04)) | u64::from(le16(entry, 0x08)) << 32;
    if !runs.volume.holds(block, 1) || u64::from(logical) < runs.end() {
        let what = MappingFault::ExtentIndex { logical, block };
        return Err(ReadError::corrupt(place.clone(), what));
    }
    runs.budget.take_block(runs.node, block)?;
    let bytes = runs.volume.read_block(block)?;
    let place = Location::Block { inode: runs.node.number, block };
    let capacity = u16::try_from(bytes.len() / ENTRY - 1).unwrap_or(u16::MAX);
    let header = Header::decode(&bytes, capacity).map_err(|what| ReadError::corrupt(place.clone(), what))?;
    if let Some(seed) = runs.node.seed {
        check_sum(seed, &bytes, &header, &place)?;
    }
    let (entries, expected) = (header.entries, depth - 1);
    if header.depth != expected || entries == 0 {
        let what = MappingFault::ExtentNode { entries, depth: header.depth, expected };
        return Err(ReadError::corrupt(place, what));
    }
    // As in the kernel: the first entry of a node starts at the block stated in its parent.
    if le32(&bytes, ENTRY) != logical {
        return Err(ReadError::corrupt(place, MappingFault::ExtentStart));
    }
    node(runs, &bytes, &header, &place)
}

/// The checksum follows the last possible entry.
fn check_sum(seed: u32, bytes: &[u8], header: &Header, place: &Location) -> Result<(), ReadError> {
    let at = ENTRY * (usize::from(header.max) + 1);
    let Some(covered) = bytes.get(..at + 4) else {
        return Err(ReadError::corrupt(place.clone(), MappingFault::ExtentTail));
    };
    let (found, expected) = (le32(bytes, at), csum::extent_block(seed, covered));
    if found != expected {
        return Err(ReadError::checksum(place.clone(), found, expected));
    }
    Ok(())
}
