//! The disk that takes what the machine writes: a qcow2 file on top of the image, which is only read.
//!
//! Specification: `docs/interop/qcow2.rst` of QEMU; version 3, big endian, clusters of 64 KiB. A new overlay is empty: header,
//! reference counts and an L1 table of zeros. A header extension of our own says which content the image has, so that an overlay
//! is not used on top of an image that was made anew; QEMU skips extensions that it does not know.

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

/// How large the disk is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many bytes more than the image has.
    More(u64),
}

/// Why the machine has no disk.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    #[error("a disk of {size} bytes is smaller than the image, which has {min}")]
    Smaller {
        /// The size that is asked for.
        size: u64,
        min: u64,
    },
    #[error("{path}: is the image itself, which stays as it is")]
    IsImage { path: PathBuf },
    #[error("{path}: not a disk that --disk made: {found}")]
    Foreign { path: PathBuf, found: &'static str },
    #[error("{path}: belongs on top of {found}, not of {expected}")]
    OtherImage { path: PathBuf, found: PathBuf, expected: PathBuf },
    #[error("{path}: {image} was changed after this disk was begun on top of it")]
    Changed { path: PathBuf, image: PathBuf },
    #[error("{path}: has {found} bytes, asked for are {expected}")]
    OtherSize {
        path: PathBuf,
        found: u64,
        /// The one that is asked for.
        expected: u64,
    },
    #[error("{path}: a running machine has this disk")]
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
            Self::Smaller { .. } => "--size takes a larger size, or +1G for one more than the image has",
            Self::IsImage { .. } | Self::Foreign { .. } => {
                "--disk takes a file that does not exist yet, or one that an earlier --disk made"
            }
            Self::OtherImage { .. } | Self::Changed { .. } => {
                "what the machine wrote fits that image only: remove the disk, or name another"
            }
            Self::OtherSize { .. } => "--size is for a new disk: leave it out, or remove the disk",
            Self::Busy { .. } => "end that machine first, or name another disk",
            Self::Scratch(error) => return error.hint(),
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Create, Scratch, File, Message);
}

/// Why no disk has such a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeFault {
    #[error("it is not made of whole sectors of 512 bytes")]
    Sectors,
    #[error("qcow2 ends at 2 PiB")]
    Format,
}

impl Hint for SizeFault {}

/// The machine's disk.
pub struct Overlay {
    /// Open for reading and writing.
    pub file: File,
    /// Bytes of the disk.
    pub size: u64,
    /// Whether it lives on.
    pub kept: bool,
}

impl Overlay {
    /// A disk that is gone when the machine ends.
    pub fn anonymous(scratch: &Scratch, guest: &Guest, size: Option<Size>) -> Result<Self, OverlayError> {
        let size = wanted(guest, size)?;
        let file = scratch.file()?;
        let path = guest.path.as_path();
        write(&file, &Header::new(size, guest, path)?, path)?;
        Ok(Self { file, size, kept: false })
    }

    /// The disk at `path`, made when it does not exist: whole or not at all.
    pub fn keep(path: &Path, guest: &Guest, size: Option<Size>) -> Result<Self, OverlayError> {
        if !path.exists() {
            let new = wanted(guest, size)?;
            // What a machine writes may be secret.
            let pending = Pending::create_private(path, false)?;
            write(pending.file(), &Header::new(new, guest, path)?, path)?;
            match pending.publish_new() {
                // Another machine has just made it.
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
            return Err(OverlayError::Foreign { path: path.to_owned(), found: "no regular file" });
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(open)?;
        // QEMU locks single bytes of the file; it gets them all back before QEMU wants them.
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

/// How large the disk on top of an image is to be.
fn wanted(guest: &Guest, size: Option<Size>) -> Result<u64, OverlayError> {
    let refuse = |size, fault| Err(OverlayError::Message(message!("a disk of {size} bytes cannot be had: {fault}")));
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
