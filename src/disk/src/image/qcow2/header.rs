//! The header of a qcow2 image, without its extensions: none of them changes the contents of the disk, as mandatory
//! features have an incompatible feature bit.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU, "Header". Big-endian; offsets and sizes are bytes.
//!
//! Snapshots are ignored: the active layer is read. An image with the dirty bit is accepted: its reference counts may
//! be stale, but reading does not use them.

use super::{ImageError, ImageFile, Qcow2Structure};
use crate::image::ClusterCompression;

/// "QFI" and 0xfb.
pub const MAGIC: [u8; 4] = *b"QFI\xfb";

const V2_LEN: usize = 72;
const V3_LEN: usize = 104;
/// Header length of an image with a compression type.
const FULL_LEN: usize = 112;

/// Unit of disk sizes: QEMU ignores a partial sector.
const SECTOR: u64 = 512;

/// Limit of QEMU for the L1 table.
const MAX_L1_BYTES: u64 = 32 << 20;

const CONVERT: &str = "convert it first: qemu-img convert -O qcow2 IMAGE NEW";

/// The incompatible features of version 3, by bit.
const DIRTY: u64 = 1 << 0;
const CORRUPT: u64 = 1 << 1;
const EXTERNAL_DATA: u64 = 1 << 2;
const COMPRESSION_TYPE: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;

/// The validated fields for reading.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    pub version: u32,
    /// 9 to 21.
    pub cluster_bits: u32,
    /// Length of the disk in bytes.
    pub size: u64,
    pub l1_table_offset: u64,
    /// Entries of the L1 table required for `size`; the file has at least as many.
    pub l1_len: usize,
    pub compression: ClusterCompression,
}

impl Header {
    /// Reads and validates the header of `file`, which has a backing file if it is an overlay.
    pub fn read(file: &ImageFile, is_overlay: bool) -> Result<Self, ImageError> {
        let mut bytes = [0; FULL_LEN];
        file.read(&mut bytes[..V2_LEN], 0, Qcow2Structure::Header)?;
        let version = be32(&bytes, 4);
        match version {
            2 => {}
            3 => {
                file.read(&mut bytes[..V3_LEN], 0, Qcow2Structure::Header)?;
                let header_length = be32(&bytes, 100);
                if header_length < 104 || !header_length.is_multiple_of(8) {
                    return Err(file.corrupt(
                        Qcow2Structure::HeaderLength,
                        100,
                        header_length,
                        "a multiple of 8, at least 104",
                    ));
                }
                if header_length >= 112 {
                    file.read(&mut bytes, 0, Qcow2Structure::Header)?;
                }
            }
            _ => return Err(file.unsupported(format!("version {version}"), CONVERT)),
        }
        match (be64(&bytes, 8), is_overlay) {
            (0, false) | (1.., true) => {}
            (0, true) => return Err(file.unsupported("no backing file", "use the file as written by `vmbake delta`")),
            (1.., false) => {
                let hint = "merge it first, next to its backing file: qemu-img convert -O qcow2 IMAGE NEW";
                return Err(file.unsupported("a backing file", hint));
            }
        }
        refuse_features(file, &bytes, version)?;
        let compression = match version {
            2 => ClusterCompression::Zlib,
            _ => compression(file, &bytes)?,
        };
        let cluster_bits = be32(&bytes, 20);
        if !(9..=21).contains(&cluster_bits) {
            return Err(file.corrupt(Qcow2Structure::ClusterBits, 20, cluster_bits, "9 to 21"));
        }
        if version >= 3 && be32(&bytes, 100) > 1 << cluster_bits {
            return Err(file.corrupt(
                Qcow2Structure::HeaderLength,
                100,
                be32(&bytes, 100),
                "no more than the first cluster",
            ));
        }
        let size = be64(&bytes, 24);
        if !size.is_multiple_of(SECTOR) {
            return Err(file.corrupt(Qcow2Structure::Size, 24, size, "a multiple of 512"));
        }
        let l1_table_offset = be64(&bytes, 40);
        let l1_len = check_l1(file, cluster_bits, size, be32(&bytes, 36), l1_table_offset)?;
        Ok(Self { version, cluster_bits, size, l1_table_offset, l1_len, compression })
    }

