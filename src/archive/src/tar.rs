//! The tar files of archives: regular files only, each with the canonical header for its name and length.
//!
//! Format: POSIX.1 "ustar Interchange Format", blocks of 512 bytes. Stricter: mode 0644, or 0755 in directories of
//! layers, user and group 0, time 0, no user names; zero padding after each file; two blocks of zeros at the end, and
//! nothing after them. Lengths above 8 GiB are binary, as GNU and BSD write them. A name that does not fit into a
//! header, such as that of a SHA-512, is in a pax extended header with no other records.

use std::path::Path;

use tar::{EntryType, Header};
use vmbake_disk::source::ReadAt;

use super::ArchiveError;

/// Block size in bytes.
pub const BLOCK: u64 = 512;
/// The end of an archive.
pub const END: [u8; 1024] = [0; 1024];
/// Mode of files.
const PLAIN: u32 = 0o644;
/// Mode of executable files of layers.
const EXECUTABLE: u32 = 0o755;
/// Maximum number of members: more than the blobs of any store, to limit memory.
const MAX_MEMBERS: usize = 1 << 18;

/// A regular file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TarMember {
    pub name: String,
    /// Offset of its header.
    pub header_at: u64,
    /// Offset of its content.
    pub at: u64,
    /// Length of its content.
    pub len: u64,
    /// Whether it has mode 0755.
    pub is_executable: bool,
}

/// The header of a regular file.
pub fn header(name: &str, len: u64) -> Result<Vec<u8>, ArchiveError> {
    header_with(name, len, PLAIN)
}

/// The header of an executable regular file.
pub fn executable_header(name: &str, len: u64) -> Result<Vec<u8>, ArchiveError> {
    header_with(name, len, EXECUTABLE)
}

fn header_with(name: &str, len: u64, mode: u32) -> Result<Vec<u8>, ArchiveError> {
    let wrong = || ArchiveError::Name { name: name.to_owned() };
    if !is_plain(name) {
        return Err(wrong());
    }
    let mut header = Header::new_ustar();
    if header.set_path(name).is_ok() {
        return Ok(finish(header, EntryType::Regular, len, mode));
    }
    let record = record(name).filter(|record| record.len() <= END.len() / 2).ok_or_else(wrong)?;
    let mut extended = Header::new_ustar();
    extended.set_path("pax").map_err(|_| wrong())?;
    let extended = finish(extended, EntryType::XHeader, record.len() as u64, PLAIN);
    let mut short = Header::new_ustar();
    // A truncated name for readers without pax support.
    short.as_old_mut().name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    let padding = padding(record.len() as u64);
    Ok([&extended, record.as_bytes(), padding, &finish(short, EntryType::Regular, len, mode)].concat())
}

/// A pax record with a name: its own length in decimal, key and value.
fn record(name: &str) -> Option<String> {
    let body = format!(" path={name}\n");
    let record = |len: usize| format!("{len}{body}");
    (body.len()..body.len() + 8).map(record).find(|text| text.starts_with(&format!("{} ", text.len())))
}

fn finish(mut header: Header, kind: EntryType, len: u64, mode: u32) -> Vec<u8> {
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(len);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// Padding after a file of that length.
pub fn padding(len: u64) -> &'static [u8] {
    // Less than a block.
    let rest = usize::try_from(len.wrapping_neg() % BLOCK).unwrap_or_default();
    &END[..rest]
}

/// Whether a name is a normalized relative path without `..`.
fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    !name.chars().any(|char| char.is_control() || char == '\\') && name.split('/').all(is_part)
}

/// All files of the archive at `path`, whose bytes are `source`. Contents are not read, and executables are refused.
pub fn members(source: &dyn ReadAt, path: &Path) -> Result<Vec<TarMember>, ArchiveError> {
    let members = folder_members(source, path)?;
    match members.iter().find(|member| member.is_executable) {
        Some(member) => Err(refused(
            path,
            &member.name,
            member.header_at,
            "is executable, which is only supported for files of layers",
        )),
        None => Ok(members),
    }
}

/// As [`members`], for a directory, in which files may be executable.
pub fn folder_members(source: &dyn ReadAt, path: &Path) -> Result<Vec<TarMember>, ArchiveError> {
    let (mut members, mut at) = (Vec::new(), 0);
    loop {
        let Some(header) = block(source, path, at)? else { return check_end(source, path, at).map(|()| members) };
        let member = member(source, header, path, at)?;
        let end = member.len.checked_next_multiple_of(BLOCK).and_then(|len| member.at.checked_add(len));
        let Some(end) = end.filter(|end| *end <= source.len()) else {
            let (path, what) = (path.to_owned(), format!("the end of {}, which has {} bytes", member.name, member.len));
            return Err(ArchiveError::Truncated { path, at: source.len(), what });
        };
        let mut behind = vec![0; padding(member.len).len()];
        read(source, path, &mut behind, member.at + member.len)?;
        if behind.iter().any(|byte| *byte != 0) || members.len() == MAX_MEMBERS {
            return Err(refused(path, &member.name, at, "has trailing data, or exceeds the limit of members"));
        }
        members.push(member);
        at = end;
    }
}

/// The header at `at`; `None` for zeros.
fn block(source: &dyn ReadAt, path: &Path, at: u64) -> Result<Option<[u8; 512]>, ArchiveError> {
    if source.len().saturating_sub(at) < BLOCK {
        let what = "the blocks of zeros at its end".to_owned();
        return Err(ArchiveError::Truncated { path: path.to_owned(), at: source.len(), what });
    }
    let mut header = [0; 512];
    read(source, path, &mut header, at)?;
    Ok(header.iter().any(|byte| *byte != 0).then_some(header))
}

