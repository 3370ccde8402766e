//! The overlay for the machine's writes: a qcow2 file backed by the image, which is only read.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU; version 3, big endian, clusters of 64 KiB. A new overlay is empty: header,
//! reference counts and an L1 table of zeros. A custom header extension identifies the image's content, so that an overlay
//! is not used with a rebuilt image; QEMU ignores unknown extensions.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::guest::Guest;
use super::scratch::{Scratch, ScratchError};
use header::Header;
use vmbake_common::atomic_file::{Pending, PublishError};
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::{FileError, Message};

mod header;

/// Disk size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Absolute size.
    Bytes(u64),
    /// Increment over the image's size.
    More(u64),
}

/// Error while opening the overlay.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    #[error("disk size {size} is smaller than the image, which has {min} bytes")]
    Smaller {
        /// Requested size.
        size: u64,
        min: u64,
    },
    #[error("{path}: refusing to write to the image itself")]
    IsImage { path: PathBuf },
    #[error("{path}: not created by --disk: {found}")]
    Foreign { path: PathBuf, found: &'static str },
    #[error("{path}: expected backing file {expected}, found {found}")]
    OtherImage { path: PathBuf, found: PathBuf, expected: PathBuf },
    #[error("{path}: its backing file {image} has changed")]
    Changed { path: PathBuf, image: PathBuf },
    #[error("{path}: expected {expected} bytes, found {found}")]
    OtherSize { path: PathBuf, found: u64, expected: u64 },
    #[error("{path}: in use by a running machine")]
    Busy { path: PathBuf },
    #[error(transparent)]
    Create(#[from] PublishError),
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for OverlayError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Smaller { .. } => "choose a larger --size, or +1G to add to the image's size",
            Self::IsImage { .. } | Self::Foreign { .. } => {
                "use --disk with a new file, or with one that --disk created earlier"
            }
            Self::OtherImage { .. } | Self::Changed { .. } => {
                "the machine's writes are valid for that image only: remove the disk, or choose another one"
            }
            Self::OtherSize { .. } => "--size applies to a new disk only: omit it, or remove the disk",
            Self::Busy { .. } => "stop that machine first, or choose another disk",
            Self::Scratch(error) => return error.hint(),
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Create, Scratch, File, Message);
}

/// Why a disk size is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeFault {
    #[error("not a multiple of 512 bytes")]
    Sectors,
    #[error("more than 2 PiB")]
    Format,
}

impl Hint for SizeFault {}

pub struct Overlay {
    pub file: File,
    /// Disk size in bytes.
    pub size: u64,
    /// Whether it is kept.
    pub kept: bool,
}

impl Overlay {
    /// A temporary disk.
    pub fn anonymous(scratch: &Scratch, guest: &Guest, size: Option<Size>) -> Result<Self, OverlayError> {
        let size = wanted(guest, size)?;
        let file = scratch.file()?;
        let path = guest.path.as_path();
        write(&file, &Header::new(size, guest, path)?, path)?;
        Ok(Self { file, size, kept: false })
    }

    /// Opens the disk at `path`, or creates it atomically.
    pub fn keep(path: &Path, guest: &Guest, size: Option<Size>) -> Result<Self, OverlayError> {
        if !path.exists() {
            let new = wanted(guest, size)?;
            // The machine's data can be secret.
            let pending = Pending::create_private(path, false)?;
            write(pending.file(), &Header::new(new, guest, path)?, path)?;
            match pending.publish_new() {
                // Another process has just created it.
                Ok(()) | Err(PublishError::Exists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Self::reuse(path, guest, size)
    }

    fn reuse(path: &Path, guest: &Guest, size: Option<Size>) -> Result<Self, OverlayError> {
        let open = |source| OverlayError::File(FileError::new(path, "open the disk", source));
        let identity = guest.identity().map_err(open)?;
        let metadata = path.metadata().map_err(open)?;
        if (metadata.dev(), metadata.ino()) == identity.file {
            return Err(OverlayError::IsImage { path: path.to_owned() });
        }
        if !metadata.is_file() {
            return Err(OverlayError::Foreign { path: path.to_owned(), found: "not a regular file" });
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(open)?;
        // QEMU locks single bytes of the file; this lock is released before QEMU starts.
        let lock = |operation| rustix::fs::fcntl_lock(&file, operation);
        if lock(FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(OverlayError::Busy { path: path.to_owned() });
        }
        lock(FlockOperation::Unlock).map_err(|error| open(error.into()))?;
        let foreign = |found| OverlayError::Foreign { path: path.to_owned(), found };
        let header = Header::read(&file).map_err(open)?.map_err(foreign)?;
        let found = path.parent().unwrap_or(Path::new("")).join(&header.backing);
        if found.metadata().map(|found| (found.dev(), found.ino())).ok() != Some(identity.file) {
            let (path, expected) = (path.to_owned(), guest.path.clone());
            return Err(OverlayError::OtherImage { path, found, expected });
        }
        if header.content.is_some_and(|content| content != identity.content) {
            return Err(OverlayError::Changed { path: path.to_owned(), image: guest.path.clone() });
        }
        match size.map(|_| wanted(guest, size)).transpose()? {
            Some(expected) if expected != header.size => {
                Err(OverlayError::OtherSize { path: path.to_owned(), found: header.size, expected })
            }
            _ => Ok(Self { file, size: header.size, kept: true }),
        }
    }
}

/// Computes the disk size for an image.
fn wanted(guest: &Guest, size: Option<Size>) -> Result<u64, OverlayError> {
    let refuse = |size, fault| Err(OverlayError::Message(message!("invalid disk size {size}: {fault}")));
    let size = match size {
        None => guest.size,
        Some(Size::Bytes(size)) if size < guest.size => {
            return Err(OverlayError::Smaller { size, min: guest.size });
        }
        Some(Size::Bytes(size)) => size,
        Some(Size::More(more)) => guest.size.saturating_add(more),
    };
    match size {
        _ if !size.is_multiple_of(512) => refuse(size, SizeFault::Sectors),
        _ if size > header::MAX_SIZE => refuse(size, SizeFault::Format),
        _ => Ok(size),
    }
}

fn write(file: &File, header: &Header, path: &Path) -> Result<(), OverlayError> {
    header.write(file).map_err(|source| OverlayError::File(FileError::new(path, "write the disk", source)))
}
