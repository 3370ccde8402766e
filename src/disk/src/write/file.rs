//! A file that is synced in the background while it is written, so that the final sync is short.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::WriteError;
use crate::image::Format;

/// Bytes per write. For larger writes, Linux allocates memory in large pieces, which in a virtual machine the host must
/// provide first: 1 MiB at a time took ten times as long.
pub const PIECE: usize = 128 << 10;

/// Bytes to write before a sync: each sync waits for the cache of the disk.
const STEP: u64 = 32 << 20;

/// An output, by its format.
pub struct OutputFile<'a> {
    format: Format,
    file: &'a File,
    written: Cell<u64>,
    syncing: Option<Syncing>,
}

/// The sync thread, which waits for requests.
struct Syncing {
    orders: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl<'a> OutputFile<'a> {
    /// An empty file, extended to a hole of `len` bytes.
    pub fn new(format: Format, file: &'a File, len: u64) -> Result<Self, WriteError> {
        let same =
            file.try_clone().map_err(|source| WriteError::Output { format, operation: "open", offset: 0, source })?;
        // One request can wait while another is being processed.
        let (orders, inbox) = sync_channel(1);
        let sync = move || inbox.iter().try_for_each(|()| same.sync_data());
        let thread = Builder::new().spawn(sync).map_err(|source| WriteError::Thread { source })?;
        let output = Self { format, file, written: Cell::new(0), syncing: Some(Syncing { orders, thread }) };
        output.set_len(len)?;
        Ok(output)
    }

    /// Truncates or extends it.
    pub fn set_len(&self, len: u64) -> Result<(), WriteError> {
        self.file.set_len(len).map_err(|source| self.error("extend", len, source))
    }

    /// Writes `bytes` at `at`.
    pub fn write(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        for (piece, at) in bytes.chunks(PIECE).zip((at..).step_by(PIECE)) {
            self.file.write_all_at(piece, at).map_err(|source| self.error("write", at, source))?;
        }
        let before = self.written.get();
        self.written.set(before + bytes.len() as u64);
        if self.written.get() / STEP > before / STEP
            && let Some(syncing) = &self.syncing
        {
            // One waiting request is enough; if the thread has ended, its error is reported at the end.
            let _waits = syncing.orders.try_send(());
        }
        Ok(())
    }

    /// Syncs the rest. The system reports an error only once, to whichever sync comes next.
    pub fn finish(mut self) -> Result<(), WriteError> {
        let synced = self.syncing.take().map_or(Ok(Ok(())), Syncing::end)?;
        let synced = synced.and_then(|()| self.file.sync_all());
        synced.map_err(|source| self.error("sync", 0, source))
    }

    fn error(&self, operation: &'static str, offset: u64, source: io::Error) -> WriteError {
        WriteError::Output { format: self.format, operation, offset, source }
    }
}

/// After an error, the thread must release the file.
impl Drop for OutputFile<'_> {
    fn drop(&mut self) {
        let _ended = self.syncing.take().map(Syncing::end);
    }
}

impl Syncing {
    /// Waits for the thread, and returns its result.
    fn end(self) -> Result<io::Result<()>, WriteError> {
        drop(self.orders);
        self.thread.join().map_err(|_| WriteError::ThreadLost)
    }
}