fn check_end(source: &dyn ReadAt, path: &Path, at: u64) -> Result<(), ArchiveError> {
    if block(source, path, at + BLOCK)?.is_some() {
        return Err(ArchiveError::Trailing { path: path.to_owned(), at: at + BLOCK });
    }
    let end = at + END.len() as u64;
    if source.len() == end { Ok(()) } else { Err(ArchiveError::Trailing { path: path.to_owned(), at: end }) }
}

/// Parses a header, which must be the canonical one for its name and length.
fn member(source: &dyn ReadAt, first: [u8; 512], path: &Path, at: u64) -> Result<TarMember, ArchiveError> {
    let mut bytes = first.to_vec();
    let mut long = None;
    if Header::from_byte_slice(&first).entry_type() == EntryType::XHeader {
        for number in 1..3 {
            bytes.extend(block(source, path, at + number * BLOCK)?.unwrap_or([0; 512]));
        }
        let record = bytes.get(512..1024).map(String::from_utf8_lossy).unwrap_or_default();
        let name = record.split_once('\n').and_then(|(record, _)| record.split_once(" path="));
        long = name.map(|(_, name)| name.to_owned());
    }
    let found = Header::from_byte_slice(bytes.last_chunk::<512>().unwrap_or(&first));
    let name = long.clone().unwrap_or_else(|| String::from_utf8_lossy(&found.path_bytes()).into_owned());
    let kind = if long.is_some() { found.entry_type() } else { Header::from_byte_slice(&first).entry_type() };
    if let Some(sort) = other_sort(kind) {
        return Err(refused(path, &name, at, &format!("{sort}, but only regular files are supported")));
    }
    let len = found.entry_size().map_err(|_| refused(path, &name, at, "has no valid length"))?;
    let is_executable = found.mode().is_ok_and(|mode| mode == EXECUTABLE);
    match header_with(&name, len, if is_executable { EXECUTABLE } else { PLAIN }) {
        Err(_) => Err(refused(path, &name, at, "has an unsafe name")),
        Ok(expected) if expected != bytes => Err(refused(path, &name, at, "has a header that vmbake would not write")),
        Ok(_) => Ok(TarMember { name, header_at: at, at: at + bytes.len() as u64, len, is_executable }),
    }
}

/// The type of a member that is not a regular file.
fn other_sort(kind: EntryType) -> Option<&'static str> {
    match kind {
        EntryType::Regular => None,
        EntryType::Link => Some("is a hard link"),
        EntryType::Symlink => Some("is a symbolic link"),
        EntryType::Directory => Some("is a directory"),
        EntryType::Char | EntryType::Block => Some("is a device"),
        EntryType::Fifo => Some("is a named pipe"),
        EntryType::XHeader | EntryType::XGlobalHeader => Some("is a pax extended header"),
        EntryType::GNULongName | EntryType::GNULongLink => Some("is a GNU tar long name"),
        EntryType::GNUSparse => Some("is a GNU tar sparse file"),
        _ => Some("has an unknown type"),
    }
}

fn refused(path: &Path, name: &str, at: u64, what: &str) -> ArchiveError {
    ArchiveError::Member { path: path.to_owned(), name: name.to_owned(), at, what: what.to_owned() }
}

fn read(source: &dyn ReadAt, path: &Path, buffer: &mut [u8], at: u64) -> Result<(), ArchiveError> {
    source.read_exact_at(buffer, at).map_err(|source| ArchiveError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_whatever_the_length_and_the_name() {
        let long = format!("blobs/sha512/{}", "a".repeat(128));
        for (name, header_len) in [("blobs/sha256/0", 512), (&*format!("{}/b", "a".repeat(110)), 512), (&long, 1536)] {
            for len in [0, 1, 511, 512, 8 << 30, (8 << 30) - 1, 1 << 50] {
                let mut bytes = vec![0; 512];
                bytes.extend(header(name, len).unwrap());
                let first = *bytes[512..].first_chunk().unwrap();
                let member = member(&bytes, first, Path::new("a"), 512).unwrap();
                let at = 512 + header_len;
                let expected = TarMember { name: name.to_owned(), header_at: 512, at, len, is_executable: false };
                assert_eq!(member, expected);
                assert_eq!((len + padding(len).len() as u64) % BLOCK, 0);
            }
        }
        for name in ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\nb", &"a".repeat(600)] {
            assert!(header(name, 0).is_err(), "{name:?}");
        }
    }

    #[test]
    fn long_names_are_read_by_others_and_in_one_form_only() {
        let name = format!("blobs/sha512/{}", "a".repeat(128));
        let archive = [&header(&name, 5).unwrap()[..], b"hello", padding(5), &END].concat();
        let mut read = tar::Archive::new(&archive[..]);
        let names: Vec<_> = read.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        assert_eq!(names, [Path::new(&name)]);
        assert_eq!(members(&archive, Path::new("a")).unwrap()[0].name, name);
        let changes: [(usize, &[u8]); 5] =
            [(512, b"152"), (520, b"../"), (512 + 4, b"size="), (1024, b"c"), (512 + 300, b"x")];
        for (at, bytes) in changes {
            let mut archive = archive.clone();
            archive[at..at + bytes.len()].copy_from_slice(bytes);
            assert!(matches!(members(&archive, Path::new("a")), Err(ArchiveError::Member { .. })), "{at}");
        }
    }
}
