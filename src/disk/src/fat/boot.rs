//! The boot sector: offsets of FAT, root directory and clusters, validated so that later arithmetic stays inside the
//! volume.

use super::{FatError, FatPart};
use crate::source::ReadAt;

/// Fewer clusters than this are FAT12 (specification, 3.5).
const MIN_FAT16: u64 = 4085;
/// Fewer clusters than this are FAT16, unless the 16-bit FAT size says FAT32.
const MIN_FAT32: u64 = 65525;
/// Largest cluster number of FAT32 has 28 bits; the highest are reserved.
const MAX_CLUSTERS: u64 = 0x0FFF_FFF4;
/// Maximum size of a FAT in memory: that of a FAT32 volume of 16 GiB with clusters of 4 KiB.
const MAX_FAT_LEN: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FatKind {
    Fat12,
    Fat16,
    Fat32,
}

impl FatKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fat12 => "FAT12",
            Self::Fat16 => "FAT16",
            Self::Fat32 => "FAT32",
        }
    }
}

/// A checked boot sector. Offsets and lengths in bytes.
#[derive(Debug)]
pub(super) struct Boot {
    pub(super) kind: FatKind,
    pub(super) cluster_size: u32,
    pub(super) clusters: u32,
    pub(super) fat_offset: u64,
    pub(super) fat_len: u64,
    pub(super) root_offset: u64,
    pub(super) root_len: u64,
    /// FAT32 only; the two fields above are unused then.
    pub(super) root_cluster: Option<u32>,
    pub(super) volume_id: u32,
    pub(super) label: Option<Vec<u8>>,
    data_offset: u64,
}

impl Boot {
    pub(super) fn read(source: &dyn ReadAt) -> Result<Self, FatError> {
        let sector = read_bytes(source, 0, 512)?;
        let byte = |at: usize| u64::from(sector[at]);
        let word = |at: usize| u64::from(u16::from_le_bytes([sector[at], sector[at + 1]]));
        let long = |at: usize| word(at) | word(at + 2) << 16;
        require(FatPart::Signature, 510, word(510), |v| v == 0xAA55)?;
        require(FatPart::Jump, 0, byte(0), |v| v == 0xEB || v == 0xE9)?;
        let sector_size =
            require(FatPart::BytesPerSector, 11, word(11), |v| v.is_power_of_two() && (512..=4096).contains(&v))?;
        let per_cluster = require(FatPart::SectorsPerCluster, 13, byte(13), |v| v.is_power_of_two())?;
        let reserved = require(FatPart::ReservedSectors, 14, word(14), |v| v > 0)?;
        let fats = require(FatPart::Fats, 16, byte(16), |v| (1..=4).contains(&v))?;
        require(FatPart::Media, 21, byte(21), |v| v == 0xF0 || v >= 0xF8)?;
        let is_fat32 = word(22) == 0;
        let root_entries = require(FatPart::RootEntries, 17, word(17), |v| (v == 0) == is_fat32)?;
        let fat_at = if is_fat32 { 36 } else { 22 };
        let fat_sectors = if is_fat32 { long(36) } else { word(22) };
        require(FatPart::FatSectors, fat_at, fat_sectors, |v| v > 0)?;
        let total = if word(19) != 0 { word(19) } else { long(32) };

        let root_sectors = (root_entries * 32).div_ceil(sector_size);
        let data_sector = reserved + fats * fat_sectors + root_sectors;
        at_most(FatPart::FirstDataSector, data_sector, total)?;
        at_most(FatPart::Len, total * sector_size, source.len())?;
        let clusters = (total - data_sector) / per_cluster;
        let kind = match clusters {
            _ if is_fat32 => FatKind::Fat32,
            ..MIN_FAT16 => FatKind::Fat12,
            _ => FatKind::Fat16,
        };
        at_most(FatPart::Clusters, clusters, if is_fat32 { MAX_CLUSTERS } else { MIN_FAT32 - 1 })?;
        let fat_len = fat_sectors * sector_size;
        if fat_len > MAX_FAT_LEN {
            return Err(FatError::Unsupported { what: FatPart::FatLen, found: fat_len, limit: MAX_FAT_LEN });
        }
        // With mirroring off, bits 0 to 3 of BPB_ExtFlags select the active FAT.
        let active = if is_fat32 && word(40) & 0x80 != 0 { word(40) & 0xF } else { 0 };
        at_most(FatPart::ActiveFat, active, fats - 1)?;
        if is_fat32 {
            require(FatPart::Version, 42, word(42), |v| v == 0)?;
        }
        // Entries 0 and 1 of the FAT are not clusters; as in Linux, a volume is limited to its FAT.
        let in_fat = fat_entries(kind, fat_len).saturating_sub(2);
        let tail = if is_fat32 { 64 } else { 36 };
        let signed = sector[tail + 2] == 0x29;
        Ok(Self {
            kind,
            cluster_size: narrow(per_cluster * sector_size),
            clusters: narrow(clusters.min(in_fat)),
            fat_offset: (reserved + active * fat_sectors) * sector_size,
            fat_len: fat_len.min(needed_len(kind, clusters + 2)),
            root_offset: (reserved + fats * fat_sectors) * sector_size,
            root_len: root_entries * 32,
            root_cluster: is_fat32.then(|| narrow(long(44) & 0x0FFF_FFFF)),
            volume_id: if signed { narrow(long(tail + 3)) } else { 0 },
            label: signed.then(|| super::dir::label(&sector[tail + 7..tail + 18])).flatten(),
            data_offset: data_sector * sector_size,
        })
    }

    /// Whether cluster numbers have more than 16 bits.
    pub(super) fn wide(&self) -> bool {
        self.kind == FatKind::Fat32
    }

    /// Offset of a cluster; the number must be valid for the volume.
    pub(super) fn offset_of(&self, cluster: u32) -> u64 {
        self.data_offset + u64::from(cluster.saturating_sub(2)) * u64::from(self.cluster_size)
    }
}

/// Number of entries in a FAT of `len` bytes.
fn fat_entries(kind: FatKind, len: u64) -> u64 {
    match kind {
        FatKind::Fat12 => len * 2 / 3,
        FatKind::Fat16 => len / 2,
        FatKind::Fat32 => len / 4,
    }
}

/// Bytes for this many entries.
fn needed_len(kind: FatKind, entries: u64) -> u64 {
    match kind {
        FatKind::Fat12 => (entries * 3).div_ceil(2),
        FatKind::Fat16 => entries * 2,
        FatKind::Fat32 => entries * 4,
    }
}

fn require(what: FatPart, offset: u64, found: u64, good: impl Fn(u64) -> bool) -> Result<u64, FatError> {
    if good(found) { Ok(found) } else { Err(FatError::NotFat { what, offset, found }) }
}

fn at_most(what: FatPart, found: u64, limit: u64) -> Result<(), FatError> {
    if found <= limit { Ok(()) } else { Err(FatError::TooLarge { what, found, limit }) }
}

/// For values from fields of at most 32 bits, or compared with a 32-bit limit.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// `len` bytes at `offset`; the caller bounds `len`.
pub(super) fn read_bytes(source: &dyn ReadAt, offset: u64, len: u64) -> Result<Vec<u8>, FatError> {
    let fail = |error| FatError::Read { offset, len, source: error };
    if offset.checked_add(len).is_none_or(|end| end > source.len()) {
        return Err(fail(std::io::ErrorKind::UnexpectedEof.into()));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    source.read_exact_at(&mut bytes, offset).map_err(fail)?;
    Ok(bytes)
}
