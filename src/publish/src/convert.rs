//! Converts a disk image to another format, as clouds and hypervisors require it.
//!
//! The contents of the disk are never changed. Formats specific to a cloud are described as a [`Disk`], a map of ranges
//! of the image between small generated parts, so that nothing is copied before it is written. The output depends only
//! on the bytes of the disk.

mod data;
mod gce;
mod vhd;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_common::message::{FileError, Message};
use vmbake_disk::disk::Disk;
use vmbake_disk::image::{Format, Image, ImageError};
use vmbake_disk::source::{Map, ReadAt, Sources};
use vmbake_disk::write::{Output, WriteError, write};

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::packed::{self, PackError, Packing};
use vmbake_common::atomic_file::{Pending, PublishError};
use vmbake_common::hint::Hint;
use vmbake_common::progress::{Event, Progress};
use vmbake_common::qcow2_compression::Qcow2Compression;

pub struct ConvertRequest<'a> {
    pub image: &'a Path,
    /// The target format.
    pub format: ConvertedFormat,
    /// Compression of a qcow2 image.
    pub compression: Qcow2Compression,
    pub out: &'a Path,
    /// Whether an existing file may be replaced.
    pub force: bool,
    /// Threads that read, hash and compress.
    pub threads: NonZeroUsize,
}

/// A format that [`convert`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertedFormat {
    /// A format that can also be read.
    Disk(Format),
    /// A compressed tar archive for Google Compute Engine.
    Gce,
    /// A fixed virtual hard disk, as required by Azure.
    Vhd,
}

impl ConvertedFormat {
    /// Every format.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Gce, Self::Vhd].into_iter().chain(Format::ALL.map(Self::Disk))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Disk(format) => format.name(),
            Self::Gce => "gce",
            Self::Vhd => "vhd",
        }
    }

    /// The use of the format, for help texts.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Disk(format) => format.purpose(),
            Self::Gce => "For Google Compute Engine: disk.raw in a sparse tar archive, compressed with gzip",
            Self::Vhd => "For Azure: fixed-size VHD",
        }
    }
}

impl fmt::Display for ConvertedFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Length of the disk in bytes.
    pub disk_len: u64,
    /// Length of the file in bytes, including holes.
    pub file_len: u64,
    /// Checksum of the file.
    pub checksum: Checksum,
}

/// Why an image was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: a {format} image cannot hold a disk of {len} bytes: expected a multiple of one {unit}")]
    Unaligned {
        path: PathBuf,
        format: ConvertedFormat,
        /// Length of the disk in bytes.
        len: u64,
        /// The required alignment.
        unit: Unit,
    },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

/// The alignment of a disk's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 2^20 bytes.
    MiB,
    /// 2^30 bytes.
    GiB,
}

impl Unit {
    const fn bytes(self) -> u64 {
        match self {
            Self::MiB => 1 << 20,
            Self::GiB => 1 << 30,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MiB => "MiB",
            Self::GiB => "GiB",
        })
    }
}

impl Hint for ConvertError {
    fn hint(&self) -> Option<String> {
        let Self::Unaligned { len, unit, .. } = self else { return None };
        Some(lengthen(*len, *unit))
    }

    vmbake_common::causes!(Image, Publish, File, Message);
}

/// The hint for enlarging a disk of `len` bytes to a multiple of the unit.
pub(super) fn lengthen(len: u64, unit: Unit) -> String {
    let whole = len.div_ceil(unit.bytes());
    let letter = if unit == Unit::GiB { 'G' } else { 'M' };
    format!(
        "bake it with --size {whole}{letter}; for other images, `qemu-img resize COPY {whole}{letter}`, then `sgdisk --move-second-header COPY` for a raw copy"
    )
}

