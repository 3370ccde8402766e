//! Headers of members: a ustar header, after an extended header with pax records if its fields do not suffice.
//!
//! Numbers are octal ASCII digits with a NUL byte at the end. Offsets of fields are those of `struct posix_header` (GNU
//! tar manual, "Basic Tar Format").

use super::{BLOCK_LEN, TarRefusal, acl};
use crate::tree::{Inode, Kind, Timestamp};

/// Name of an extended header, for readers that extract it as a file.
const EXTENDED: &[u8] = b"PaxHeaders";
/// The owner in a field if its number is in a record: without privileges, for readers that ignore records.
const UNPRIVILEGED: u64 = 65534;
/// Length of the fields `name` and `linkname`.
const NAME_LEN: usize = 100;

/// The largest number in a field of 8 bytes.
const MAX_8: u64 = (1 << 21) - 1;
/// The largest number in a field of 12 bytes.
const MAX_12: u64 = (1 << 33) - 1;

/// A member, without its content.
pub(super) struct Header<'a> {
    name: &'a [u8],
    inode: &'a Inode,
    /// `typeflag`.
    kind: u8,
    /// `linkname`.
    target: &'a [u8],
    /// Length of the content.
    size: u64,
    /// `devmajor` and `devminor`.
    device: [u32; 2],
}

impl<'a> Header<'a> {
    /// The header of a member; with `first`, it is a hard link to that member.
    pub(super) fn new(name: &'a [u8], inode: &'a Inode, first: Option<&'a [u8]>) -> Result<Self, TarRefusal> {
        let plain = |kind| Self { name, inode, kind, target: b"", size: 0, device: [0; 2] };
        Ok(match (&inode.kind, first) {
            (_, Some(target)) => Self { target, ..plain(b'1') },
            (Kind::File(map), _) => Self { size: map.len(), ..plain(b'0') },
            (Kind::Symlink(target), _) => Self { target, ..plain(b'2') },
            (Kind::CharDevice { major, minor }, _) => Self { device: device(*major, *minor)?, ..plain(b'3') },
            (Kind::BlockDevice { major, minor }, _) => Self { device: device(*major, *minor)?, ..plain(b'4') },
            (Kind::Directory(_), _) => plain(b'5'),
            (Kind::Fifo, _) => plain(b'6'),
            (Kind::Socket, _) => return Err(TarRefusal::Socket),
        })
    }

    /// Its blocks.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, TarRefusal> {
        let records = self.records()?;
        let mut bytes = Vec::new();
        if !records.is_empty() {
            bytes.extend_from_slice(&Ustar::new(EXTENDED, b'x', 0o644).size(records.len() as u64).finish());
            bytes.extend_from_slice(&records);
            bytes.resize(bytes.len().next_multiple_of(BLOCK_LEN), 0);
        }
        let meta = &self.inode.meta;
        let or_unprivileged = |id: u32| Some(u64::from(id)).filter(|id| *id <= MAX_8).unwrap_or(UNPRIVILEGED);
        let mut ustar = Ustar::new(self.name, self.kind, meta.mode.into());
        ustar.number(0x6c, 8, or_unprivileged(meta.uid));
        ustar.number(0x74, 8, or_unprivileged(meta.gid));
        ustar.number(0x88, 12, u64::try_from(meta.mtime.secs).unwrap_or(0).min(MAX_12));
        ustar.bytes(0x9d, NAME_LEN, self.target);
        ustar.number(0x149, 8, self.device[0].into());
        ustar.number(0x151, 8, self.device[1].into());
        bytes.extend_from_slice(&ustar.size(if self.size > MAX_12 { 0 } else { self.size }).finish());
        Ok(bytes)
    }

    /// What the fields cannot hold.
    fn records(&self) -> Result<Vec<u8>, TarRefusal> {
        let (meta, mut records) = (&self.inode.meta, Vec::new());
        for (key, text) in [("path", self.name), ("linkpath", self.target)] {
            if std::str::from_utf8(text).is_err() {
                return Err(TarRefusal::Name);
            }
            if text.len() > NAME_LEN || !text.is_ascii() {
                push(&mut records, key, text);
            }
        }
        let numbers = [("size", self.size, MAX_12), ("uid", meta.uid.into(), MAX_8), ("gid", meta.gid.into(), MAX_8)];
        for (key, value, max) in numbers {
            if value > max {
                push(&mut records, key, value.to_string().as_bytes());
            }
        }
        let Timestamp { secs, nanos } = meta.mtime;
        if nanos > 0 || !u64::try_from(secs).is_ok_and(|secs| secs <= MAX_12) {
            push(&mut records, "mtime", seconds(meta.mtime).as_bytes());
        }
        self.push_attributes(&mut records)?;
        Ok(records)
    }

    fn push_attributes(&self, records: &mut Vec<u8>) -> Result<(), TarRefusal> {
        for (name, value) in &self.inode.meta.xattrs {
            let shown = || String::from_utf8_lossy(name).into_owned();
            // A key ends at the first `=`; GNU tar replaces sequences that start with `%`.
            let text = std::str::from_utf8(name).ok().filter(|text| !text.contains(['=', '%', '\0']));
            let text = text.ok_or_else(|| TarRefusal::XattrName { name: shown() })?;
            push(records, &format!("SCHILY.xattr.{text}"), value);
            if let Some(key) = acl::record(text) {
                let list = acl::text(value).ok_or_else(|| TarRefusal::Acl { name: shown() })?;
                push(records, key, list.as_bytes());
            }
        }
        Ok(())
    }
}