    /// Bytes of a cluster.
    pub fn cluster_size(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// Bytes of the disk that one L2 table covers.
    pub fn l2_reach(&self) -> u64 {
        self.cluster_size() * (self.cluster_size() / 8)
    }

    /// Offset of an L1 entry in the file.
    pub fn l1_entry(&self, number: u64) -> u64 {
        self.l1_table_offset + number * 8
    }
}

/// Refuses features by name that would change the meaning of the tables.
fn refuse_features(file: &ImageFile, bytes: &[u8; FULL_LEN], version: u32) -> Result<(), ImageError> {
    match be32(bytes, 32) {
        0 => {}
        1 | 2 => {
            let hint = "decrypt it first: qemu-img convert --image-opts -O qcow2 driver=qcow2,encrypt.key-secret=… NEW";
            return Err(file.unsupported("encryption", hint));
        }
        other => return Err(file.corrupt(Qcow2Structure::CryptMethod, 32, other, "0, 1 or 2")),
    }
    if version == 2 {
        return Ok(());
    }
    let features = be64(bytes, 72);
    if features & EXTERNAL_DATA != 0 {
        return Err(file.unsupported("an external data file", CONVERT));
    }
    if features & EXTENDED_L2 != 0 {
        return Err(file.unsupported("extended L2 entries (subclusters)", CONVERT));
    }
    if features & CORRUPT != 0 {
        let hint = "QEMU marked it as corrupt: try qemu-img check -r all IMAGE on a copy";
        return Err(file.unsupported("the corrupt bit set", hint));
    }
    let unknown = features & !(DIRTY | COMPRESSION_TYPE);
    if unknown != 0 {
        return Err(file.unsupported(format!("unknown incompatible features {unknown:#x}"), CONVERT));
    }
    Ok(())
}

fn compression(file: &ImageFile, bytes: &[u8; FULL_LEN]) -> Result<ClusterCompression, ImageError> {
    let named = be64(bytes, 72) & COMPRESSION_TYPE != 0;
    // If the header is too short for the field, it was not read and is 0.
    match (named, bytes[104]) {
        (false, 0) => Ok(ClusterCompression::Zlib),
        (true, 1) => Ok(ClusterCompression::Zstd),
        (true, 0) => Err(file.corrupt(
            Qcow2Structure::CompressionType,
            104,
            0u64,
            "another type than 0, as its feature bit is set",
        )),
        (false, other) => {
            Err(file.corrupt(Qcow2Structure::CompressionType, 104, other, "0, as its feature bit is not set"))
        }
        (true, other) => Err(file.unsupported(format!("compression type {other}"), CONVERT)),
    }
}

/// The number of L1 entries required for `size`.
fn check_l1(file: &ImageFile, cluster_bits: u32, size: u64, l1_size: u32, offset: u64) -> Result<usize, ImageError> {
    // An L2 table is one cluster of 8-byte entries, each for one cluster.
    let l2_reach_bits = cluster_bits + (cluster_bits - 3);
    let needed = size.div_ceil(1 << l2_reach_bits);
    let most = MAX_L1_BYTES / 8;
    if needed > most {
        return Err(file.corrupt(Qcow2Structure::Size, 24, size, format!("at most {:#x}", most << l2_reach_bits)));
    }
    if u64::from(l1_size) > most {
        return Err(file.corrupt(Qcow2Structure::L1Size, 36, l1_size, format!("at most {most:#x}")));
    }
    if u64::from(l1_size) < needed {
        return Err(file.corrupt(
            Qcow2Structure::L1Size,
            36,
            l1_size,
            format!("at least {needed:#x} for a disk of {size:#x} bytes"),
        ));
    }
    if !offset.is_multiple_of(1 << cluster_bits) {
        return Err(file.corrupt(Qcow2Structure::L1TableOffset, 40, offset, "a multiple of the cluster size"));
    }
    // Before allocating memory, check that the file contains the table.
    if offset.checked_add(needed * 8).is_none_or(|end| end > file.len()) {
        let expected = format!("{needed:#x} entries inside the file of {:#x} bytes", file.len());
        return Err(file.corrupt(Qcow2Structure::L1TableOffset, 40, offset, expected));
    }
    usize::try_from(needed)
        .map_err(|_| file.corrupt(Qcow2Structure::Size, 24, size, "an L1 table that fits into memory"))
}

pub(super) fn be32(bytes: &[u8; FULL_LEN], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

pub(super) fn be64(bytes: &[u8; FULL_LEN], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
