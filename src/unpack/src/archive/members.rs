//! Reads the members of an uncompressed archive sequentially.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use tar::EntryType;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::tree::{Metadata, Timestamp, components};

use super::fields;
use super::headers::Headers;
use super::names::Names;
use super::pax::{self, Records};
use super::{ArchiveError, ArchiveLimits, Member, MemberFault, MemberKind, refused, show};

/// Longest path, and longest target of a symbolic link, on Linux, in bytes.
pub(super) const MAX_PATH: usize = 4095;

/// Reads all members of the uncompressed archive `file`.
pub fn read(file: &File, limits: &ArchiveLimits) -> Result<Vec<Member>, ArchiveError> {
    let extended = Headers::check(file, limits.members)?;
    let mut input = file.try_clone().map_err(|source| ArchiveError::Read { offset: 0, source })?;
    input.seek(SeekFrom::Start(0)).map_err(|source| ArchiveError::Read { offset: 0, source })?;
    let len = input.metadata().map_err(|source| ArchiveError::Read { offset: 0, source })?.len();
    let mut archive = tar::Archive::new(input);
    let mut names = Names::default();
    let mut entries = Vec::new();
    let mut offset = 0;
    for member in archive.entries_with_seek().map_err(|source| ArchiveError::Read { offset, source })? {
        let mut member = member.map_err(|source| ArchiveError::Read { offset, source })?;
        offset = member.raw_file_position();
        if member.header().entry_type() == EntryType::XGlobalHeader {
            check_global(&mut member)?;
            continue;
        }
        let records = extended.read(file, member.raw_header_position());
        let records = records.map_err(|source| ArchiveError::Read { offset, source })?;
        let entry = convert(&member, records.as_deref(), limits)?;
        if let MemberKind::File { offset, len: size } = entry.kind
            && offset.checked_add(size).is_none_or(|end| end > len)
        {
            return Err(ArchiveError::Truncated { path: show(&entry.path), len });
        }
        names.check(&entry, limits)?;
        entries.push(entry);
    }
    if extended.end.is_some_and(|end| end != len) {
        return Err(ArchiveError::Truncated {
            path: entries.last().map(|entry| show(&entry.path)).unwrap_or_default(),
            len,
        });
    }
    Ok(entries)
}

fn convert(
    member: &tar::Entry<'_, File>,
    records: Option<&[u8]>,
    limits: &ArchiveLimits,
) -> Result<Member, ArchiveError> {
    let header = member.header();
    // The library finds records in their values too: it is not asked where there are any.
    let (raw, target) = match records {
        Some(_) => (header.path_bytes(), header.link_name_bytes()),
        None => (member.path_bytes(), member.link_name_bytes()),
    };
    let bad = |fault| refused(&raw, MemberFault::Message(message!("bad extended header: {fault}")));
    let records = records.map_or(Ok(Records::new()), pax::records).map_err(bad)?;
    let raw = pax::find(&records, b"path").map_or_else(|| raw.to_vec(), <[u8]>::to_vec);
    let target = pax::find(&records, b"linkpath").or(target.as_deref()).unwrap_or_default();
    let mut meta = metadata(header, &raw)?;
    pax::apply(&records, &mut meta).map_err(|fault| refused(&raw, fault))?;
    if limits.root {
        pax::none_lost(&records, &meta).map_err(|fault| refused(&raw, fault))?;
    }
    if raw.is_empty() {
        return Err(refused(&raw, MemberFault::NoName));
    }
    let path = limits.clean(&raw)?;
    let kind = kind(member, &raw, target, limits)?;
    if matches!(kind, MemberKind::Symlink(_)) {
        // As on Linux, whatever the archive says.
        meta.mode = 0o777;
    }
    let owner = [(&b"uname"[..], header.username_bytes()), (b"gname", header.groupname_bytes())]
        .map(|(key, field)| pax::find(&records, key).or(field).unwrap_or_default().to_vec());
    let is_plain = raw.strip_suffix(b"/").unwrap_or(&raw) == path;
    Ok(Member { path, meta, kind, owner, is_plain })
}

/// What the fields of a header say.
fn metadata(header: &tar::Header, raw: &[u8]) -> Result<Metadata, ArchiveError> {
    let bytes = header.as_bytes();
    // Only `ustar` and `00` together announce a prefix of the name.
    if bytes[257..263] == *b"ustar\0" && bytes[263..265] != *b"00" {
        return Err(refused(raw, MemberFault::Message(Message::new("bad header: unknown version of ustar"))));
    }
    Ok(Metadata {
        mode: u16::try_from(number(header, fields::MODE, "mode", raw)? & 0o7777).unwrap_or(0),
        uid: id(number(header, fields::UID, "uid", raw)?, raw)?,
        gid: id(number(header, fields::GID, "gid", raw)?, raw)?,
        mtime: Timestamp { secs: number(header, fields::MTIME, "mtime", raw)?, nanos: 0 },
        xattrs: BTreeMap::new(),
    })
}

fn number(header: &tar::Header, field: Range<usize>, name: &'static str, raw: &[u8]) -> Result<i64, ArchiveError> {
    let found = &header.as_bytes()[field];
    let bad =
        || refused(raw, MemberFault::Message(message!("bad header: {name} is {:?}, expected a number", show(found))));
    fields::number(found).ok_or_else(bad)
}

