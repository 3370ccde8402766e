//! Tar archives (POSIX.1-2001 pax, ustar, GNU): what enters is an uncompressed archive in a file, what leaves are its
//! entries, whose contents are ranges of that file.
//!
//! Stricter than tar: names may not be absolute nor have `..`, nothing may be placed below a symbolic link of the same
//! archive, hard links must point to files of the same archive, no name may come twice, and sparse members are refused, as
//! are members whose size stands only in a pax record: those of 8 GiB and more. What programs read differently is refused too:
//! content of what is no file, names both of GNU tar's kind and of pax', a last block that is not whole.

mod fields;
mod pax;
mod headers;
pub(super) mod compress;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use tar::EntryType;
use vmbake_disk::tree::{Metadata, Timestamp, components};

use crate::digest::Digest;
use crate::supply::store::{DecodedForm, Store};
use headers::Headers;
use pax::Records;

/// Longest path, and longest target of a symbolic link, on Linux, in bytes.
const MAX_PATH: usize = 4095;

/// Most directories within each other.
const MAX_DEPTH: usize = 128;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum ArchiveError {
    #[error("cannot read at byte {offset}")]
    Read { offset: u64, source: io::Error },
    #[error("cannot write a temporary file in {dir}")]
    Spool { dir: PathBuf, source: io::Error },
    #[error("cannot decompress after {offset} bytes of output")]
    Decompress { offset: u64, source: io::Error },
    #[error("unknown compression {format:?}")]
    Compression { format: String },
    #[error("{len} bytes become more than {limit}: refused as a decompression bomb")]
    Bomb { len: u64, limit: u64 },
    #[error("more than {limit} members")]
    TooMany { limit: usize },
    #[error("member {path:?}: {reason}")]
    Refused { path: String, reason: String },
    #[error("ends at byte {len}, inside member {path:?}")]
    Truncated { path: String, len: u64 },
    #[error("has no member {path:?}")]
    NoMember { path: String },
}

/// What an archive may contain.
#[derive(Clone, Debug)]
pub struct ArchiveLimits {
    /// Most members.
    pub members: usize,
    /// Bytes that any archive may decompress to, however small it is.
    pub floor: u64,
    /// How many bytes each compressed byte may become, above that.
    pub ratio: u64,
    /// Whether devices, pipes and sockets are taken.
    pub devices: bool,
}

impl ArchiveLimits {
    /// For artifacts: real packages stay far below a ratio of 50, a bomb of zeros in gzip has 1,000.
    pub const ARTIFACT: Self = Self { members: 1_000_000, floor: 64 << 20, ratio: 200, devices: false };

    /// For a whole root file system.
    pub const ROOT: Self = Self { members: 4_000_000, devices: true, ..Self::ARTIFACT };

    fn bytes(&self, compressed: u64) -> u64 {
        compressed.saturating_mul(self.ratio).max(self.floor)
    }
}

/// One member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Path without leading slash and `./`, without trailing slash; empty for the archive's own root.
    pub path: Vec<u8>,
    /// Owner, permissions, time and extended attributes.
    pub meta: Metadata,
    /// What it is.
    pub kind: MemberKind,
}

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A directory.
    Directory,
    /// A regular file: `len` bytes at `offset` of the archive.
    File {
        /// First byte in the archive.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// A symbolic link with its target.
    Symlink(Vec<u8>),
    /// Another name of an earlier member, by that member's path.
    HardLink(Vec<u8>),
    /// A character device: major, minor.
    CharDevice(u32, u32),
    /// A block device: major, minor.
    BlockDevice(u32, u32),
    /// A named pipe.
    Fifo,
}

/// Reads all members of the archive `file`, decompressed where that is needed; their contents are ranges of the file that is
/// returned beside them.
pub fn open(file: &File, limits: &ArchiveLimits) -> Result<(File, Vec<Member>), ArchiveError> {
    open_with(file, limits, |input, format, len| compress::spool(input, format, len, limits))
}

/// As [`open`], for the artifact with that digest, which was proven: decompressed once and then kept in `store`.
pub(super) fn open_kept(file: &File, digest: &Digest, store: &Store) -> Result<(File, Vec<Member>), ArchiveError> {
    let limits = &ArchiveLimits::ARTIFACT;
    open_with(file, limits, |input, format, len| {
        compress::spool_kept(input, format, len, limits, (store, digest, DecodedForm::Tar))
    })
}

