//! An open file as a source; its holes are found with `SEEK_DATA`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::ReadAt;

/// A regular file, opened for reading; its holes are found with `SEEK_DATA`.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
}

impl FileSource {
    /// Wraps an open regular file; its length is read once, here.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }
}

impl ReadAt for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        if offset >= self.len {
            return Ok(None);
        }
        // The file position is not shared state here: all reads are positioned.
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(start) => {
                let end = rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Hole(start))?;
                Ok((start < self.len).then(|| start..end.min(self.len)))
            }
            Err(rustix::io::Errno::NXIO) => Ok(None),
            Err(rustix::io::Errno::INVAL) => Ok(Some(offset..self.len)),
            Err(e) => Err(e.into()),
        }
    }
}