fn kind(
    member: &tar::Entry<'_, File>,
    raw: &[u8],
    target: &[u8],
    limits: &ArchiveLimits,
) -> Result<MemberKind, ArchiveError> {
    let (header, devices) = (member.header(), limits.devices);
    let link = || {
        if target.is_empty() {
            Err(refused(raw, MemberFault::Message(Message::new("link without target"))))
        } else {
            Ok(target)
        }
    };
    let device = || -> Result<(u32, u32), ArchiveError> {
        let major = number(header, fields::MAJOR, "major", raw)?;
        let minor = number(header, fields::MINOR, "minor", raw)?;
        let valid = (0..1 << 12).contains(&major) && (0..1 << 20).contains(&minor);
        let checked = u32::try_from(major).ok().zip(u32::try_from(minor).ok()).filter(|_| valid);
        checked.ok_or_else(|| refused(raw, MemberFault::Message(message!("device {major}:{minor} is out of range"))))
    };
    let kind = match header.entry_type() {
        // A directory in archives from before there was a type for it.
        EntryType::Regular | EntryType::Continuous if raw.ends_with(b"/") => MemberKind::Directory,
        EntryType::Regular | EntryType::Continuous => {
            MemberKind::File { offset: member.raw_file_position(), len: member.size() }
        }
        EntryType::Directory => MemberKind::Directory,
        EntryType::Symlink => MemberKind::Symlink(check_target(link()?, raw)?),
        EntryType::Link => MemberKind::HardLink(limits.clean(link()?)?),
        EntryType::Char if devices => device().map(|(major, minor)| MemberKind::CharDevice(major, minor))?,
        EntryType::Block if devices => device().map(|(major, minor)| MemberKind::BlockDevice(major, minor))?,
        EntryType::Fifo if devices => MemberKind::Fifo,
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            return Err(refused(raw, MemberFault::Message(Message::new("devices and named pipes are not supported"))));
        }
        EntryType::GNUSparse => return Err(refused(raw, MemberFault::Sparse)),
        other => {
            return Err(refused(raw, MemberFault::Message(message!("unknown type {:?}", char::from(other.as_byte())))));
        }
    };
    let size = number(header, fields::SIZE, "size", raw)?;
    if u64::try_from(size) != Ok(member.size()) {
        return Err(refused(raw, MemberFault::Message(message!("bad header: size is {size} and {}", member.size()))));
    }
    // Some programs skip it, and others take it for the next member.
    if size != 0 && !matches!(kind, MemberKind::File { .. }) {
        return Err(refused(raw, MemberFault::Content { size }));
    }
    Ok(kind)
}

pub(super) fn check_target(target: &[u8], path: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let valid = target.len() <= MAX_PATH && !target.contains(&0);
    if valid {
        Ok(target.to_vec())
    } else {
        Err(refused(path, MemberFault::Message(Message::new("target is too long or contains a NUL byte"))))
    }
}

fn id(value: i64, path: &[u8]) -> Result<u32, ArchiveError> {
    let owner = u64::try_from(value).ok().and_then(pax::owner);
    owner.ok_or_else(|| refused(path, MemberFault::Message(message!("owner {value} is out of range"))))
}

/// A global header, such as `git archive` writes, may only comment: what it said of all members, not every reader would know.
fn check_global(member: &mut tar::Entry<'_, File>) -> Result<(), ArchiveError> {
    let path = member.header().path_bytes().into_owned();
    let bad = |error: io::Error| refused(&path, MemberFault::Message(message!("bad global header: {error}")));
    let mut content = Vec::new();
    member.read_to_end(&mut content).map_err(bad)?;
    // What was said of the next member would be lost: the reader takes it to be said of this header.
    let named = member.path_bytes() != path || member.link_name_bytes() != member.header().link_name_bytes();
    if named || member.pax_extensions().map_err(bad)?.is_some_and(|mut records| records.next().is_some()) {
        return Err(refused(
            &path,
            MemberFault::Message(Message::new("global header is between a member and its extended header")),
        ));
    }
    let records = pax::records(&content)
        .map_err(|fault| refused(&path, MemberFault::Message(message!("bad global header: {fault}"))))?;
    for (key, _) in records {
        if key != b"comment" {
            return Err(refused(
                &path,
                MemberFault::Message(message!("global header with {:?} is not supported", show(key))),
            ));
        }
    }
    Ok(())
}

impl ArchiveLimits {
    /// As [`clean`]; in a root file system, an absolute name is relative to its root.
    fn clean(&self, name: &[u8]) -> Result<Vec<u8>, ArchiveError> {
        let slashes = name.iter().take_while(|byte| self.root && **byte == b'/').count();
        clean(&name[slashes..])
    }
}

/// A member's name as a path below the root of the tree.
pub(super) fn clean(name: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    // Looking up each directory above a name of a million letters would take hours.
    if name.len() > MAX_PATH {
        return Err(refused(
            &name[..MAX_PATH],
            MemberFault::Message(message!("name is longer than {} bytes", MAX_PATH)),
        ));
    }
    if name.starts_with(b"/") {
        return Err(refused(name, MemberFault::Message(Message::new("name is absolute"))));
    }
    if name.contains(&0) || components(name).any(|part| part == b"..") {
        return Err(refused(name, MemberFault::Message(Message::new("name contains `..` or a NUL byte"))));
    }
    Ok(components(name).collect::<Vec<_>>().join(&b'/'))
}
