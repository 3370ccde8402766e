//! Tar archives (POSIX.1-2001 pax, ustar, GNU): what enters is an uncompressed archive in a file, what leaves are its
//! entries, whose contents are ranges of that file.
//!
//! Stricter than tar: names may not be absolute nor have `..`, nothing may be placed below a symbolic link of the same
//! archive, hard links must point to files of the same archive, no name may come twice, and sparse members are refused, as
//! are members whose size stands only in a pax record: those of 8 GiB and more.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use tar::EntryType;
use vmbake_disk::tree::{Metadata, Timestamp, components};

use super::compress;
use super::headers::Headers;
use crate::digest::Digest;
use crate::supply::store::{Form, Store};

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
pub struct Limits {
    /// Most members.
    pub members: usize,
    /// Bytes that any archive may decompress to, however small it is.
    pub floor: u64,
    /// How many bytes each compressed byte may become, above that.
    pub ratio: u64,
    /// Whether devices, pipes and sockets are taken.
    pub devices: bool,
}

impl Limits {
    /// For artifacts: real packages stay far below a ratio of 50, a bomb of zeros in gzip has 1,000.
    pub const ARTIFACT: Self = Self { members: 1_000_000, floor: 64 << 20, ratio: 200, devices: false };

    /// For a whole root file system.
    pub const ROOT: Self = Self { members: 4_000_000, devices: true, ..Self::ARTIFACT };

    pub(super) fn bytes(&self, compressed: u64) -> u64 {
        compressed.saturating_mul(self.ratio).max(self.floor)
    }
}

/// One member.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path without leading slash and `./`, without trailing slash; empty for the archive's own root.
    pub path: Vec<u8>,
    /// Owner, permissions, time and extended attributes.
    pub meta: Metadata,
    /// What it is.
    pub kind: EntryKind,
}

/// What a member is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
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
pub fn open(file: &File, limits: &Limits) -> Result<(File, Vec<Entry>), ArchiveError> {
    open_with(file, limits, |input, format, len| compress::spool(input, format, len, limits))
}

/// As [`open`], for the artifact with that digest, which was proven: decompressed once and then kept in `store`.
pub(super) fn open_kept(file: &File, digest: &Digest, store: &Store) -> Result<(File, Vec<Entry>), ArchiveError> {
    let limits = &Limits::ARTIFACT;
    open_with(file, limits, |input, format, len| {
        compress::spool_kept(input, format, len, limits, (store, digest, Form::Tar))
    })
}

fn open_with(
    file: &File,
    limits: &Limits,
    spool: impl FnOnce(&File, &str, u64) -> Result<File, ArchiveError>,
) -> Result<(File, Vec<Entry>), ArchiveError> {
    let read_error = |source| ArchiveError::Read { offset: 0, source };
    let plain = match compress::detect(file)? {
        Some(format) => spool(file, format, file.metadata().map_err(read_error)?.len())?,
        None => file.try_clone().map_err(read_error)?,
    };
    let entries = read(&plain, limits)?;
    Ok((plain, entries))
}

/// Reads all members of the uncompressed archive `file`.
pub fn read(file: &File, limits: &Limits) -> Result<Vec<Entry>, ArchiveError> {
    Headers::check(file, limits.members)?;
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
        let entry = convert(&mut member, limits.devices)?;
        if let EntryKind::File { offset, len: size } = entry.kind
            && offset.checked_add(size).is_none_or(|end| end > len)
        {
            return Err(ArchiveError::Truncated { path: show(&entry.path), len });
        }
        seen.check(&entry, limits)?;
        entries.push(entry);
    }
    Ok(entries)
}

