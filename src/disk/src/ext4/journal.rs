//! The journal (jbd2, `Documentation/filesystems/ext4/journal.rst`): committed changes that are not in their final
//! place yet.
//!
//! Shows a volume that needs recovery as after the next mount. Nothing is written: blocks of the journal are shown in
//! place of those they replace. All integers are big endian, blocks are counted from the journal's start unless they
//! are the volume's.

mod log;
mod overlay;
mod superblock;

use std::sync::Arc;

use super::corruption::JournalFault;
use super::inodes;
use super::mapping::{self, Budget, Run};
use super::superblock::Super;
use super::{Location, ReadError};
use crate::source::ReadAt;
use log::Log;
use overlay::Overlay;
use superblock::JournalSuper;

/// Hint for a journal that cannot be replayed.
const MOUNT: &str = "mount it once or run `e2fsck -p` on it";

/// The volume after replaying its journal, if it needs recovery.
pub(super) fn replayed(source: Arc<dyn ReadAt>) -> Result<Arc<dyn ReadAt>, ReadError> {
    let volume = Super::open(&*source)?;
    if !volume.features.needs_recovery() {
        return Ok(source);
    }
    if volume.journal_inode == 0 {
        let feature = "an external journal that needs recovery";
        return Err(ReadError::unsupported(Location::Superblock, feature, MOUNT));
    }
    let volume = volume.with_tables()?;
    let journal = Journal::open(&volume)?;
    let super_block = JournalSuper::read(&journal)?;
    let blocks = Log::read(&journal, &super_block)?.replay();
    let block = volume.block;
    Ok(Arc::new(Overlay::new(source.clone(), block, blocks)))
}

/// A journal in an inode of the volume.
struct Journal<'a> {
    volume: &'a Super<'a>,
    runs: Vec<Run>,
}

impl<'a> Journal<'a> {
    fn open(volume: &'a Super<'a>) -> Result<Self, ReadError> {
        let number = volume.journal_inode;
        let missing = || ReadError::corrupt(Location::Inode(number), JournalFault::Missing);
        let node = inodes::read_any(volume, number)?.ok_or_else(missing)?;
        let mut budget = Budget::of_journal(volume);
        let runs = mapping::read(volume, &node, &mut budget)?;
        budget.check_claims()?;
        Ok(Self { volume, runs })
    }

    /// The block of the volume with a block of the journal.
    fn place(&self, block: u64) -> Result<u64, ReadError> {
        let after = self.runs.partition_point(|run| run.logical <= block);
        let run = after.checked_sub(1).and_then(|index| self.runs.get(index));
        let run = run.filter(|run| run.written && block - run.logical < run.len);
        let run = run.ok_or_else(|| ReadError::corrupt(Location::Journal(block), JournalFault::Hole))?;
        Ok(run.physical + (block - run.logical))
    }

    fn read(&self, block: u64) -> Result<Vec<u8>, ReadError> {
        self.volume.read_block(self.place(block)?)
    }
}

/// A big-endian number at `at`; the caller has checked that it lies inside.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// As [`be32`], with 16 bits.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
