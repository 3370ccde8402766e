//! MBR partition tables of BIOS machines: reads the [`Table`] of a disk. Read-only.
//!
//! There is no standard; the table is read as in Linux (`block/partitions/msdos.c`). Little endian, offsets in bytes
//! from the start of the sector, sectors of 512 bytes. The four entries of sector 0 are partitions 1 to 4. An extended
//! partition contains a chain of sectors of the same format, each with one logical partition, from 5 on, and the
//! location of the next.
//!
//! Entries may overlap or exceed the disk: they are never written, so they are listed unchanged.

use std::collections::BTreeSet;
use std::io;

use crate::source::ReadAt;

const SECTOR: u64 = 512;
const SECTOR_LEN: usize = 512;
/// Offset of the disk's signature, from which Linux derives the names of partitions (PARTUUID).
const DISK_SIGNATURE: usize = 440;
/// Offset of the four entries of 16 bytes.
const ENTRIES: usize = 446;
/// Offset of the two bytes that end the sector.
const MAGIC: usize = 510;
/// Limit of Linux for the length of a chain.
const MAX_CHAIN: usize = 100;
/// Number of the first logical partition.
const FIRST_LOGICAL: u32 = 5;

/// A table, without unused entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The disk's signature.
    pub signature: u32,
    /// Partitions by number, including the extended one.
    pub partitions: Vec<Partition>,
    /// Why logical partitions may be missing.
    pub damage: Option<String>,
}

/// A partition. Offset and length are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number: 1 to 4, or from 5 on inside an extended one.
    pub number: u32,
    pub os_type: OsType,
    /// Offset of the first byte.
    pub start: u64,
    pub len: u64,
}

/// The type byte of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsType(pub u8);

impl OsType {
    /// Any Linux file system.
    pub const LINUX: Self = Self(0x83);

    /// Whether it is an extended partition.
    pub fn is_extended(self) -> bool {
        matches!(self.0, 0x05 | 0x0F | 0x85)
    }

    /// The name of the type, for common types of Linux machines.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x01 | 0x04 | 0x06 | 0x0E => "FAT",
            0x0B | 0x0C => "FAT32",
            0x05 | 0x0F | 0x85 => "extended",
            0x07 => "NTFS or exFAT",
            0x82 => "Linux swap",
            0x83 => "Linux",
            0x8E => "Linux LVM",
            0xEE => "protective",
            0xEF => "EFI system",
            0xFD => "Linux RAID",
            _ => return None,
        })
    }
}

/// An entry as stored: sectors are relative to its table.
struct Entry {
    os_type: OsType,
    start: u32,
    sectors: u32,
}

/// Reads the table of a disk; `None` if sector 0 has none.
///
/// A boot sector of a file system ends with the same two bytes, so all four entries must be valid, too.
pub fn read(source: &dyn ReadAt) -> io::Result<Option<Table>> {
    let sector = read_sector(source, 0)?;
    let bytes = &sector[ENTRIES..MAGIC];
    // Bit 7 marks an active partition; Linux accepts no table with other bits set.
    let possible = sector[MAGIC..] == [0x55, 0xAA] && bytes.chunks_exact(16).all(|entry| entry[0] & 0x7F == 0);
    let primary = entries(&sector);
    if !possible || primary.iter().all(|entry| !entry.is_used()) {
        return Ok(None);
    }
    let mut table = Table { signature: le32(&sector, DISK_SIGNATURE), partitions: Vec::new(), damage: None };
    for (number, entry) in (1..).zip(&primary).filter(|(_, entry)| entry.is_used()) {
        table.partitions.push(entry.partition(number, 0));
    }
    let mut next = FIRST_LOGICAL;
    for entry in primary.iter().filter(|entry| entry.is_used() && entry.os_type.is_extended()) {
        if let Err(reason) = read_chain(source, entry, &mut next, &mut table.partitions) {
            table.damage = Some(reason);
        }
    }
    Ok(Some(table))
}

/// Adds the logical partitions of an extended one. Terminates: no sector of the chain is read twice.
fn read_chain(
    source: &dyn ReadAt,
    extended: &Entry,
    next: &mut u32,
    partitions: &mut Vec<Partition>,
) -> Result<(), String> {
    let first = u64::from(extended.start);
    let mut seen = BTreeSet::new();
    let mut at = first;
    loop {
        if !seen.insert(at) {
            return Err(format!("loop in the chain of logical partitions at sector {at}"));
        }
        if seen.len() > MAX_CHAIN {
            return Err(format!("more than {MAX_CHAIN} logical partitions"));
        }
        let sector =
            read_sector(source, at).map_err(|_| format!("sector {at} of the logical partitions is missing"))?;
        if sector[MAGIC..] != [0x55, 0xAA] {
            return Err(format!("sector {at} is not a table of logical partitions"));
        }
        let entries = entries(&sector);
        // Only the first two are used; entries 3 and 4 are 0, or of OS/2.
        for entry in entries[..2].iter().filter(|entry| entry.is_used() && !entry.os_type.is_extended()) {
            partitions.push(entry.partition(*next, at));
            *next += 1;
        }
        match entries[..2].iter().find(|entry| entry.is_used() && entry.os_type.is_extended()) {
            Some(link) => at = first + u64::from(link.start),
            None => return Ok(()),
        }
    }
}

fn entries(sector: &[u8; SECTOR_LEN]) -> Vec<Entry> {
    let entry = |at: usize| Entry {
        os_type: OsType(sector[at + 4]),
        start: le32(sector, at + 8),
        sectors: le32(sector, at + 12),
    };
    (0..4).map(|index| entry(ENTRIES + index * 16)).collect()
}

impl Entry {
    fn is_used(&self) -> bool {
        self.os_type.0 != 0 && self.sectors != 0
    }

    /// The partition, with the entry relative to sector `base`. Both are less than 2^34, so that nothing overflows.
    fn partition(&self, number: u32, base: u64) -> Partition {
        let (start, len) = ((base + u64::from(self.start)) * SECTOR, u64::from(self.sectors) * SECTOR);
        Partition { number, os_type: self.os_type, start, len }
    }
}

fn read_sector(source: &dyn ReadAt, sector: u64) -> io::Result<[u8; SECTOR_LEN]> {
    let mut bytes = [0; SECTOR_LEN];
    source.read_exact_at(&mut bytes, sector * SECTOR)?;
    Ok(bytes)
}

fn le32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