/// The regular files named by `members` (all when empty), with `strip` leading components dropped, below `directory`. A
/// hard link is the file that it leads to.
pub fn select(
    mut entries: Vec<Entry>,
    directory: &str,
    strip: usize,
    members: &[String],
) -> Result<Vec<Entry>, ArchiveError> {
    follow_hard_links(&mut entries);
    for name in members {
        match entries.iter().find(|entry| entry.path == name.as_bytes()).map(|entry| &entry.kind) {
            Some(EntryKind::File { .. }) => {}
            Some(_) => return Err(refused(name.as_bytes(), "is no regular file")),
            None => return Err(ArchiveError::NoMember { path: name.clone() }),
        }
    }
    let wanted = |entry: &Entry| {
        matches!(entry.kind, EntryKind::File { .. })
            && (members.is_empty() || members.iter().any(|name| name.as_bytes() == entry.path))
    };
    let mut selected: Vec<Entry> = entries.into_iter().filter(wanted).collect();
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
fn follow_hard_links(entries: &mut [Entry]) {
    let mut files: BTreeMap<Vec<u8>, (Metadata, EntryKind)> = BTreeMap::new();
    for entry in entries {
        if let EntryKind::HardLink(to) = &entry.kind
            && let Some(found) = files.get(to)
        {
            (entry.meta, entry.kind) = found.clone();
        }
        if matches!(entry.kind, EntryKind::File { .. }) {
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

fn convert(member: &mut tar::Entry<'_, File>, devices: bool) -> Result<Entry, ArchiveError> {
    let raw = member.path_bytes().into_owned();
    let path = clean(&raw)?;
    let io = |source| ArchiveError::Refused { path: show(&raw), reason: format!("bad header: {source}") };
    let header = member.header().clone();
    let kind = header.entry_type();
    let target = member.link_name_bytes().map(|name| name.into_owned());
    let link = || target.clone().filter(|name| !name.is_empty()).ok_or_else(|| refused(&raw, "link without target"));
    let device = || -> Result<(u32, u32), ArchiveError> {
        let (major, minor) = (header.device_major().map_err(io)?, header.device_minor().map_err(io)?);
        Ok((major.unwrap_or(0), minor.unwrap_or(0)))
    };
    let kind = match kind {
        EntryType::Regular | EntryType::Continuous => {
            EntryKind::File { offset: member.raw_file_position(), len: member.size() }
        }
        EntryType::Directory => EntryKind::Directory,
        EntryType::Symlink => EntryKind::Symlink(check_target(link()?, &raw)?),
        EntryType::Link => EntryKind::HardLink(clean(&link()?)?),
        EntryType::Char if devices => device().map(|(major, minor)| EntryKind::CharDevice(major, minor))?,
        EntryType::Block if devices => device().map(|(major, minor)| EntryKind::BlockDevice(major, minor))?,
        EntryType::Fifo if devices => EntryKind::Fifo,
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            return Err(refused(&raw, "devices and pipes have no place in an artifact"));
        }
        EntryType::GNUSparse => return Err(refused(&raw, "sparse members are not supported")),
        other => return Err(refused(&raw, format!("unknown type {:?}", char::from(other.as_byte())))),
    };
    let mut meta = Metadata {
        mode: u16::try_from(header.mode().map_err(io)? & 0o7777).unwrap_or(0),
        uid: id(header.uid().map_err(io)?, &raw)?,
        gid: id(header.gid().map_err(io)?, &raw)?,
        mtime: Timestamp { secs: i64::try_from(header.mtime().map_err(io)?).unwrap_or(i64::MAX), nanos: 0 },
        xattrs: BTreeMap::new(),
    };
    pax(member, &raw, &mut meta)?;
    Ok(Entry { path, meta, kind })
}

fn check_target(target: Vec<u8>, path: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let valid = target.len() <= MAX_PATH && !target.contains(&0);
    if valid { Ok(target) } else { Err(refused(path, "target is too long or has a NUL byte in it")) }
}

fn id(value: u64, path: &[u8]) -> Result<u32, ArchiveError> {
    u32::try_from(value).map_err(|_| refused(path, format!("owner {value} is out of range")))
}

/// Applies the pax records that the header's fields cannot hold (POSIX.1-2001, pax, "Extended Header").
fn pax(member: &mut tar::Entry<'_, File>, path: &[u8], meta: &mut Metadata) -> Result<(), ArchiveError> {
    let bad = |source: io::Error| refused(path, format!("bad extended header: {source}"));
    let Some(records) = member.pax_extensions().map_err(bad)? else { return Ok(()) };
    for record in records {
        let record = record.map_err(bad)?;
        let (key, value) = (record.key_bytes(), record.value_bytes());
        let number = || std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
        match key {
            b"mtime" => meta.mtime = time(value).ok_or_else(|| refused(path, "bad mtime record"))?,
            b"uid" => meta.uid = id(number().ok_or_else(|| refused(path, "bad uid record"))?, path)?,
            b"gid" => meta.gid = id(number().ok_or_else(|| refused(path, "bad gid record"))?, path)?,
            // Where the next header stands must not depend on what only some readers look at.
            b"size" => return Err(refused(path, "size in an extended header is not supported")),
            _ if key.starts_with(b"GNU.sparse.") => return Err(refused(path, "sparse members are not supported")),
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    meta.xattrs.insert(name.to_vec(), value.to_vec());
                }
            }
        }
    }
    Ok(())
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
    for record in tar::PaxExtensions::new(&content) {
        let key = record.map_err(bad)?.key_bytes().to_vec();
        if key != b"comment" {
            return Err(refused(&path, format!("global header with {:?} is not supported", show(&key))));
        }
    }
    Ok(())
}

/// Decimal seconds with an optional fraction; digits after the ninth are cut, towards the past.
fn time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
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
    fn check(&mut self, entry: &Entry, limits: &Limits) -> Result<(), ArchiveError> {
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
            EntryKind::Directory => {
                self.directories.insert(path.clone());
                return Ok(());
            }
            EntryKind::HardLink(target) if !self.files.contains(target) => {
                return Err(refused(path, format!("is a hard link to {:?}, which is no earlier file", show(target))));
            }
            _ if self.directories.contains(path) => return Err(refused(path, "comes twice")),
            EntryKind::Symlink(_) => self.symlinks.insert(path.clone()),
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
