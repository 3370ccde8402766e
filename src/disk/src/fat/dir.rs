//! Directories: entries of 32 bytes, long names in additional entries before the short one (specification, 6 and 7).

use super::{EntryFault, FatError};
use crate::tree::Timestamp;

const ENTRY_LEN: usize = 32;
const READ_ONLY: u8 = 0x01;
const VOLUME_ID: u8 = 0x08;
const DIRECTORY: u8 = 0x10;
/// All of read-only, hidden, system and volume: an entry with a part of a long name.
const LONG_NAME: u8 = 0x0F;
/// Set in the number of the entry with the end of a long name, which comes first.
const LAST_LONG: u8 = 0x40;
/// UTF-16 units in such an entry, and maximum entries for a name of 255.
const UNITS: usize = 13;
const MAX_LONG: u8 = 20;

#[derive(Debug)]
pub(super) struct Entry {
    /// Long name as UTF-8, otherwise the short name in the volume's code page.
    pub(super) name: Vec<u8>,
    pub(super) directory: bool,
    pub(super) read_only: bool,
    pub(super) first_cluster: u32,
    pub(super) len: u32,
    pub(super) mtime: Timestamp,
}

/// The entries of a directory without `.` and `..`, and the volume's label if it is there.
///
/// Cluster numbers are `wide` on FAT32; otherwise the bytes of their high half have another meaning.
pub(super) fn parse(path: &str, bytes: &[u8], wide: bool) -> Result<(Vec<Entry>, Option<Vec<u8>>), FatError> {
    let mut entries = Vec::new();
    let mut volume = None;
    let mut long = LongName::default();
    for raw in bytes.chunks_exact(ENTRY_LEN) {
        let attributes = raw[11];
        match raw[0] {
            0x00 => break,
            0xE5 => long = LongName::default(),
            _ if attributes & 0x3F == LONG_NAME => long.add(raw),
            _ if attributes & VOLUME_ID != 0 => {
                volume = volume.or(label(&raw[..11]));
                long = LongName::default();
            }
            b'.' => long = LongName::default(),
            _ => entries.push(entry(path, raw, std::mem::take(&mut long), wide)?),
        }
    }
    Ok((entries, volume))
}

/// Whether these bytes contain the end of the directory.
pub(super) fn ends(bytes: &[u8]) -> bool {
    bytes.chunks_exact(ENTRY_LEN).any(|raw| raw[0] == 0)
}

/// A label of 11 bytes without its padding; `None` if it is empty or `NO NAME`.
pub(super) fn label(bytes: &[u8]) -> Option<Vec<u8>> {
    let label = trimmed(bytes);
    (!label.is_empty() && label != b"NO NAME").then(|| label.to_vec())
}

fn entry(path: &str, raw: &[u8], long: LongName, wide: bool) -> Result<Entry, FatError> {
    let word = |at: usize| u16::from_le_bytes([raw[at], raw[at + 1]]);
    let name = long.finish(checksum(&raw[..11])).unwrap_or_else(|| short_name(raw));
    if name.is_empty() {
        return Err(FatError::Entry { path: format!("{path}/"), what: EntryFault::NoName });
    }
    let directory = raw[11] & DIRECTORY != 0;
    Ok(Entry {
        name,
        directory,
        read_only: raw[11] & READ_ONLY != 0,
        first_cluster: if wide { u32::from(word(20)) << 16 } else { 0 } | u32::from(word(26)),
        len: if directory { 0 } else { u32::from(word(28)) | u32::from(word(30)) << 16 },
        mtime: time(word(24), word(22)),
    })
}

/// `NAME.EXT` from 8 and 3 padded bytes; bits 3 and 4 of byte 12, Windows NT's, mean lower case.
fn short_name(raw: &[u8]) -> Vec<u8> {
    let mut base = raw[..8].to_vec();
    // 0xE5 marks deleted entries, so a name that starts with it is stored with 0x05.
    if base[0] == 0x05 {
        base[0] = 0xE5;
    }
    let part = |bytes: &[u8], lower: u8| {
        let bytes = trimmed(bytes);
        if raw[12] & lower != 0 { bytes.to_ascii_lowercase() } else { bytes.to_vec() }
    };
    let (base, extension) = (part(&base, 0x08), part(&raw[8..11], 0x10));
    if extension.is_empty() { base } else { [&base[..], b".", &extension].concat() }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1)]
}

/// The checksum that links the parts of a long name to its short name.
fn checksum(short: &[u8]) -> u8 {
    short.iter().fold(0u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte))
}

/// A long name assembled from its parts, the last one first. As in Linux, inconsistent parts are ignored.
#[derive(Default)]
struct LongName {
    units: Vec<u16>,
    /// Number of the previous part; 1 if it is complete.
    number: u8,
    checksum: u8,
}

impl LongName {
    fn add(&mut self, raw: &[u8]) {
        let number = raw[0] & !LAST_LONG;
        if raw[0] & LAST_LONG != 0 && (1..=MAX_LONG).contains(&number) {
            *self = Self { units: vec![0; usize::from(number) * UNITS], number, checksum: raw[13] };
        } else if self.number < 2 || number != self.number - 1 || raw[13] != self.checksum {
            *self = Self::default();
            return;
        }
        self.number = number;
        let parts = raw[1..11].chunks_exact(2).chain(raw[14..26].chunks_exact(2)).chain(raw[28..32].chunks_exact(2));
        let start = usize::from(number - 1) * UNITS;
        for (unit, bytes) in self.units[start..].iter_mut().zip(parts) {
            *unit = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
    }

    /// The name, if it is complete, has the checksum of the short name, and is valid Unicode.
    fn finish(self, checksum: u8) -> Option<Vec<u8>> {
        let len = self.units.iter().position(|unit| *unit == 0).unwrap_or(self.units.len());
        let whole = self.number == 1 && self.checksum == checksum;
        whole.then(|| String::from_utf16(&self.units[..len]).ok()).flatten().map(String::into_bytes)
    }
}

/// Seconds since 1970 of a date and a time: years from 1980, steps of two seconds. Invalid days overflow into the next
/// month.
fn time(date: u16, time: u16) -> Timestamp {
    let (year, month, day) = (i64::from(date >> 9) + 1980, i64::from(date >> 5 & 0xF), i64::from(date & 0x1F));
    // Howard Hinnant's days_from_civil, for years that start in March.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    let seconds = i64::from(time >> 11) * 3600 + i64::from(time >> 5 & 0x3F) * 60 + i64::from(time & 0x1F) * 2;
    Timestamp { secs: days * 86400 + seconds, nanos: 0 }
}
