//! Finds the data of a disk that an archive must contain. Written zeros count as holes, too.

use std::num::NonZeroUsize;
use std::ops::Range;

use vmbake_disk::disk::Disk;
use vmbake_disk::write::{Chunk, Needs, Sink, WriteError, write_to};

/// Shorter runs of zeros are stored: compressed, they are smaller than an entry in the list of holes, and the list
/// stays short.
const LEAST_HOLE: u64 = 64 << 10;

/// The runs of data of a disk, ascending, with a hole between any two. They are aligned to 4096 bytes, or end with the
/// disk.
pub(super) fn runs(
    disk: &Disk,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Range<u64>>, WriteError> {
    write_to(disk, Runs(Vec::new()), threads, progress)
}

struct Runs(Vec<Range<u64>>);

impl Runs {
    fn add(&mut self, run: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if run.start - last.end < LEAST_HOLE => last.end = run.end,
            _ => self.0.push(run),
        }
    }
}

impl Sink for Runs {
    type Written = Vec<Range<u64>>;
    type Error = WriteError;

    fn needs(&self) -> Needs {
        Needs::blocks(None)
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), WriteError> {
        for block in chunk.blocks() {
            block.data_runs().for_each(|(at, data)| self.add(at..at + data.len() as u64));
        }
        Ok(())
    }

    fn finish(self) -> Result<Self::Written, WriteError> {
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_holes_are_data() {
        let mut runs = Runs(Vec::new());
        [0..4096, 8192..12288, 77823..81920, 147456..151552, 217_088..221_184]
            .into_iter()
            .for_each(|run| runs.add(run));
        assert_eq!(runs.0, [0..81920, 147456..151552, 217_088..221_184]);
    }
}
