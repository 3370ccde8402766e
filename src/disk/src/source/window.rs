//! A part of another source.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{ContentId, ReadAt};

/// A byte range of another source, such as a partition of a disk.
pub struct Window {
    inner: Arc<dyn ReadAt>,
    start: u64,
    len: u64,
}

impl Window {
    /// Narrows `inner` to `range`; fails with `UnexpectedEof` if it exceeds the source.
    pub fn new(inner: Arc<dyn ReadAt>, range: Range<u64>) -> io::Result<Self> {
        if range.start > range.end || range.end > inner.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { inner, start: range.start, len: range.end - range.start })
    }
}

impl ReadAt for Window {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buf.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.inner.read_exact_at(buf, self.start + offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        if offset >= self.len {
            return Ok(None);
        }
        let end = self.start + self.len;
        let data = self.inner.next_data(self.start + offset)?.filter(|data| data.start < end);
        Ok(data.map(|data| data.start - self.start..data.end.min(end) - self.start))
    }

    fn content_id(&self, range: Range<u64>) -> Option<ContentId> {
        if range.end > self.len || range.start > range.end {
            return None;
        }
        self.inner.content_id(self.start + range.start..self.start + range.end)
    }
}