fn device(major: u32, minor: u32) -> Result<[u32; 2], TarRefusal> {
    let fits = |number: u32| u64::from(number) <= MAX_8;
    if fits(major) && fits(minor) { Ok([major, minor]) } else { Err(TarRefusal::Device { major, minor }) }
}

/// Appends a record: its own length in decimal, a blank, key, `=`, value and a line feed.
fn push(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut len = rest + 1;
    while rest + len.to_string().len() > len {
        len += 1;
    }
    records.extend_from_slice(format!("{len} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// Decimal seconds; in the sign and magnitude of -0.5, a time counts back from 1970.
fn seconds(time: Timestamp) -> String {
    let (sign, secs, nanos) = match (time.secs, time.nanos) {
        (secs @ ..0, 0) => ("-", secs.unsigned_abs(), 0),
        (secs @ ..0, nanos) => ("-", secs.unsigned_abs() - 1, 1_000_000_000_u32.saturating_sub(nanos)),
        (secs, nanos) => ("", secs.unsigned_abs(), nanos),
    };
    let text = format!("{sign}{secs}.{nanos:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A ustar header under construction.
struct Ustar([u8; BLOCK_LEN]);

impl Ustar {
    /// A header with owner, times and length 0.
    fn new(name: &[u8], kind: u8, mode: u64) -> Self {
        let mut header = Self([0; BLOCK_LEN]);
        header.bytes(0x00, NAME_LEN, name);
        header.number(0x64, 8, mode);
        for (offset, len) in [(0x6c, 8), (0x74, 8), (0x7c, 12), (0x88, 12), (0x149, 8), (0x151, 8)] {
            header.number(offset, len, 0);
        }
        header.bytes(0x9c, 1, &[kind]);
        header.bytes(0x101, 8, b"ustar\x0000");
        header
    }

    /// Sets the length of the content.
    fn size(mut self, size: u64) -> Self {
        self.number(0x7c, 12, size);
        self
    }

    /// Sets a field, which ends before the last byte: longer text is cut.
    fn bytes(&mut self, offset: usize, len: usize, text: &[u8]) {
        self.0[offset..offset + len].iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    }

    fn number(&mut self, offset: usize, len: usize, value: u64) {
        let digits = len - 1;
        self.bytes(offset, digits, format!("{value:0digits$o}").as_bytes());
    }

    /// Adds the checksum: the sum of all bytes, with blanks in its field.
    fn finish(mut self) -> [u8; BLOCK_LEN] {
        self.bytes(0x94, 8, b"        ");
        let sum: u32 = self.0.iter().map(|byte| u32::from(*byte)).sum();
        self.bytes(0x94, 8, format!("{sum:06o}\0 ").as_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for (len, expected) in [(1, "6 a=x\n"), (4, "9 a=xxxx\n"), (5, "11 a=xxxxx\n"), (93, "99 a="), (94, "101 a=")] {
            let mut records = Vec::new();
            push(&mut records, "a", &b"x".repeat(len));
            let text = String::from_utf8(records).unwrap();
            assert!(text.starts_with(expected), "{text}");
            assert_eq!(text.split(' ').next().unwrap(), text.len().to_string());
        }
    }

    #[test]
    fn times_before_1970_count_backwards() {
        for (secs, nanos, expected) in [
            (0, 1, "0.000000001"),
            (1_700_000_000, 123_000_000, "1700000000.123"),
            (-1, 500_000_000, "-0.5"),
            (-2, 250_000_000, "-1.75"),
            (-2, 0, "-2"),
            (i64::MIN, 0, "-9223372036854775808"),
            (1 << 33, 0, "8589934592"),
        ] {
            assert_eq!(seconds(Timestamp { secs, nanos }), expected);
        }
    }
}
