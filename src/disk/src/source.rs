//! Sources of bytes: sources that can be read at any offset, and maps of ranges of them.
//!
//! A file of a tree, a file system and a whole disk are each a [`Map`]: runs of bytes in sources, with holes that read
//! as zeros. Nothing is copied until a writer reads the bytes.
//!
//! Bytes may have a [`ContentId`]: a digest of their origin, so that a writer recognizes bytes it has written before
//! without reading them. Equal IDs imply equal bytes; equal bytes may have different IDs.

mod file;
mod content_id;
mod window;
mod map;

use std::io;
use std::ops::Range;

use sha2::{Digest, Sha256};

pub use content_id::{ContentId, Identified};
pub use file::FileSource;
pub use map::{Extent, Map, MapReader, SourceId, Sources};
pub use window::Window;

/// Bytes that can be read at any offset, by several threads at once.
pub trait ReadAt: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from `offset` (bytes from the start). Fails with `UnexpectedEof` past the end.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// The first range at or after `offset` that may contain anything but zeros; `None` if only zeros follow.
    ///
    /// By default, everything up to the end.
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        Ok((offset < self.len()).then(|| offset..self.len()))
    }

    /// The ID of the bytes of `range`; `None` if the source has none for them, or ends before.
    fn content_id(&self, _range: Range<u64>) -> Option<ContentId> {
        None
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(self.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn content_id(&self, range: Range<u64>) -> Option<ContentId> {
        let bytes = self.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
        Some(ContentId(Sha256::new_with_prefix(content_id::BYTES).chain_update(bytes).finalize().into()))
    }
}
