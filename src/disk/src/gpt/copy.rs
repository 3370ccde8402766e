//! Reads one of the two copies of a table: the header at `lba`, and the entries that it refers to.

use std::io::Cursor;

use gptman::{GPTHeader, GPTPartitionEntry};

use super::{GptError, GptPart, Guid, Mbr, Partition, SECTOR, SECTOR_LEN, Table, check_layout, offset, read_sector};
use crate::source::ReadAt;

/// Size of an entry in bytes. The specification permits larger ones, which are not used in practice.
pub(super) const ENTRY_LEN: u32 = 128;
/// Maximum number of entries; 128 are common. Limits the memory for a hostile header.
const MAX_ENTRIES: u32 = 1024;

/// A copy with valid checksums and ranges.
pub(super) struct Copy {
    header: GPTHeader,
    partitions: Vec<Partition>,
    sector: u64,
}

impl Copy {
    /// Whether both copies describe the same disk.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.header.disk_guid == other.header.disk_guid
            && self.header.partition_entry_array_crc32 == other.header.partition_entry_array_crc32
    }

    pub(super) fn into_table(self, mbr: Mbr) -> Table {
        Table {
            disk_guid: Guid(self.header.disk_guid),
            partitions: self.partitions,
            first_usable: self.header.first_usable_lba.saturating_mul(self.sector),
            capacity: self.header.number_of_partition_entries,
            sector: self.sector,
            mbr,
            used_backup: None,
            backup_damage: None,
        }
    }
}

pub(super) fn read(source: &dyn ReadAt, sector: u64, lba: u64) -> Result<Copy, GptError> {
    read_entries(source, sector, read_header(source, sector, lba)?)
}

/// Reads the header at `lba`; validates its signature, revision, size, checksum and location.
pub(super) fn read_header(source: &dyn ReadAt, sector: u64, lba: u64) -> Result<GPTHeader, GptError> {
    let bytes = read_sector(source, sector, lba)?;
    let size = u64::from(u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]));
    let revision = u64::from(u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]));
    let header = GPTHeader::read_from(&mut Cursor::new(&bytes[..])).map_err(|error| match error {
        gptman::Error::InvalidChecksum(found, expected) => {
            GptError::Checksum { what: GptPart::Header, lba, expected, found }
        }
        gptman::Error::InvalidRevision => {
            GptError::Unsupported { lba, what: GptPart::Revision, found: revision, expected: "1.0" }
        }
        gptman::Error::InvalidHeaderSize => {
            GptError::Unsupported { lba, what: GptPart::HeaderSize, found: size, expected: "92" }
        }
        _ => GptError::NoSignature { lba },
    })?;
    if header.primary_lba != lba {
        return Err(GptError::Corrupt { lba, what: GptPart::MyLba, found: header.primary_lba });
    }
    Ok(header)
}

/// Reads and validates the entries of a validated header.
pub(super) fn read_entries(source: &dyn ReadAt, sector: u64, header: GPTHeader) -> Result<Copy, GptError> {
    let lba = header.primary_lba;
    let entry_len = header.size_of_partition_entry;
    if entry_len != ENTRY_LEN {
        return Err(GptError::Unsupported { lba, what: GptPart::EntrySize, found: entry_len.into(), expected: "128" });
    }
    let count = header.number_of_partition_entries;
    if count == 0 || count > MAX_ENTRIES {
        let found = count.into();
        return Err(GptError::Unsupported { lba, what: GptPart::EntryCount, found, expected: "1 to 1024" });
    }
    let start = header.partition_entry_lba;
    let mut array = vec![0; count as usize * ENTRY_LEN as usize];
    let read = source.read_exact_at(&mut array, offset(sector, start)?);
    read.map_err(|source| GptError::Read { lba: start, source })?;
    // gptman reads more bytes than it decodes (the size of its struct), including after the last entry.
    array.resize(array.len() + SECTOR_LEN, 0);
    let entries = array.windows(2 * ENTRY_LEN as usize).step_by(ENTRY_LEN as usize).take(count as usize);
    let entries = entries.map(|mut bytes| GPTPartitionEntry::read_from(&mut bytes)).collect::<Result<Vec<_>, _>>();
    let entries = entries.map_err(|_| GptError::Corrupt { lba, what: GptPart::EntryLba, found: start })?;
    let (expected, found) = (header.partition_entry_array_crc32, header.generate_partition_entry_array_crc32(&entries));
    if found != expected {
        return Err(GptError::Checksum { what: GptPart::EntryArray, lba: start, expected, found });
    }
    let partitions = (1..).zip(&entries).filter(|(_, entry)| entry.is_used());
    let partitions =
        partitions.map(|(number, entry)| partition(sector, lba, number, entry)).collect::<Result<Vec<_>, _>>()?;
    let end = source.len() / sector;
    check_layout(&partitions, sector, header.first_usable_lba, header.last_usable_lba.min(end.saturating_sub(1)))?;
    Ok(Copy { header, partitions, sector })
}

/// Sectors of 512 bytes for an array of `count` entries.
pub(super) fn array_sectors(count: u32) -> u64 {
    (u64::from(count) * u64::from(ENTRY_LEN)).div_ceil(SECTOR)
}

fn partition(sector: u64, lba: u64, number: u32, entry: &GPTPartitionEntry) -> Result<Partition, GptError> {
    let (first, last) = (entry.starting_lba, entry.ending_lba);
    let bytes = |lba: u64| lba.checked_mul(sector);
    let end = last.checked_add(1).and_then(bytes);
    let (Some(start), Some(end)) = (bytes(first), end) else {
        return Err(GptError::Corrupt { lba, what: GptPart::LastLba, found: last });
    };
    if end <= start {
        return Err(GptError::Corrupt { lba, what: GptPart::LastBeforeFirst, found: last });
    }
    Ok(Partition {
        number,
        type_guid: Guid(entry.partition_type_guid),
        guid: Guid(entry.unique_partition_guid),
        start,
        len: end - start,
        attributes: entry.attribute_bits,
        name: entry.partition_name.as_str().to_owned(),
    })
}
