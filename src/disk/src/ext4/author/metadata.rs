//! The metadata of a volume in memory: the library's output in ascending order, without blocks of zeros.

use std::io;

use mkext4::RegionSink;

use crate::ext4::{BLOCK, BLOCK_LEN};

/// Collects the metadata.
#[derive(Default)]
pub(super) struct Metadata {
    pub(super) bytes: Vec<u8>,
    pub(super) runs: Vec<Run>,
    /// Whether to discard all but the first block.
    pub(super) only_first: bool,
}

/// Metadata at `at` of the volume, stored at `offset` of the buffer.
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
}

impl Metadata {
    /// A mutable block of the volume; `None` if it is all zeros.
    pub(super) fn block(&mut self, block: u64) -> Option<&mut [u8]> {
        let at = block * BLOCK;
        let run = self.runs.get(self.runs.partition_point(|run| run.at + run.len <= at))?;
        let start = usize::try_from(run.offset + at.checked_sub(run.at)?).ok()?;
        self.bytes.get_mut(start..start + BLOCK_LEN)
    }

    /// Removes blocks that have become zeros.
    pub(super) fn compact(self) -> Self {
        let mut compact = Self { bytes: Vec::with_capacity(self.bytes.len()), ..Self::default() };
        let mut rest = &self.bytes[..];
        for run in &self.runs {
            let (bytes, behind) = rest.split_at(usize::try_from(run.len).map_or(rest.len(), |len| len.min(rest.len())));
            compact.add(run.at, bytes);
            rest = behind;
        }
        compact
    }

    fn add(&mut self, offset: u64, bytes: &[u8]) {
        for (at, block) in (offset..).step_by(BLOCK_LEN).zip(bytes.chunks(BLOCK_LEN)) {
            if block.iter().all(|byte| *byte == 0) {
                continue;
            }
            let (len, offset) = (block.len() as u64, self.bytes.len() as u64);
            self.bytes.extend_from_slice(block);
            match self.runs.last_mut() {
                Some(run) if run.at + run.len == at => run.len += len,
                _ => self.runs.push(Run { at, len, offset }),
            }
        }
    }
}

impl RegionSink for Metadata {
    fn data(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if !self.only_first || offset == 0 {
            self.add(offset, bytes);
        }
        Ok(())
    }

    fn zeros(&mut self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }
}
