//! Files that a program both reads and writes through its descriptors. Its output is buffered, so it may read such a file without its
//! latest writes.

use std::collections::BTreeSet;

use crate::eval::Run;
use crate::shell::Shell;

/// Buffer of the C library for the output to a file, in bytes: `st_blksize`.
const BUFFER: usize = 4096;

/// Files that the running program has read and written to.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    reads: BTreeSet<u64>,
    written: BTreeSet<u64>,
    /// Bytes written to files that it has read.
    amount: usize,
}

impl Shell<'_> {
    /// Runs a program that has neither read nor written anything.
    pub(crate) fn with_own_traffic<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.traffic.replace(Traffic::default());
        let result = run(self);
        self.traffic = outer;
        result
    }

    /// Notes that the program reads a file.
    pub(crate) fn note_read(&mut self, id: u64) -> Run<()> {
        let Some(traffic) = &mut self.traffic else { return Ok(()) };
        traffic.reads.insert(id);
        if traffic.written.contains(&id) {
            return self.unsupported(b"a program that reads the file that it writes to");
        }
        Ok(())
    }

    /// Notes that the program writes to an open file.
    pub(crate) fn note_written(&mut self, id: u64, len: usize) -> Run<()> {
        let Some(traffic) = &mut self.traffic else { return Ok(()) };
        traffic.written.insert(id);
        if traffic.reads.contains(&id) {
            traffic.amount = traffic.amount.saturating_add(len);
            if traffic.amount > BUFFER {
                return self.unsupported(b"a program that reads the file that it writes to");
            }
        }
        Ok(())
    }
}
