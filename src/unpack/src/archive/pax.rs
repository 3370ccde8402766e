//! Extended headers of tar archives (POSIX.1-2001, pax, "pax Extended Header"): records of a decimal length, a blank, a key, `=`, a value
//! and a line feed.
//!
//! Stricter than the specification: duplicate keys and keys with NUL bytes are refused, as is everything that programs read differently.

use vmbake_disk::tree::{Metadata, Timestamp};

use super::{PaxFault, show};

/// Key and value of each record.
pub(super) type Records<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The records of a header.
pub(super) fn records(mut bytes: &[u8]) -> Result<Records<'_>, PaxFault> {
    let mut records = Records::new();
    while !bytes.is_empty() {
        let (key, value, rest) = record(bytes).ok_or(PaxFault::Malformed)?;
        if key.is_empty() || key.contains(&0) {
            return Err(PaxFault::Key { key: show(key) });
        }
        if records.iter().any(|(earlier, _)| *earlier == key) {
            return Err(PaxFault::Twice { key: show(key) });
        }
        records.push((key, value));
        bytes = rest;
    }
    Ok(records)
}

/// Key and value of the first record, and what follows it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blank = bytes.iter().position(|byte| *byte == b' ')?;
    let len = usize::try_from(decimal(&bytes[..blank])?).ok()?;
    let (record, rest) = bytes.split_at_checked(len)?;
    let record = record.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((&record[..equals], &record[equals + 1..], rest))
}

/// A number in decimal digits, and nothing else.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.iter().all(u8::is_ascii_digit).then_some(digits)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The id of a user or group. No file can have the last one, with which chown(2) leaves the owner as it is.
pub(super) fn owner(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|id| *id != u32::MAX)
}

/// The value of a record.
pub(super) fn find<'a>(records: &Records<'a>, key: &[u8]) -> Option<&'a [u8]> {
    records.iter().find(|(found, _)| *found == key).map(|(_, value)| *value)
}

/// Applies what the header's fields cannot hold.
pub(super) fn apply(records: &Records<'_>, meta: &mut Metadata) -> Result<(), PaxFault> {
    for (key, value) in records {
        let number = |key: &'static str| decimal(value).ok_or(PaxFault::Value { key });
        let id = |key| {
            let value = number(key)?;
            owner(value).ok_or(PaxFault::Owner { value })
        };
        match *key {
            b"mtime" => meta.mtime = time(value).ok_or(PaxFault::Value { key: "mtime" })?,
            b"uid" => meta.uid = id("uid")?,
            b"gid" => meta.gid = id("gid")?,
            // Where the next header stands must not depend on what only some readers look at.
            b"size" => return Err(PaxFault::Size),
            _ if key.starts_with(b"GNU.sparse.") => return Err(PaxFault::Sparse),
            _ => match key.strip_prefix(b"SCHILY.xattr.") {
                Some([]) => return Err(PaxFault::Attribute),
                Some(name) => drop(meta.xattrs.insert(name.to_vec(), value.to_vec())),
                None => {}
            },
        }
    }
    Ok(())
}

/// Fails if records state an attribute that `meta` does not have, in the form of another program.
pub(super) fn none_lost(records: &Records<'_>, meta: &Metadata) -> Result<(), PaxFault> {
    let attribute = |key: &[u8]| match key {
        b"SCHILY.acl.access" => Some(b"system.posix_acl_access".to_vec()),
        b"SCHILY.acl.default" => Some(b"system.posix_acl_default".to_vec()),
        b"RHT.security.selinux" => Some(b"security.selinux".to_vec()),
        _ => key.strip_prefix(b"LIBARCHIVE.xattr.").map(<[u8]>::to_vec),
    };
    let is_lost = |key: &&[u8]| attribute(key).is_some_and(|name| !meta.xattrs.contains_key(&name));
    match records.iter().map(|(key, _)| *key).find(is_lost) {
        Some(key) => Err(PaxFault::Lost { key: show(key) }),
        None => Ok(()),
    }
}

/// Decimal seconds with an optional fraction; digits after the ninth are cut, towards the past.
fn time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.starts_with('+') || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    let (secs, nanos): (i64, u32) = (whole.parse().ok()?, digits.parse().ok()?);
    // -1.25 is 0.75 s after -2: nanoseconds always count forward.
    match (whole.starts_with('-'), nanos) {
        (true, 1..) => Some(Timestamp { secs: secs.checked_sub(1)?, nanos: 1_000_000_000 - nanos }),
        _ => Some(Timestamp { secs, nanos }),
    }
}
