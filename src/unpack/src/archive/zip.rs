//! Converts a zip file (APPNOTE.TXT 6.3.10) to a tar archive of its members, in the order of the central directory.
//!
//! Stricter than unzip: there are no bytes before the first member or after the end, the local header of a member has the same name as the
//! central directory, and nothing is encrypted. Members are stored or deflated. Without Unix modes, files get 0644 and directories 0755.
//! A local time, which has no time zone, is taken as UTC.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rawzip::time::{UtcDateTime, ZipDateTimeKind};
use rawzip::{
    CompressionMethod, CreatorSystem, FileReader, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, RECOMMENDED_BUFFER_SIZE,
    ZipArchive, ZipFileHeaderRecord,
};
use tar::{Builder, EntryType, Header};

use super::compress::no_spool;
use super::members::{MAX_PATH, check_target, clean};
use super::{ArchiveError, ArchiveLimits, MemberFault, refused, show};
use vmbake_common::message;
use vmbake_common::message::Message;

/// Type bits of a mode, and those of the supported types (inode(7)).
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
/// The attribute of directories on FAT file systems.
const DOS_DIRECTORY: u32 = 0x10;
/// General purpose flag of names that are UTF-8.
const UTF8: u16 = 1 << 11;
/// The header ID of the Info-ZIP Unicode Path extra field.
const UNICODE_PATH: u16 = 0x7075;

/// Writes the members of the zip file `file` into `output`.
pub(super) fn to_tar(file: &File, limits: &ArchiveLimits, output: &File) -> Result<(), ArchiveError> {
    let read = |source| ArchiveError::Read { offset: 0, source };
    let len = file.metadata().map_err(read)?.len();
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file.try_clone().map_err(read)?, &mut buffer).map_err(damaged)?;
    let expect = |what, found, expected| match found == expected {
        true => Ok(()),
        false => Err(ArchiveError::Message(message!("zip file: {what} is {found}, expected {expected}"))),
    };
    expect("the end offset", archive.end_offset(), len)?;
    let (mut count, mut total, mut first) = (0, 0_u64, archive.directory_offset());
    let mut tar = Builder::new(output);
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        count += 1;
        if count > limits.members as u64 {
            return Err(ArchiveError::TooMany { limit: limits.members });
        }
        first = first.min(entry.local_header_offset());
        // The stated size of a member is compared with its content when that is read.
        total = total.saturating_add(entry.uncompressed_size_hint());
        let limit = limits.bytes(len);
        if total > limit {
            return Err(ArchiveError::Bomb { len, limit });
        }
        append(&archive, &entry, &mut tar)?;
    }
    expect("the number of members", count, archive.entries_hint())?;
    expect("the offset of the first local header", first, 0)?;
    tar.finish().map_err(no_spool)
}

fn damaged(source: rawzip::Error) -> ArchiveError {
    ArchiveError::Zip { source }
}

/// Writes one member, with its content.
fn append(
    archive: &ZipArchive<FileReader>,
    entry: &ZipFileHeaderRecord<'_>,
    tar: &mut Builder<&File>,
) -> Result<(), ArchiveError> {
    let raw = entry.file_path();
    let raw = raw.as_ref();
    let refuse = |fault: MemberFault| refused(raw, fault);
    let path = clean(raw)?;
    let mode = mode(entry).map_err(refuse)?;
    if raw.contains(&b'\\') {
        return Err(refuse(MemberFault::Message(Message::new("name contains a backslash"))));
    }
    check_encoding(entry, raw).map_err(refuse)?;
    if entry.flags().is_encrypted() {
        return Err(refuse(MemberFault::Message(Message::new("is encrypted"))));
    }
    let is_directory = mode & TYPE == DIRECTORY;
    match (path.is_empty(), is_directory) {
        (true, true) => return Ok(()),
        (true, false) => return Err(refuse(MemberFault::NoName)),
        _ => {}
    }
    let mut content = Content { inner: content(archive, entry)?, failed: false };
    let mut header = Header::new_gnu();
    header.set_mode(mode & 0o7777);
    header.set_mtime(seconds(&entry.last_modified()));
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    let name = Path::new(OsStr::from_bytes(&path));
    let size = entry.uncompressed_size_hint();
    let written = match mode & TYPE {
        DIRECTORY if size != 0 => {
            return Err(refuse(MemberFault::Content { size: size.try_into().unwrap_or(i64::MAX) }));
        }
        DIRECTORY => {
            header.set_entry_type(EntryType::Directory);
            tar.append_data(&mut header, name, io::empty())
        }
        SYMLINK => {
            header.set_entry_type(EntryType::Symlink);
            let target = target(&mut content).map_err(|source| unread(raw, source))?;
            let target = check_target(&target, raw)?;
            // Both in one extended header: a separate name would need a second one where it is long.
            tar.append_pax_extensions([("path", path.as_slice()), ("linkpath", target.as_slice())])
                .and_then(|()| tar.append_data(&mut header, "symlink", io::empty()))
        }
        _ => {
            header.set_size(size);
            tar.append_data(&mut header, name, &mut content)
        }
    };
    written.map_err(|source| if content.failed { unread(raw, source) } else { no_spool(source) })
}