fn open_with(
    file: &File,
    limits: &ArchiveLimits,
    spool: impl FnOnce(&File, &str, u64) -> Result<File, ArchiveError>,
) -> Result<(File, Vec<Member>), ArchiveError> {
    let read_error = |source| ArchiveError::Read { offset: 0, source };
    let plain = match compress::detect(file)? {
        Some(format) => spool(file, format, file.metadata().map_err(read_error)?.len())?,
        None => file.try_clone().map_err(read_error)?,
    };
    let entries = read(&plain, limits)?;
    Ok((plain, entries))
}

/// Reads all members of the uncompressed archive `file`.
pub fn read(file: &File, limits: &ArchiveLimits) -> Result<Vec<Member>, ArchiveError> {
    let extended = Headers::check(file, limits.members)?;
    let mut input = file.try_clone().map_err(|source| ArchiveError::Read { offset: 0, source })?;
    input.seek(SeekFrom::Start(0)).map_err(|source| ArchiveError::Read { offset: 0, source })?;
    let len = input.metadata().map_err(|source| ArchiveError::Read { offset: 0, source })?.len();
    let mut archive = tar::Archive::new(input);
    let mut seen = Seen::default();
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
        let entry = convert(&member, records.as_deref(), limits.devices)?;
        if let MemberKind::File { offset, len: size } = entry.kind
            && offset.checked_add(size).is_none_or(|end| end > len)
        {
            return Err(ArchiveError::Truncated { path: show(&entry.path), len });
        }
        seen.check(&entry, limits)?;
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

/// The regular files named by `members` (all when empty), with `strip` leading components dropped, below `directory`. A
/// hard link is the file that it leads to.
pub fn select(
    mut entries: Vec<Member>,
    directory: &str,
    strip: usize,
    members: &[String],
) -> Result<Vec<Member>, ArchiveError> {
    follow_hard_links(&mut entries);
    for name in members {
        match entries.iter().find(|entry| entry.path == name.as_bytes()).map(|entry| &entry.kind) {
            Some(MemberKind::File { .. }) => {}
            Some(_) => return Err(refused(name.as_bytes(), "is no regular file")),
            None => return Err(ArchiveError::NoMember { path: name.clone() }),
        }
    }
    let wanted = |entry: &Member| {
        matches!(entry.kind, MemberKind::File { .. })
            && (members.is_empty() || members.iter().any(|name| name.as_bytes() == entry.path))
    };
    let mut selected: Vec<Member> = entries.into_iter().filter(wanted).collect();
    for entry in &mut selected {
        let rest: Vec<&[u8]> = components(&entry.path).skip(strip).collect();
        if rest.is_empty() {
            return Err(refused(&entry.path, format!("has no more than the {strip} components that are stripped")));
        }
        entry.path = [directory.trim_start_matches('/').as_bytes(), &rest.join(&b'/')].join(&b'/');
    }
    Ok(selected)
}

/// Turns hard links into files with the content and metadata of those that they lead to, which come earlier.
fn follow_hard_links(entries: &mut [Member]) {
    let mut files: BTreeMap<Vec<u8>, (Metadata, MemberKind)> = BTreeMap::new();
    for entry in entries {
        if let MemberKind::HardLink(to) = &entry.kind
            && let Some(found) = files.get(to)
        {
            (entry.meta, entry.kind) = found.clone();
        }
        if matches!(entry.kind, MemberKind::File { .. }) {
            files.insert(entry.path.clone(), (entry.meta.clone(), entry.kind.clone()));
        }
    }
}

fn show(path: &[u8]) -> String {
    crate::escape::name(path)
}

fn refused(path: &[u8], reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Refused { path: show(path), reason: reason.into() }
}

fn convert(member: &tar::Entry<'_, File>, records: Option<&[u8]>, devices: bool) -> Result<Member, ArchiveError> {
    let header = member.header();
    // The library finds records in their values too: it is not asked where there are any.
    let (raw, target) = match records {
        Some(_) => (header.path_bytes(), header.link_name_bytes()),
        None => (member.path_bytes(), member.link_name_bytes()),
    };
    let bad = |reason: String| refused(&raw, format!("bad extended header: {reason}"));
    let records = records.map_or(Ok(Records::new()), pax::records).map_err(bad)?;
    let raw = pax::find(&records, b"path").map_or_else(|| raw.to_vec(), <[u8]>::to_vec);
    let target = pax::find(&records, b"linkpath").or(target.as_deref()).unwrap_or_default();
    let mut meta = metadata(header, &raw)?;
    pax::apply(&records, &mut meta).map_err(|reason| refused(&raw, reason))?;
    if raw.is_empty() {
        return Err(refused(&raw, "has no name"));
    }
    let path = clean(&raw)?;
    let kind = kind(member, &raw, target, devices)?;
    if matches!(kind, MemberKind::Symlink(_)) {
        // As on Linux, whatever the archive says.
        meta.mode = 0o777;
    }
    Ok(Member { path, meta, kind })
}

/// What the fields of a header say.
fn metadata(header: &tar::Header, raw: &[u8]) -> Result<Metadata, ArchiveError> {
    let bytes = header.as_bytes();
    // Only `ustar` and `00` together announce a prefix of the name.
    if bytes[257..263] == *b"ustar\0" && bytes[263..265] != *b"00" {
        return Err(refused(raw, "bad header: unknown version of ustar"));
    }
    Ok(Metadata {
        mode: u16::try_from(number(header, fields::MODE, "mode", raw)? & 0o7777).unwrap_or(0),
        uid: id(number(header, fields::UID, "uid", raw)?, raw)?,
        gid: id(number(header, fields::GID, "gid", raw)?, raw)?,
        mtime: Timestamp { secs: number(header, fields::MTIME, "mtime", raw)?, nanos: 0 },
        xattrs: BTreeMap::new(),
    })
}

fn number(header: &tar::Header, field: Range<usize>, what: &str, raw: &[u8]) -> Result<i64, ArchiveError> {
    let found = &header.as_bytes()[field];
    let bad = || refused(raw, format!("bad header: {what} is {:?}, expected a number", show(found)));
    fields::number(found).ok_or_else(bad)
}

fn kind(member: &tar::Entry<'_, File>, raw: &[u8], target: &[u8], devices: bool) -> Result<MemberKind, ArchiveError> {
    let header = member.header();
    let link = || if target.is_empty() { Err(refused(raw, "link without target")) } else { Ok(target) };
    let device = || -> Result<(u32, u32), ArchiveError> {
        let major = number(header, fields::MAJOR, "major", raw)?;
        let minor = number(header, fields::MINOR, "minor", raw)?;
        let valid = (0..1 << 12).contains(&major) && (0..1 << 20).contains(&minor);
        let checked = u32::try_from(major).ok().zip(u32::try_from(minor).ok()).filter(|_| valid);
        checked.ok_or_else(|| refused(raw, format!("device {major}:{minor} is out of range")))
    };
    let kind = match header.entry_type() {
        // A directory in archives from before there was a type for it.
        EntryType::Regular | EntryType::Continuous if raw.ends_with(b"/") => MemberKind::Directory,
        EntryType::Regular | EntryType::Continuous => {
            MemberKind::File { offset: member.raw_file_position(), len: member.size() }
        }
        EntryType::Directory => MemberKind::Directory,
        EntryType::Symlink => MemberKind::Symlink(check_target(link()?, raw)?),
        EntryType::Link => MemberKind::HardLink(clean(link()?)?),
        EntryType::Char if devices => device().map(|(major, minor)| MemberKind::CharDevice(major, minor))?,
        EntryType::Block if devices => device().map(|(major, minor)| MemberKind::BlockDevice(major, minor))?,
        EntryType::Fifo if devices => MemberKind::Fifo,
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            return Err(refused(raw, "devices and pipes have no place in an artifact"));
        }
        EntryType::GNUSparse => return Err(refused(raw, "sparse members are not supported")),
        other => return Err(refused(raw, format!("unknown type {:?}", char::from(other.as_byte())))),
    };
    let size = number(header, fields::SIZE, "size", raw)?;
    if u64::try_from(size) != Ok(member.size()) {
        return Err(refused(raw, format!("bad header: size is {size} and {}", member.size())));
    }
    // Some programs skip it, and others take it for the next member.
    if size != 0 && !matches!(kind, MemberKind::File { .. }) {
        return Err(refused(raw, format!("is no file, and has a content of {size} bytes")));
    }
    Ok(kind)
}