/// Converts an image.
pub fn convert(request: &ConvertRequest<'_>, progress: &Progress) -> Result<Converted, ConvertError> {
    let image: Arc<dyn ReadAt> = Arc::new(Image::open(request.image)?);
    let disk_len = image.len();
    check_length(request, disk_len)?;
    let pending = Pending::create(request.out, request.force)?;
    let (file_len, checksum) = match request.format {
        ConvertedFormat::Disk(format) => write_disk(request, &whole(image), format, &pending, progress)?,
        ConvertedFormat::Vhd => {
            let unreadable = |source| ConvertError::File(FileError::new(request.image, "read the disk", source));
            let disk = vhd::disk(image, request.threads).map_err(unreadable)?;
            write_disk(request, &disk, Format::Raw, &pending, progress)?
        }
        ConvertedFormat::Gce => write_archive(request, &whole(image), &pending, progress)?,
    };
    pending.publish()?;
    progress.emit(Event::Wrote { path: request.out.to_owned(), bytes: file_len });
    Ok(Converted { disk_len, file_len, checksum })
}

/// Fails unless the format supports disks of that length. Padding would leave the backup partition table in the wrong
/// place.
fn check_length(request: &ConvertRequest<'_>, len: u64) -> Result<(), ConvertError> {
    let (unit, most) = match request.format {
        ConvertedFormat::Disk(_) => return Ok(()),
        ConvertedFormat::Gce => (Unit::GiB, gce::MAX_LEN),
        ConvertedFormat::Vhd => (Unit::MiB, vhd::MAX_LEN),
    };
    let (path, format) = (request.image.to_owned(), request.format);
    if !len.is_multiple_of(unit.bytes()) {
        return Err(ConvertError::Unaligned { path, format, len, unit });
    }
    if len > most {
        Err(ConvertError::Message(message!(
            "{}: a {format} image cannot hold a disk of {len} bytes, the maximum is {most}",
            path.display()
        )))
    } else {
        Ok(())
    }
}

/// An image as a disk.
fn whole(image: Arc<dyn ReadAt>) -> Disk {
    let (mut sources, len) = (Sources::default(), image.len());
    let source = sources.add(image);
    Disk::new(Map::whole(source, 0, len), sources)
}

fn write_disk(
    request: &ConvertRequest<'_>,
    disk: &Disk,
    format: Format,
    pending: &Pending,
    progress: &Progress,
) -> Result<(u64, Checksum), ConvertError> {
    let bar = progress.bar("writing", disk.len());
    let output = Output { format, file: pending.file(), compression: request.compression.into() };
    let written = write(disk, &[output], request.threads, &|len| bar.inc(len));
    bar.finish_and_clear();
    let written = written.map_err(|source| write_error(request, source))?;
    // There is one result per output.
    written
        .first()
        .map(|file| (file.file_len, file.digest.into()))
        .ok_or_else(|| write_error(request, WriteError::ThreadLost))
}

fn write_archive(
    request: &ConvertRequest<'_>,
    disk: &Disk,
    pending: &Pending,
    progress: &Progress,
) -> Result<(u64, Checksum), ConvertError> {
    let bar = progress.bar("reading", disk.len());
    let runs = data::runs(disk, request.threads, &|len| bar.inc(len));
    bar.finish_and_clear();
    let archive = gce::archive(disk, &runs.map_err(|source| write_error(request, source))?);
    let bar = progress.bar("writing", archive.len());
    let mut file = pending.file();
    let written = packed::write(&archive, Packing::Gzip, &mut file, request.threads, &|len| bar.inc(len));
    bar.finish_and_clear();
    let written = written.map_err(|error| match error {
        PackError::Read(source) => ConvertError::File(FileError::new(request.image, "read the disk", source)),
        PackError::Write(source) => ConvertError::File(FileError::new(request.out, "write", source)),
    })?;
    Ok((written.len, Checksum::Bytes(written.digest)))
}

/// Reports an unreadable image as an input error.
fn write_error(request: &ConvertRequest<'_>, error: WriteError) -> ConvertError {
    match error {
        WriteError::Read { source, .. } => ConvertError::File(FileError::new(request.image, "read the disk", source)),
        source => ConvertError::Message(message!("{}: cannot write the disk", request.out.display()).by(source)),
    }
}
