//! Tar archives (POSIX.1-2001 pax, ustar, GNU): an uncompressed archive in a file in; entries, whose contents are ranges of that file, out.
//! A zip file is converted to such an archive first.
//!
//! Stricter than tar: absolute names and names with `..` are refused, as are members below a symbolic link of the same archive, hard links
//! to anything but files of the archive, duplicate names, sparse members, and members with a size in a pax record, which those of 8 GiB and
//! more have. Input that programs read differently is refused too: content of members that are not files, a member with both a GNU and a
//! pax name, and an incomplete last block.

mod fields;
mod pax;
mod headers;
mod compress;
mod zip;
mod fault;
mod names;
mod members;
mod select;

pub use compress::{ZIP, is_archive, spool, spool_kept};
pub use fault::{MemberFault, PaxFault};
pub use members::read;
pub use select::{extract, require_absent, select};

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::tree::Metadata;

use vmbake_common::digest::Digest;
use vmbake_store::store::{DecodedForm, Store};

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("cannot read at byte {offset}")]
    Read { offset: u64, source: io::Error },
    #[error("cannot write a temporary file in {dir}")]
    Spool { dir: PathBuf, source: io::Error },
    #[error("is a {found}, which is not supported here")]
    Foreign { found: &'static str },
    #[error("cannot read the zip file")]
    Zip {
        /// The error of the zip reader.
        source: rawzip::Error,
    },
    #[error("{len} bytes decompress to more than {limit}: refused as a decompression bomb")]
    Bomb {
        /// Its length in bytes.
        len: u64,
        limit: u64,
    },
    #[error("more than {limit} members")]
    TooMany { limit: usize },
    #[error("ends at byte {len}, inside member {path:?}")]
    Truncated { path: String, len: u64 },
    #[error("contains {path:?}, which `absent` of its layer excludes")]
    Present { path: String },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ArchiveError {
    vmbake_common::causes!(Message; Read, Spool);
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
    /// Whether it is a root file system, of other tools too, or a layer of one: absolute names are relative to its root,
    /// hard links may refer to files of a layer below, and records that would be lost are refused.
    pub root: bool,
}

impl ArchiveLimits {
    /// For artifacts: real packages stay far below a ratio of 50, a bomb of zeros in gzip has 1,000.
    pub const ARTIFACT: Self = Self { members: 1_000_000, floor: 64 << 20, ratio: 200, devices: false, root: false };

    /// For a whole root file system.
    pub const ROOT: Self = Self { members: 4_000_000, devices: true, ..Self::ARTIFACT };

    /// For a root file system that becomes the base of an image.
    pub const BASE: Self = Self { root: true, ..Self::ROOT };

    fn bytes(&self, compressed: u64) -> u64 {
        compressed.saturating_mul(self.ratio).max(self.floor)
    }
}

#[derive(Clone, Debug)]
pub struct Member {
    /// Path without leading slash and `./`, without trailing slash; empty for the archive's own root.
    pub path: Vec<u8>,
    /// Owner, permissions, time and extended attributes.
    pub meta: Metadata,
    /// What it is.
    pub kind: MemberKind,
    /// The names of its user and group; empty where the archive has none.
    pub owner: [Vec<u8>; 2],
    /// Whether the archive has the same path, apart from a trailing slash.
    pub is_plain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKind {
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
/// returned with them.
pub fn open(file: &File, limits: &ArchiveLimits) -> Result<(File, Vec<Member>), ArchiveError> {
    open_with(file, limits, |input, format, len| compress::spool(input, format, len, limits))
}

/// As [`open`], for an archive in the range `part` of `file`, compressed in `format` (a file name extension).
pub fn open_part(
    file: &File,
    part: Range<u64>,
    format: &str,
    limits: &ArchiveLimits,
) -> Result<(File, Vec<Member>), ArchiveError> {
    let read_error = |source| ArchiveError::Read { offset: part.start, source };
    let (mut input, len) = (file.try_clone().map_err(read_error)?, part.end.saturating_sub(part.start));
    input.seek(SeekFrom::Start(part.start)).map_err(read_error)?;
    let plain = compress::spool(input.take(len), format, len, limits)?;
    let entries = read(&plain, limits)?;
    Ok((plain, entries))
}

/// As [`open`], for the file with that digest, which was proven: decompressed once and then kept in `store`.
pub fn open_kept(
    file: &File,
    digest: &Digest,
    store: &Store,
    limits: &ArchiveLimits,
) -> Result<(File, Vec<Member>), ArchiveError> {
    // tar itself takes an empty file for an archive without members.
    if file.metadata().map_err(|source| ArchiveError::Read { offset: 0, source })?.len() == 0 {
        return Err(ArchiveError::Message(Message::new("is empty: expected an archive")));
    }
    open_with(file, limits, |input, format, len| {
        compress::spool_kept(input, format, len, limits, (store, digest, DecodedForm::Tar))
    })
}

/// As [`open`], for a zip file: returns a tar archive of its members.
pub fn open_zip(file: &File, limits: &ArchiveLimits) -> Result<(File, Vec<Member>), ArchiveError> {
    let plain = tempfile::tempfile().map_err(compress::no_spool)?;
    zip::to_tar(file, limits, &plain)?;
    let entries = read(&plain, limits)?;
    Ok((plain, entries))
}

/// As [`open_kept`], for a zip file.
pub fn open_zip_kept(file: &File, digest: &Digest, store: &Store) -> Result<(File, Vec<Member>), ArchiveError> {
    let limits = &ArchiveLimits::ARTIFACT;
    let plain = compress::kept((store, digest, DecodedForm::Zip), |output| zip::to_tar(file, limits, output))?;
    let entries = read(&plain, limits)?;
    Ok((plain, entries))
}

/// The content of the compressed file `file`, whose digest was proven: decompressed once and then kept in `store`.
pub fn decompress_kept(mut file: &File, digest: &Digest, store: &Store) -> Result<File, ArchiveError> {
    let limits = &ArchiveLimits::ARTIFACT;
    let format = compress::detect(file)?
        .ok_or(ArchiveError::Message(Message::new("is not compressed with gzip, xz, Zstandard or bzip2")))?;
    compress::kept((store, digest, DecodedForm::File), |output| {
        let read = |source| ArchiveError::Read { offset: 0, source };
        file.rewind().map_err(read)?;
        compress::decompress_file(file, format, file.metadata().map_err(read)?.len(), limits, output)
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

fn show(path: &[u8]) -> String {
    vmbake_common::escape::name(path)
}

fn refused(path: &[u8], fault: impl Into<MemberFault>) -> ArchiveError {
    let fault: MemberFault = fault.into();
    ArchiveError::Message(message!("member {:?}: {fault}", show(path)))
}