fn check_target(target: &[u8], path: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let valid = target.len() <= MAX_PATH && !target.contains(&0);
    if valid { Ok(target.to_vec()) } else { Err(refused(path, "target is too long or has a NUL byte in it")) }
}

fn id(value: i64, path: &[u8]) -> Result<u32, ArchiveError> {
    u32::try_from(value).map_err(|_| refused(path, format!("owner {value} is out of range")))
}

/// A global header, such as `git archive` writes, may only comment: what it said of all members, not every reader would know.
fn check_global(member: &mut tar::Entry<'_, File>) -> Result<(), ArchiveError> {
    let path = member.header().path_bytes().into_owned();
    let bad = |source: io::Error| refused(&path, format!("bad global header: {source}"));
    let mut content = Vec::new();
    member.read_to_end(&mut content).map_err(bad)?;
    // What was said of the next member would be lost: the reader takes it to be said of this header.
    let named = member.path_bytes() != path || member.link_name_bytes() != member.header().link_name_bytes();
    if named || member.pax_extensions().map_err(bad)?.is_some_and(|mut records| records.next().is_some()) {
        return Err(refused(&path, "global header stands between a member and its extended header"));
    }
    let records = pax::records(&content).map_err(|reason| refused(&path, format!("bad global header: {reason}")))?;
    for (key, _) in records {
        if key != b"comment" {
            return Err(refused(&path, format!("global header with {:?} is not supported", show(key))));
        }
    }
    Ok(())
}

