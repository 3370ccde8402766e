//! The file of an archive, or its parts: `F.tar`, or `F.tar.000`, `F.tar.001` and so on, which are concatenated.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

use rustix::fs::copy_file_range;
use vmbake_common::message::FileError;
use vmbake_disk::source::{FileSource, ReadAt};

use super::ArchiveError;
use vmbake_common::atomic_file::Pending;
use vmbake_common::input;

/// Maximum number of parts.
const MAX_PARTS: u32 = 1000;
/// Bytes to write before starting a sync in the background.
const STEP: u64 = 64 << 20;
/// Buffer size for copying where the system cannot copy directly.
const PIECE: usize = 128 << 10;

/// Name of a part.
fn part(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number:03}"));
    name.into()
}

/// An archive opened for reading.
pub struct ArchiveParts {
    /// Each part with its offset.
    files: Vec<(u64, FileSource)>,
    len: u64,
}

impl ArchiveParts {
    /// Opens `path`, or all of its parts.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let mut parts = Self { files: Vec::new(), len: 0 };
        match open(path) {
            Ok(file) => parts.add(file),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                for number in 0..MAX_PARTS {
                    match open(&part(path, number)) {
                        Ok(file) => parts.add(file),
                        Err(source) if source.kind() == io::ErrorKind::NotFound => break,
                        Err(source) => return Err(ArchiveError::Read { path: part(path, number), source }),
                    }
                }
                if parts.files.is_empty() {
                    return Err(ArchiveError::Read { path: path.to_owned(), source });
                }
            }
            Err(source) => return Err(ArchiveError::Read { path: path.to_owned(), source }),
        }
        Ok(parts)
    }

    /// Whether the file or its first part exists.
    pub fn exist(path: &Path) -> bool {
        [path.to_owned(), part(path, 0)].iter().any(|path| path.symlink_metadata().is_ok())
    }

    fn add(&mut self, file: FileSource) {
        let start = self.len;
        self.len = self.len.saturating_add(file.len());
        self.files.push((start, file));
    }
}

fn open(path: &Path) -> io::Result<FileSource> {
    FileSource::new(input::open_regular(path)?)
}

impl ReadAt for ArchiveParts {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        let first = self.files.partition_point(|(start, _)| *start <= offset).saturating_sub(1);
        for (start, file) in &self.files[first..] {
            let inside = offset.saturating_sub(*start);
            let left = usize::try_from(file.len().saturating_sub(inside)).unwrap_or(usize::MAX);
            let (part, rest) = buf.split_at_mut(left.min(buf.len()));
            file.read_exact_at(part, inside)?;
            offset += part.len() as u64;
            buf = rest;
            if buf.is_empty() {
                return Ok(());
            }
        }
        if buf.is_empty() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// An archive being written. Parts are named when all are complete.
pub struct PartWriter {
    path: PathBuf,
    force: bool,
    /// Maximum size of a part in bytes; `None` for a single file.
    limit: Option<u64>,
    parts: Vec<Pending>,
    /// Bytes of the last part.
    len: u64,
    /// Bytes since the last sync.
    unsynced: u64,
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl PartWriter {
    /// Starts an archive.
    pub fn new(path: &Path, limit: Option<u64>, force: bool) -> Result<Self, ArchiveError> {
        let mut writer =
            Self { path: path.to_owned(), force, limit, parts: Vec::new(), len: 0, unsynced: 0, syncing: None };
        writer.begin()?;
        Ok(writer)
    }

    fn begin(&mut self) -> Result<(), ArchiveError> {
        let path = self.limit.map_or_else(|| self.path.clone(), |_| part(&self.path, self.number()));
        self.parts.push(Pending::create(&path, self.force)?);
        self.len = 0;
        Ok(())
    }

    fn number(&self) -> u32 {
        u32::try_from(self.parts.len()).unwrap_or(MAX_PARTS)
    }

    /// The remaining size of the last part, at most `wanted`.
    fn room(&mut self, wanted: u64) -> Result<u64, ArchiveError> {
        let Some(limit) = self.limit else { return Ok(wanted) };
        if self.len >= limit {
            if self.number() >= MAX_PARTS {
                let source = io::Error::other(format!("more than {MAX_PARTS} parts"));
                return Err(self.failed(source));
            }
            self.begin()?;
        }
        Ok(wanted.min(limit - self.len))
    }

    fn failed(&self, source: io::Error) -> ArchiveError {
        ArchiveError::File(FileError::new(self.path.clone(), "write", source))
    }

    fn file(&self) -> Result<&File, ArchiveError> {
        let last = self.parts.last().map(Pending::file);
        last.ok_or_else(|| self.failed(io::ErrorKind::NotFound.into()))
    }

    /// Bytes written, of all parts.
    pub fn total(&self) -> u64 {
        let full = u64::from(self.number().saturating_sub(1));
        self.limit.map_or(self.len, |limit| full.saturating_mul(limit).saturating_add(self.len))
    }

    /// Appends bytes.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), ArchiveError> {
        while !bytes.is_empty() {
            let room = usize::try_from(self.room(bytes.len() as u64)?).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.file()?.write_all_at(now, self.len).map_err(|source| self.failed(source))?;
            bytes = rest;
            self.wrote(now.len() as u64)?;
        }
        Ok(())
    }

