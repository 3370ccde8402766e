//! Overlays: qcow2 files with the differences from another disk.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use super::file::ImageFile;
use super::qcow2::{Backing, Qcow2};
use super::{ImageError, as_io, foreign};
use crate::source::ReadAt;

/// An overlay, opened for reading. As a source, it contains only its own clusters; all others read as zeros.
pub struct Overlay {
    qcow2: Qcow2,
    backing: Backing,
}

/// A run of clusters in an overlay, in bytes of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayPart {
    pub range: Range<u64>,
    /// Whether they are zeros, which are not stored.
    pub is_zero: bool,
}

impl Overlay {
    /// Opens an overlay and validates its header and tables; `path` is for messages.
    pub fn of(file: File, path: &Path) -> Result<Self, ImageError> {
        let file = ImageFile::of(file, path)?;
        if !Qcow2::has_magic(&file)? {
            return Err(file.foreign(foreign::recognise(&file)?.unwrap_or(foreign::NOT_QCOW2)));
        }
        let (qcow2, backing) = Qcow2::open_overlay(file)?;
        Ok(Self { qcow2, backing })
    }

    /// Its backing file.
    pub fn backing(&self) -> &Backing {
        &self.backing
    }

    /// Its own clusters, ascending.
    pub fn parts(&self) -> Result<Vec<OverlayPart>, ImageError> {
        let (mut parts, mut at) = (Vec::<OverlayPart>::new(), 0);
        while let Some((range, is_zero)) = self.qcow2.next_own(at)? {
            at = range.end;
            match parts.last_mut() {
                Some(last) if last.range.end == range.start && last.is_zero == is_zero => last.range.end = range.end,
                _ => parts.push(OverlayPart { range, is_zero }),
            }
        }
        Ok(parts)
    }
}

impl ReadAt for Overlay {
    fn len(&self) -> u64 {
        self.qcow2.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.qcow2.read(buf, offset).map_err(as_io)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.qcow2.next_data(offset).map_err(as_io)
    }
}
