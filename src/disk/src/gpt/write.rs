//! Encodes a table: the sectors at the start of the disk (MBR, header, entries) and at its end (entries, header).

use std::io::{self, Cursor, Seek, SeekFrom, Write};

use gptman::{GPTHeader, GPTPartitionEntry};

use super::copy::{ENTRY_LEN, array_sectors};
use super::{GptError, GptPart, PRIMARY_LBA, Partition, SECTOR, SECTOR_LEN, Table, Unwritable, check_layout};

/// Maximum length of a name in UTF-16 units.
const NAME_LEN: usize = 36;

/// Size of the backup at the end of the disk in bytes.
pub fn reserved_tail(table: &Table) -> u64 {
    (array_sectors(table.capacity) + 1) * SECTOR
}

/// Encodes `table` for a disk of `disk_len` bytes: the data at its start and at its end.
///
/// The first usable sector is unchanged, so that tools keep the alignment of the base.
pub fn write(table: &Table, disk_len: u64) -> Result<(Vec<u8>, Vec<u8>), GptError> {
    if table.mbr.hybrid {
        return Err(GptError::HybridMbr);
    }
    if table.sector != SECTOR {
        return Err(GptError::SectorSize { found: table.sector });
    }
    let array = array_sectors(table.capacity);
    let entries_lba = PRIMARY_LBA + 1;
    let first_usable = (table.first_usable / SECTOR).max(entries_lba + array);
    let min = (first_usable + 1 + array + 1) * SECTOR;
    if !disk_len.is_multiple_of(SECTOR) || disk_len < min {
        return Err(GptError::DiskLen { len: disk_len, min });
    }
    let last_lba = disk_len / SECTOR - 1;
    let last_usable = last_lba - array - 1;
    check_layout(&table.partitions, SECTOR, first_usable, last_usable)?;
    let entries = entries(table)?;
    let mut primary = GPTHeader {
        signature: *b"EFI PART",
        revision: [0, 0, 1, 0],
        header_size: 92,
        crc32_checksum: 0,
        reserved: [0; 4],
        primary_lba: PRIMARY_LBA,
        backup_lba: last_lba,
        first_usable_lba: first_usable,
        last_usable_lba: last_usable,
        disk_guid: table.disk_guid.0,
        partition_entry_lba: entries_lba,
        number_of_partition_entries: table.capacity,
        size_of_partition_entry: ENTRY_LEN,
        partition_entry_array_crc32: 0,
    };
    let mut backup = primary.clone();
    (backup.primary_lba, backup.backup_lba, backup.partition_entry_lba) = (last_lba, PRIMARY_LBA, last_usable + 1);
    let mut head = encode(&mut primary, &entries, 0, entries_lba + array)?;
    head[..SECTOR_LEN].copy_from_slice(&table.mbr.to_sector(last_lba + 1));
    let tail = encode(&mut backup, &entries, last_usable + 1, array + 1)?;
    Ok((head, tail))
}

/// All entries, used and unused, in the order of their numbers.
fn entries(table: &Table) -> Result<Vec<GPTPartitionEntry>, GptError> {
    let mut entries = vec![GPTPartitionEntry::empty(); table.capacity as usize];
    for partition in &table.partitions {
        let refuse = |what| GptError::Unwritable { number: partition.number, what };
        if partition.type_guid == super::Guid::UNUSED {
            return Err(refuse(Unwritable::UnusedType));
        }
        if !partition.start.is_multiple_of(SECTOR) || !partition.len.is_multiple_of(SECTOR) || partition.len == 0 {
            return Err(refuse(Unwritable::Unaligned));
        }
        if partition.name.encode_utf16().count() > NAME_LEN {
            return Err(refuse(Unwritable::NameLen));
        }
        let index = partition.number.checked_sub(1).map(|index| index as usize);
        let slot = index.and_then(|index| entries.get_mut(index)).ok_or(refuse(Unwritable::NoSuchNumber))?;
        if slot.is_used() {
            return Err(refuse(Unwritable::NumberTwice));
        }
        *slot = entry(partition);
    }
    Ok(entries)
}

fn entry(partition: &Partition) -> GPTPartitionEntry {
    GPTPartitionEntry {
        partition_type_guid: partition.type_guid.0,
        unique_partition_guid: partition.guid.0,
        starting_lba: partition.start / SECTOR,
        ending_lba: partition.end() / SECTOR - 1,
        attribute_bits: partition.attributes,
        partition_name: partition.name.as_str().into(),
    }
}

/// Header and entries in a buffer for `sectors` sectors from `base` on.
fn encode(header: &mut GPTHeader, entries: &[GPTPartitionEntry], base: u64, sectors: u64) -> Result<Vec<u8>, GptError> {
    let len = usize::try_from(sectors * SECTOR).unwrap_or(usize::MAX);
    let mut buffer = Based { base: base * SECTOR, inner: Cursor::new(vec![0; len]) };
    let lba = header.primary_lba;
    header.write_into(&mut buffer, SECTOR, entries).map_err(|_| GptError::Corrupt {
        lba,
        what: GptPart::CopyLba,
        found: base,
    })?;
    Ok(buffer.inner.into_inner())
}

/// A part of the disk in memory, addressed as on the disk.
struct Based {
    base: u64,
    inner: Cursor<Vec<u8>>,
}

impl Write for Based {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.inner.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Based {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(offset) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        let offset = offset.checked_sub(self.base).ok_or(io::ErrorKind::InvalidInput)?;
        self.inner.set_position(offset);
        Ok(offset + self.base)
    }
}
