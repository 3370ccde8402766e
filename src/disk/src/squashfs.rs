//! Writes a tree to a SquashFS 4.0 volume that Linux mounts read-only, compressed by zstd.
//!
//! The tree alone determines the bytes: times are those of its inodes, that of the volume is 0, and one thread
//! compresses. The volume is padded to whole blocks of 4096 bytes. Hard links become separate files. Times are whole
//! seconds from 1970 to 2106, and that of the root is 0. Extended attributes and devices are refused, since the writer
//! does not support the former and nothing here needs the latter.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use backhand::compression::{CompressionAction, Compressor};
use backhand::kind::Kind as Form;
use backhand::{BackhandError, FilesystemCompressor, FilesystemWriter, NodeHeader, SuperBlock};

use crate::source::MapReader;
use crate::tree::{Inode, Kind, Tree};

/// Block size for compression, the default of mksquashfs.
const BLOCK_LEN: u32 = 128 << 10;
/// Half of the level of mksquashfs: more takes several times as long, and saves a few percent.
const LEVEL: i32 = 9;
/// Alignment of the volume in KiB: the size of a page, and of a block of dm-verity.
const PADDING_KIB: u32 = 4;

/// Why a volume could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SquashfsError {
    #[error("{path}: {what}, which is not supported in a SquashFS")]
    Unsupported { path: String, what: String },
    #[error("cannot write the SquashFS")]
    Io(#[source] io::Error),
    #[error("the tree is too large for a SquashFS")]
    TooLarge,
}

impl From<BackhandError> for SquashfsError {
    fn from(error: BackhandError) -> Self {
        match error {
            BackhandError::StdIo(source) => Self::Io(source),
            // Names are validated by the tree: other errors are numbers that do not fit.
            _ => Self::TooLarge,
        }
    }
}

/// Writes `tree` to `out`, an empty file; returns its length in bytes.
pub fn write(tree: &Tree, out: &File) -> Result<u64, SquashfsError> {
    let mut volume = FilesystemWriter::default();
    volume.set_kind(Form::new_v4(&ZSTD));
    volume.set_compressor(FilesystemCompressor::new(Compressor::Zstd, None)?);
    volume.set_block_size(BLOCK_LEN);
    volume.set_kib_padding(PADDING_KIB);
    // Duplicates would be found by a hash of 64 bits, for which collisions can be constructed.
    volume.set_no_duplicate_files(false);
    for (path, _, inode) in tree.walk() {
        let header = header(&path, inode)?;
        let place = Path::new(OsStr::from_bytes(&path));
        match &inode.kind {
            Kind::Directory(_) if path.is_empty() => {
                if header.mtime != 0 {
                    return Err(unsupported(&path, "modification time is not 0".to_owned()));
                }
                volume.set_root_mode(header.permissions);
                volume.set_root_uid(header.uid);
                volume.set_root_gid(header.gid);
            }
            Kind::Directory(_) => volume.push_dir(place, header)?,
            Kind::File(map) => volume.push_file(MapReader::new(map, tree.sources()), place, header)?,
            Kind::Symlink(target) => volume.push_symlink(OsStr::from_bytes(target), place, header)?,
            other => return Err(unsupported(&path, format!("is a {}", other.name()))),
        }
    }
    let (_, len) = volume.write(out)?;
    out.sync_all().map_err(SquashfsError::Io)?;
    Ok(len)
}

/// Mode, owner and time of an inode.
fn header(path: &[u8], inode: &Inode) -> Result<NodeHeader, SquashfsError> {
    let meta = &inode.meta;
    if let Some(name) = meta.xattrs.keys().next() {
        return Err(unsupported(path, format!("has the extended attribute {}", String::from_utf8_lossy(name))));
    }
    match u32::try_from(meta.mtime.secs) {
        Ok(mtime) => Ok(NodeHeader::new(meta.mode, meta.uid, meta.gid, mtime)),
        Err(_) => Err(unsupported(path, format!("has the time {}, in seconds since 1970", meta.mtime.secs))),
    }
}

fn unsupported(path: &[u8], what: String) -> SquashfsError {
    let path = if path.is_empty() { "/".into() } else { String::from_utf8_lossy(path) };
    SquashfsError::Unsupported { path: path.into_owned(), what }
}

/// Uses the same compression library as all other writers.
struct Zstd;

static ZSTD: Zstd = Zstd;

impl CompressionAction for Zstd {
    type Error = BackhandError;
    type Compressor = Compressor;
    type FilesystemCompressor = FilesystemCompressor;
    type SuperBlock = SuperBlock;

    fn decompress(&self, bytes: &[u8], out: &mut Vec<u8>, _: Compressor) -> Result<(), BackhandError> {
        *out = zstd::bulk::decompress(bytes, out.capacity())?;
        Ok(())
    }

    fn compress(&self, bytes: &[u8], _: FilesystemCompressor, _: u32) -> Result<Vec<u8>, BackhandError> {
        Ok(zstd::bulk::compress(bytes, LEVEL)?)
    }
}