/// A member's name as a path below the root of the tree.
fn clean(name: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    // Looking up each directory above a name of a million letters would take hours.
    if name.len() > MAX_PATH {
        return Err(refused(&name[..MAX_PATH], format!("name is longer than {MAX_PATH} bytes")));
    }
    if name.starts_with(b"/") {
        return Err(refused(name, "name is absolute"));
    }
    if name.contains(&0) || components(name).any(|part| part == b"..") {
        return Err(refused(name, "name has `..` or a NUL byte in it"));
    }
    Ok(components(name).collect::<Vec<_>>().join(&b'/'))
}

/// What an archive has had so far, to refuse names that would mean different things to different readers.
#[derive(Default)]
struct Seen {
    files: BTreeSet<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
    symlinks: BTreeSet<Vec<u8>>,
    /// Hashes of the paths of all directories above members, whether they are members themselves or not.
    above: HashSet<u64>,
}

impl Seen {
    fn check(&mut self, entry: &Member, limits: &ArchiveLimits) -> Result<(), ArchiveError> {
        let path = &entry.path;
        self.count(path, limits.members)?;
        let mut prefixes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        if let Some(link) = prefixes.find(|prefix| self.symlinks.contains(*prefix)) {
            return Err(refused(path, format!("would be placed through the archive's symbolic link {:?}", show(link))));
        }
        if self.files.contains(path) || self.symlinks.contains(path) {
            return Err(refused(path, "comes twice"));
        }
        match &entry.kind {
            MemberKind::Directory => {
                self.directories.insert(path.clone());
                return Ok(());
            }
            MemberKind::HardLink(target) if !self.files.contains(target) => {
                return Err(refused(path, format!("is a hard link to {:?}, which is no earlier file", show(target))));
            }
            _ if self.directories.contains(path) => return Err(refused(path, "comes twice")),
            MemberKind::Symlink(_) => self.symlinks.insert(path.clone()),
            _ => self.files.insert(path.clone()),
        };
        Ok(())
    }

    /// Counts the directories above `path`: each is a node of the tree, also where the archive does not list it.
    fn count(&mut self, path: &[u8], limit: usize) -> Result<(), ArchiveError> {
        let (mut hasher, mut depth) = (DefaultHasher::new(), 0);
        for byte in path {
            if *byte == b'/' {
                self.above.insert(hasher.finish());
                depth += 1;
            }
            hasher.write_u8(*byte);
        }
        if depth > MAX_DEPTH {
            return Err(refused(path, format!("is more than {MAX_DEPTH} directories deep")));
        }
        if self.above.len() > limit { Err(ArchiveError::TooMany { limit }) } else { Ok(()) }
    }
}