/// Fails where readers take the name for different ones: neither ASCII nor marked as UTF-8 (APPNOTE 4.4.4, bit 11), or with another one
/// in its Info-ZIP Unicode Path extra field (APPNOTE 4.6.9).
fn check_encoding(entry: &ZipFileHeaderRecord<'_>, raw: &[u8]) -> Result<(), MemberFault> {
    let mut unicode = entry.extra_fields().filter(|(id, _)| id.as_u16() == UNICODE_PATH);
    // A version and a CRC-32 come before the name.
    let stated = unicode.next().map(|(_, field)| field.get(5..).unwrap_or_default());
    match stated {
        Some(name) if name == raw => Ok(()),
        Some(name) => Err(MemberFault::OtherName { name: show(name) }),
        None if raw.is_ascii() || entry.flags().bits() & UTF8 != 0 => Ok(()),
        None => Err(MemberFault::Message(Message::new("name is neither ASCII nor marked as UTF-8"))),
    }
}

/// Type and permissions of a member.
fn mode(entry: &ZipFileHeaderRecord<'_>) -> Result<u32, MemberFault> {
    let is_unix = entry.version_made_by().creator_system() == CreatorSystem::UNIX;
    let stated = if is_unix { entry.external_attributes() >> 16 } else { 0 };
    match (stated & TYPE, entry.is_dir()) {
        _ if stated == 0 && !entry.is_dir() && entry.external_attributes() & DOS_DIRECTORY != 0 => {
            Err(MemberFault::Message(Message::new("is marked as a directory, but its name does not end with a slash")))
        }
        _ if stated == 0 => Ok(if entry.is_dir() { DIRECTORY | 0o755 } else { REGULAR | 0o644 }),
        (DIRECTORY, _) | (0, true) => Ok(DIRECTORY | stated & 0o7777),
        (REGULAR | 0, false) => Ok(REGULAR | stated & 0o7777),
        (SYMLINK, false) => Ok(stated),
        _ => Err(MemberFault::Message(message!("is not a file, directory or symbolic link: mode {stated:o}"))),
    }
}

/// The content of a member. At its end, length and CRC-32 are compared with the central directory.
fn content<'a>(
    archive: &'a ZipArchive<FileReader>,
    entry: &ZipFileHeaderRecord<'_>,
) -> Result<impl Read + 'a, ArchiveError> {
    let raw = entry.file_path();
    let local = archive.get_entry(entry.wayfinder()).map_err(damaged)?;
    let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let header = local.local_header(&mut buffer).map_err(damaged)?;
    if header.file_path().as_ref() != raw.as_ref() {
        return Err(refused(raw.as_ref(), MemberFault::OtherName { name: show(header.file_path().as_ref()) }));
    }
    let packed = local.reader();
    let plain: Box<dyn Read + 'a> = match entry.compression_method() {
        CompressionMethod::STORE => Box::new(packed),
        CompressionMethod::DEFLATE => Box::new(flate2::read::DeflateDecoder::new(packed)),
        other => {
            return Err(refused(
                raw.as_ref(),
                MemberFault::Message(message!("zip compression method {} is not supported", other.as_u16())),
            ));
        }
    };
    // One extra byte is enough to detect a longer content.
    Ok(local.verifying_reader(plain.take(entry.uncompressed_size_hint().saturating_add(1))))
}

/// The target of a symbolic link, and a byte more where it is too long.
fn target(content: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut target = Vec::new();
    content.take(MAX_PATH as u64 + 1).read_to_end(&mut target)?;
    Ok(target)
}

fn unread(path: &[u8], source: io::Error) -> ArchiveError {
    refused(path, MemberFault::Message(message!("cannot decompress: {source}")))
}

/// Seconds since 1970, and never less.
fn seconds(time: &ZipDateTimeKind) -> u64 {
    let utc = match time {
        ZipDateTimeKind::Utc(utc) => Some(*utc),
        ZipDateTimeKind::Local(at) => {
            UtcDateTime::from_components(at.year(), at.month(), at.day(), at.hour(), at.minute(), at.second(), 0)
        }
    };
    utc.and_then(|utc| u64::try_from(utc.to_unix()).ok()).unwrap_or(0)
}

/// Records whether reading failed: `tar` does not distinguish it from a write error.
struct Content<R> {
    inner: R,
    failed: bool,
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        self.failed |= read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}
