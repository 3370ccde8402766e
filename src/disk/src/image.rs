//! Opens untrusted disk image files and provides their disk as a [`ReadAt`].
//!
//! A file with the magic number of qcow2 is read as qcow2, any other regular file as raw, unless it is recognized as
//! another format, which is refused by name. Offsets are bytes, either of the file ("host") or of the disk inside it
//! ("guest").

mod file;
mod foreign;
mod qcow2;
mod overlay;
mod image_pair;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::source::{FileSource, ReadAt};
use file::ImageFile;
pub use foreign::{Foreign, quoted};
pub(crate) use image_pair::{ImagePair, PairBuffers};
pub use overlay::{Overlay, OverlayPart};
use qcow2::Qcow2;
pub(crate) use qcow2::{BACKING_FORMAT, EXTENSIONS_END};
pub use qcow2::{Backing, BackingNameError, Qcow2Structure};

/// The format of a disk image file, called `raw` or `qcow2` in documents and file extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The disk byte by byte; zeros may be holes of the file.
    Raw,
    /// QEMU's copy-on-write format, version 2 or 3.
    Qcow2,
}

/// The compression of clusters of a qcow2 file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterCompression {
    /// Deflate without a header (RFC 1951), supported by every reader of qcow2.
    Zlib,
    /// Zstandard frames, supported by QEMU since 5.1.
    #[default]
    Zstd,
}

impl Format {
    /// Every format, in the order of its variants.
    pub const ALL: [Self; 2] = [Self::Raw, Self::Qcow2];

    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }

    /// All formats, for messages.
    pub const NAMES: &str = "raw or qcow2";
    /// All formats, for help texts.
    pub const OPTIONS: &str = "qcow2 or raw";
    /// Names of image files, for messages.
    pub const FILE_NAMES: &str = "NAME.raw or NAME.qcow2";

    /// The use of the format, for help texts.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Raw => "Uncompressed, sparse",
            Self::Qcow2 => "Compressed, for QEMU, OpenStack, Proxmox",
        }
    }

    /// Whether the header of an image can name other files with parts of its disk.
    pub fn can_have_backing(self) -> bool {
        match self {
            Self::Raw => false,
            Self::Qcow2 => true,
        }
    }

    /// The image name in the file name of an image, and the format.
    pub fn split_file_name(file: &str) -> Option<(&str, Self)> {
        let (name, extension) = file.rsplit_once('.')?;
        Some((name, extension.parse().ok()?))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown format name.
#[derive(Debug, thiserror::Error)]
#[error("unknown image format {0:?}, expected {expected}", expected = Format::NAMES)]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Why an image could not be opened or read. Offsets are those of the image file.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{}: cannot open the image", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{}: expected a regular file, found {found}", path.display())]
    NotFile { path: PathBuf, found: &'static str },
    #[error("{}: expected a disk image, found a directory", path.display())]
    Directory { path: PathBuf },
    #[error("{}: the file is empty", path.display())]
    Empty { path: PathBuf },
    #[error("{}: {found}; only raw and qcow2 disk images are supported", path.display())]
    Foreign { path: PathBuf, found: Foreign },
    #[error("{}: cannot read {len} bytes at offset {offset:#x}", path.display())]
    Read { path: PathBuf, offset: u64, len: usize, source: io::Error },
    #[error("{}: corrupt qcow2 image: {what} at offset {offset:#x} is {found:#x}, expected {expected}", path.display())]
    Corrupt { path: PathBuf, what: Qcow2Structure, offset: u64, found: u64, expected: String },
    #[error("{}: corrupt qcow2 image: cannot decompress the cluster at offset {offset:#x}", path.display())]
    Decompress { path: PathBuf, offset: u64, source: io::Error },
    #[error(
        "{}: decompression bomb: a file of {len} bytes contains {held} bytes of a disk, more than {limit}",
        path.display()
    )]
    Bomb {
        path: PathBuf,
        len: u64,
        /// Bytes of the disk.
        held: u64,
        limit: u64,
    },
    #[error("{}: unsupported qcow2 image with {feature}; {hint}", path.display())]
    Unsupported { path: PathBuf, feature: String, hint: &'static str },
}

impl ImageError {
    /// The hint, if any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Directory { .. } => Some("use the path of an image file in this directory".to_owned()),
            Self::Empty { .. } => Some("a download or a conversion may have failed: get the image again".to_owned()),
            Self::Foreign { path, found } => Some(found.hint(path)),
            Self::Bomb { .. } => Some("if you trust it, convert it: qemu-img convert -O raw IMAGE NEW".to_owned()),
            _ => None,
        }
    }
}

/// A disk image, opened for reading.
pub struct Image {
    inner: Inner,
}

enum Inner {
    Raw(FileSource),
    Qcow2(Box<Qcow2>),
}

impl Image {
    /// Opens the image at `path` and validates its tables; the rest is read on demand.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Self::read(ImageFile::open(path)?)
    }

    /// As [`Image::open`], for an open file; `path` is for messages.
    pub fn of(file: File, path: &Path) -> Result<Self, ImageError> {
        Self::read(ImageFile::of(file, path)?)
    }

    fn read(file: ImageFile) -> Result<Self, ImageError> {
        let inner = match Qcow2::has_magic(&file)? {
            true => Inner::Qcow2(Box::new(Qcow2::open(file)?)),
            false => match foreign::recognise(&file)? {
                Some(found) => return Err(file.foreign(found)),
                None => Inner::Raw(file.into_source()?),
            },
        };
        Ok(Self { inner })
    }

    /// The format of the image.
    pub fn format(&self) -> Format {
        match self.inner {
            Inner::Raw(_) => Format::Raw,
            Inner::Qcow2(_) => Format::Qcow2,
        }
    }

    /// The compression of its clusters, if it is a qcow2 file.
    pub fn compression(&self) -> Option<ClusterCompression> {
        match &self.inner {
            Inner::Raw(_) => None,
            Inner::Qcow2(qcow2) => Some(qcow2.compression()),
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("format", &self.format()).field("len", &self.len()).finish()
    }
}

/// Errors of the format are returned as `io::Error` of kind `InvalidData` with an [`ImageError`] inside.
impl ReadAt for Image {
    fn len(&self) -> u64 {
        match &self.inner {
            Inner::Raw(file) => file.len(),
            Inner::Qcow2(qcow2) => qcow2.len(),
        }
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.inner {
            Inner::Raw(file) => file.read_exact_at(buf, offset),
            Inner::Qcow2(qcow2) => {
                if offset.checked_add(buf.len() as u64).is_none_or(|end| end > qcow2.len()) {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                qcow2.read(buf, offset).map_err(as_io)
            }
        }
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        match &self.inner {
            Inner::Raw(file) => file.next_data(offset),
            Inner::Qcow2(qcow2) => qcow2.next_data(offset).map_err(as_io),
        }
    }
}

fn as_io(error: ImageError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
            assert_eq!(Format::split_file_name(&format!("a.b.{format}")), Some(("a.b", format)));
        }
        assert_eq!(Format::split_file_name("raw"), None);
        assert!("vmdk".parse::<Format>().is_err());
    }
}