    /// Appends the first `len` bytes of a file, copied by the system if possible.
    pub fn copy(&mut self, file: &File, len: u64) -> Result<(), ArchiveError> {
        let mut from = 0;
        while from < len {
            let room = self.room(len - from)?;
            let copied = copy(file, from, self.file()?, self.len, room).map_err(|source| self.failed(source))?;
            from += copied;
            self.wrote(copied)?;
        }
        Ok(())
    }

    /// Counts appended bytes, and syncs from time to time, so that the last sync is short.
    fn wrote(&mut self, len: u64) -> Result<(), ArchiveError> {
        self.len += len;
        self.unsynced += len;
        if self.unsynced >= STEP && self.syncing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.synced()?;
            let file = self.file()?.try_clone().map_err(|source| self.failed(source))?;
            let thread = Builder::new().spawn(move || file.sync_data()).map_err(|source| self.failed(source))?;
            (self.syncing, self.unsynced) = (Some(thread), 0);
        }
        Ok(())
    }

    /// Waits for the last sync, whose error is reported only once.
    fn synced(&mut self) -> Result<(), ArchiveError> {
        let Some(thread) = self.syncing.take() else { return Ok(()) };
        let done = thread.join().unwrap_or_else(|_| Err(io::Error::other("the sync thread ended early")));
        done.map_err(|source| self.failed(source))
    }

    /// Names all parts and returns their paths. Additional parts of an earlier archive are removed.
    pub fn publish(mut self) -> Result<Vec<PathBuf>, ArchiveError> {
        self.synced()?;
        let Self { path, limit, parts, .. } = self;
        let mut names = Vec::new();
        for (number, pending) in (0u32..).zip(parts) {
            pending.publish()?;
            names.push(limit.map_or_else(|| path.clone(), |_| part(&path, number)));
        }
        let first_left = if limit.is_some() { u32::try_from(names.len()).unwrap_or(MAX_PARTS) } else { MAX_PARTS };
        for number in first_left..MAX_PARTS {
            let left = part(&path, number);
            match std::fs::remove_file(&left) {
                Ok(()) => {}
                Err(source) if source.kind() == io::ErrorKind::NotFound => break,
                Err(source) => return Err(ArchiveError::File(FileError::new(left, "write", source))),
            }
        }
        Ok(names)
    }
}

/// Copies up to `len` bytes; returns how many.
fn copy(from: &File, from_at: u64, to: &File, to_at: u64, len: u64) -> io::Result<u64> {
    let (mut source_at, mut target_at) = (from_at, to_at);
    // So that a sync can start before a long file is complete.
    let most = usize::try_from(len.min(STEP)).unwrap_or(PIECE);
    let copied = match copy_file_range(from, Some(&mut source_at), to, Some(&mut target_at), most) {
        Ok(copied) => copied,
        // Files on different file systems, or on one without support.
        Err(
            rustix::io::Errno::XDEV
            | rustix::io::Errno::INVAL
            | rustix::io::Errno::NOSYS
            | rustix::io::Errno::OPNOTSUPP,
        ) => {
            let mut buffer = vec![0; most.min(PIECE)];
            let read = from.read_at(&mut buffer, from_at)?;
            to.write_all_at(&buffer[..read], to_at)?;
            read
        }
        Err(error) => return Err(error.into()),
    };
    match copied {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "an input file was truncated while it was being read")),
        copied => Ok(copied as u64),
    }
}
