//! Entries of L1 and L2 tables. Big-endian 64-bit words; offsets are bytes of the image file.
//!
//! Stricter than QEMU: reserved bits that are set are corruption, as a feature that used them would require an
//! incompatible feature bit.

use super::header::Header;
use super::{ImageError, ImageFile, Qcow2Structure, index};

/// Bits 9 to 55 of an L1 entry and of an L2 entry for a plain cluster.
const OFFSET_MASK: u64 = 0x00ff_ffff_ffff_fe00;
/// The reference count is exactly one. Irrelevant for reading.
const COPIED: u64 = 1 << 63;
const COMPRESSED: u64 = 1 << 62;
/// Version 3: the cluster reads as zeros, with or without an offset.
const ZERO: u64 = 1;

/// An L2 table with raw entries, which are validated on use.
pub struct L2Table {
    /// Position in the file.
    pub offset: u64,
    pub entries: Vec<u64>,
}

impl L2Table {
    /// Reads the table at `offset`.
    pub fn read(file: &ImageFile, header: &Header, offset: u64) -> Result<Self, ImageError> {
        let count = index(header.cluster_size() / 8);
        Ok(Self { offset, entries: read_words(file, offset, count, Qcow2Structure::L2Table)? })
    }
}

/// The location of a cluster's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Unallocated. Zeros, or in an overlay the bytes of its backing file.
    Absent,
    /// Zeros, not stored.
    Zero,
    /// Uncompressed at this offset.
    Plain(u64),
    /// Compressed, in at most `len` bytes.
    Compressed { offset: u64, len: u64 },
}

/// Reads `count` words at `offset`.
pub fn read_words(file: &ImageFile, offset: u64, count: usize, what: Qcow2Structure) -> Result<Vec<u64>, ImageError> {
    let mut bytes = vec![0; count * 8];
    file.read(&mut bytes, offset, what)?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_be_bytes(*word)).collect())
}

/// The offset of the L2 table in an L1 entry at `at`, if any.
pub fn l2_offset(file: &ImageFile, header: &Header, entry: u64, at: u64) -> Result<Option<u64>, ImageError> {
    if entry & !(OFFSET_MASK | COPIED) != 0 {
        return Err(file.corrupt(Qcow2Structure::L1Entry, at, entry, "reserved bits clear"));
    }
    let offset = entry & OFFSET_MASK;
    if !offset.is_multiple_of(1 << header.cluster_bits) {
        return Err(file.corrupt(Qcow2Structure::L1Entry, at, entry, "an L2 table at a multiple of the cluster size"));
    }
    Ok((offset != 0).then_some(offset))
}

/// Decodes entry `i` of an L2 table.
pub fn mapping(file: &ImageFile, header: &Header, table: &L2Table, i: usize) -> Result<Mapping, ImageError> {
    let (entry, at) = (table.entries[i], table.offset + i as u64 * 8);
    let corrupt = |expected: &str| Err(file.corrupt(Qcow2Structure::L2Entry, at, entry, expected));
    if entry & COMPRESSED != 0 {
        let (offset, len) = compressed_range(header, entry);
        // The last sector may be truncated after the data.
        let Some(left) = file.len().checked_sub(offset).filter(|left| *left > 0) else {
            return corrupt("compressed data inside the file");
        };
        return Ok(Mapping::Compressed { offset, len: len.min(left) });
    }
    if entry & !(OFFSET_MASK | COPIED | ZERO) != 0 {
        return corrupt("reserved bits clear");
    }
    if entry & ZERO != 0 && header.version < 3 {
        return corrupt("no zero flag in version 2");
    }
    // Also of a cluster that reads as zeros, but has allocated space.
    let offset = entry & OFFSET_MASK;
    if !offset.is_multiple_of(1 << header.cluster_bits) {
        return corrupt("a cluster at a multiple of the cluster size");
    }
    Ok(match offset {
        _ if entry & ZERO != 0 => Mapping::Zero,
        0 => Mapping::Absent,
        _ => Mapping::Plain(offset),
    })
}

/// Offset and maximum length of compressed data: the low bits are the offset, the bits above (up to 61) count the
/// additional sectors of 512 bytes.
fn compressed_range(header: &Header, entry: u64) -> (u64, u64) {
    let offset_bits = 62 - (header.cluster_bits - 8);
    let offset = entry & ((1 << offset_bits) - 1);
    let sectors = (entry & (COMPRESSED - 1)) >> offset_bits;
    (offset, (sectors + 1) * 512 - offset % 512)
}
