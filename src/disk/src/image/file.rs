//! An image file: positioned reads with bounds checks, and errors with its path.

use std::fs::{File, FileType, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Foreign, ImageError, Qcow2Structure};
use crate::source::FileSource;

/// The type of a file that is neither regular nor a directory.
fn kind(found: FileType) -> &'static str {
    match found {
        found if found.is_fifo() => "a named pipe",
        found if found.is_socket() => "a socket",
        found if found.is_block_device() => "a block device",
        _ => "a character device",
    }
}

/// An open regular file with its path and its initial length.
pub struct ImageFile {
    file: File,
    path: PathBuf,
    len: u64,
}

impl ImageFile {
    /// Opens a regular file.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        let fail = |source| ImageError::Open { path: path.to_owned(), source };
        // Without O_NONBLOCK, opening a named pipe would wait for a writer.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(fail)?;
        Self::of(file, path)
    }

    /// Wraps an open file, which must be a regular one.
    pub fn of(file: File, path: &Path) -> Result<Self, ImageError> {
        let fail = |source| ImageError::Open { path: path.to_owned(), source };
        let metadata = file.metadata().map_err(fail)?;
        let path_of = || path.to_owned();
        match metadata.len() {
            _ if metadata.is_dir() => return Err(ImageError::Directory { path: path_of() }),
            _ if !metadata.is_file() => {
                return Err(ImageError::NotFile { path: path_of(), found: kind(metadata.file_type()) });
            }
            0 => return Err(ImageError::Empty { path: path_of() }),
            _ => {}
        }
        Ok(Self { file, path: path.to_owned(), len: metadata.len() })
    }

    /// The file as a raw disk.
    pub fn into_source(self) -> Result<FileSource, ImageError> {
        let Self { file, path, .. } = self;
        FileSource::new(file).map_err(|source| ImageError::Open { path, source })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset`; `what` is the structure for the error if the file ends inside it.
    pub fn read(&self, buf: &mut [u8], offset: u64, what: Qcow2Structure) -> Result<(), ImageError> {
        self.require(offset, buf.len() as u64, what)?;
        self.read_inside(buf, offset)
    }

    /// Fills `buf` from `offset`; the caller has checked the length of the file.
    pub fn read_inside(&self, buf: &mut [u8], offset: u64) -> Result<(), ImageError> {
        let len = buf.len();
        let fail = |source| ImageError::Read { path: self.path.clone(), offset, len, source };
        self.file.read_exact_at(buf, offset).map_err(fail)
    }

    /// Refuses a structure outside of the file.
    pub fn require(&self, offset: u64, len: u64, what: Qcow2Structure) -> Result<(), ImageError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => {
                let expected = format!("{len} bytes inside the file of {:#x} bytes", self.len);
                Err(self.corrupt(what, offset, offset, expected))
            }
        }
    }

    /// A value that the format does not allow.
    pub fn corrupt(
        &self,
        what: Qcow2Structure,
        offset: u64,
        found: impl Into<u64>,
        expected: impl Into<String>,
    ) -> ImageError {
        ImageError::Corrupt { path: self.path.clone(), what, offset, found: found.into(), expected: expected.into() }
    }

    /// Compressed data that do not decode to a whole cluster.
    pub fn bad_cluster(&self, offset: u64, source: std::io::Error) -> ImageError {
        ImageError::Decompress { path: self.path.clone(), offset, source }
    }

    /// A disk that contains more data than allowed for its file.
    pub fn bomb(&self, held: u64, limit: u64) -> ImageError {
        ImageError::Bomb { path: self.path.clone(), len: self.len, held, limit }
    }

    /// A file of another format.
    pub fn foreign(&self, found: Foreign) -> ImageError {
        ImageError::Foreign { path: self.path.clone(), found }
    }

    /// An unsupported feature of the format, with a hint.
    pub fn unsupported(&self, feature: impl Into<String>, hint: &'static str) -> ImageError {
        ImageError::Unsupported { path: self.path.clone(), feature: feature.into(), hint }
    }
}
