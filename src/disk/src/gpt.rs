//! GUID partition tables: reads a [`Table`] from a disk, and encodes a [`Table`] to sectors.
//!
//! UEFI 2.10, 5.3. Little endian; sectors of 512 bytes, or of 4096, which are supported only for reading; public values
//! are bytes from the start of the disk. Headers and entries are decoded and encoded by `gptman`, which preserves
//! numbers, GUIDs and attributes; this module selects the copy and validates it first: both checksums, location,
//! bounds, overlaps.
//!
//! Stricter than the specification: headers of 92 and entries of 128 bytes only, at most 1024 of them, and no duplicate
//! GUIDs.

mod error;
mod guid;
mod mbr;
mod copy;
mod write;

pub use error::{GptError, GptPart, Unwritable};
pub use guid::Guid;
pub use mbr::Mbr;
pub use write::{reserved_tail, write};

use crate::source::ReadAt;

/// Bytes of a sector.
pub const SECTOR: u64 = SECTOR_LEN as u64;
const SECTOR_LEN: usize = 512;
/// Sector size in bytes of disks with large sectors.
const LARGE_SECTOR: u64 = 4096;
/// The signature of a header.
const SIGNATURE: [u8; 8] = *b"EFI PART";
/// The sector of the primary header.
const PRIMARY_LBA: u64 = 1;

type Sector = [u8; SECTOR_LEN];

/// A partition. Offset and length are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1: `p14` stays `p14` wherever it is on the disk.
    pub number: u32,
    pub type_guid: Guid,
    /// Its unique GUID (PARTUUID).
    pub guid: Guid,
    /// Offset of the first byte.
    pub start: u64,
    pub len: u64,
    /// Attribute bits as stored.
    pub attributes: u64,
    /// Label (PARTLABEL), with invalid UTF-16 replaced by U+FFFD.
    pub name: String,
}

impl Partition {
    /// End (exclusive) in bytes.
    pub fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// A validated partition table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub disk_guid: Guid,
    /// Used entries by number.
    pub partitions: Vec<Partition>,
    /// Offset of the first byte available for partitions.
    pub first_usable: u64,
    /// Number of entries.
    pub capacity: u32,
    /// Sector size in bytes: 512 or 4096.
    pub sector: u64,
    /// Sector 0.
    pub mbr: Mbr,
    /// Why the primary copy was not used, if the backup was.
    pub used_backup: Option<String>,
    /// Why the backup is invalid, if the primary was used.
    pub backup_damage: Option<String>,
}

impl Table {
    pub fn partition(&self, number: u32) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.number == number)
    }
}

/// Reads and validates the table of a disk; uses the backup if the primary copy is corrupt.
///
/// The backup is expected at the location in the primary header (a raw image may have been extended since), otherwise
/// in the last sector.
pub fn read(source: &dyn ReadAt) -> Result<Table, GptError> {
    let mbr = Mbr::parse(&read_sector(source, SECTOR, 0)?)?;
    let sector = sector_len(source);
    let last = last_lba(source, sector);
    let header = copy::read_header(source, sector, PRIMARY_LBA);
    let alternate = header.as_ref().ok().map(|header| header.backup_lba).filter(|lba| (2..=last).contains(lba));
    let backup = copy::read(source, sector, alternate.unwrap_or(last));
    match (header.and_then(|header| copy::read_entries(source, sector, header)), backup) {
        (Ok(primary), backup) => {
            let damage = match &backup {
                Ok(backup) if !backup.same_content(&primary) => Some("it differs from the primary".to_owned()),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
            Ok(Table { backup_damage: damage, ..primary.into_table(mbr) })
        }
        (Err(error), Ok(backup)) => Ok(Table { used_backup: Some(error.to_string()), ..backup.into_table(mbr) }),
        (Err(primary), Err(backup)) => {
            Err(GptError::BothUnusable { primary: Box::new(primary), backup: Box::new(backup) })
        }
    }
}

/// The sector size, determined by the location of a header, as no field states it.
fn sector_len(source: &dyn ReadAt) -> u64 {
    let has_header = |sector, lba| {
        let found = read_sector(source, sector, lba);
        found.is_ok_and(|found| found.starts_with(&SIGNATURE))
    };
    let sizes = [SECTOR, LARGE_SECTOR];
    let primary = sizes.into_iter().find(|sector| has_header(*sector, PRIMARY_LBA));
    let backup = || sizes.into_iter().find(|sector| has_header(*sector, last_lba(source, *sector)));
    primary.or_else(backup).unwrap_or(SECTOR)
}

fn last_lba(source: &dyn ReadAt, sector: u64) -> u64 {
    (source.len() / sector).saturating_sub(1)
}

/// Offset of a sector in bytes.
fn offset(sector: u64, lba: u64) -> Result<u64, GptError> {
    lba.checked_mul(sector).ok_or(GptError::Corrupt { lba, what: GptPart::Sector, found: lba })
}

/// The first 512 bytes of a sector of any size.
fn read_sector(source: &dyn ReadAt, sector: u64, lba: u64) -> Result<Sector, GptError> {
    let mut bytes = [0; SECTOR_LEN];
    source.read_exact_at(&mut bytes, offset(sector, lba)?).map_err(|source| GptError::Read { lba, source })?;
    Ok(bytes)
}

/// Checks partitions against each other and against the usable sectors `min` to `max` (both inclusive).
fn check_layout(partitions: &[Partition], sector: u64, min: u64, max: u64) -> Result<(), GptError> {
    let mut by_start: Vec<&Partition> = partitions.iter().collect();
    by_start.sort_by_key(|partition| partition.start);
    for partition in &by_start {
        let (first, last) = (partition.start / sector, (partition.end() / sector).saturating_sub(1));
        if first < min || last > max {
            return Err(GptError::OutOfBounds { number: partition.number, first, last, min, max });
        }
    }
    if let Some(pair) = by_start.windows(2).find(|pair| pair[0].end() > pair[1].start) {
        return Err(GptError::Overlap { a: pair[0].number, b: pair[1].number });
    }
    by_start.sort_by_key(|partition| (partition.guid, partition.number));
    match by_start.windows(2).find(|pair| pair[0].guid == pair[1].guid) {
        Some(pair) => Err(GptError::DuplicateGuid { a: pair[0].number, b: pair[1].number, guid: pair[0].guid }),
        None => Ok(()),
    }
}
