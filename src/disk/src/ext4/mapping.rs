//! Locations of an inode's blocks: an extent tree or a block map, both read into runs.

use std::collections::BTreeSet;

use mkext4::spec::inode::FileType;

use super::corruption::MappingFault;
use super::inodes::Node;
use super::superblock::Super;
use super::{Location, ReadError, extents, indirect};

/// Contiguous blocks of a file. All in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Position in the file.
    pub(super) logical: u64,
    /// Position on the volume.
    pub(super) physical: u64,
    pub(super) len: u64,
    /// Whether the blocks were written; otherwise they read as zeros.
    pub(super) written: bool,
}

/// Limits the mapping to read: inodes that share mapping blocks could otherwise take unbounded time and memory.
pub(super) struct Budget {
    /// Blocks with extents or block numbers read so far: no volume has one in two maps.
    maps: BTreeSet<u64>,
    /// The number that may still be read.
    maps_left: u64,
    /// Runs: each takes at least a block of the volume.
    runs_left: u64,
    /// Mapped blocks that must not have two owners.
    claims: Vec<Claim>,
    /// Whether files may share blocks.
    shared: bool,
}

/// Blocks of the volume that belong to an inode only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    block: u64,
    len: u64,
    inode: u32,
}

impl Budget {
    /// Each block of the volume may map once, and there are no more runs than blocks.
    pub(super) fn of(volume: &Super<'_>) -> Self {
        let (most, shared) = (volume.info.blocks, volume.features.shared_blocks());
        Self { maps: BTreeSet::new(), maps_left: most, runs_left: most, claims: Vec::new(), shared }
    }

    /// As [`Self::of`], for the journal, which never shares blocks: one at many positions of the log would be replayed
    /// as often.
    pub(super) fn of_journal(volume: &Super<'_>) -> Self {
        Self { shared: false, ..Self::of(volume) }
    }

    /// For one inode of `blocks` blocks that may be read repeatedly.
    fn of_small(blocks: u64) -> Self {
        // In the worst case, each block has its own path to the root.
        let maps_left = blocks + u64::from(extents::MAX_DEPTH);
        Self { maps: BTreeSet::new(), maps_left, runs_left: blocks.max(1), claims: Vec::new(), shared: false }
    }

    /// Accounts for a block that maps others.
    pub(super) fn take_block(&mut self, node: &Node, block: u64) -> Result<(), ReadError> {
        let corrupt = |what: MappingFault| Err(ReadError::corrupt(Location::Inode(node.number), what));
        if !self.maps.insert(block) {
            return corrupt(MappingFault::MapTwice { block });
        }
        let Some(left) = self.maps_left.checked_sub(1) else {
            return corrupt(MappingFault::Maps);
        };
        self.maps_left = left;
        self.claim(node, block, 1);
        Ok(())
    }

    fn take_run(&mut self, node: &Node) -> Result<(), ReadError> {
        let less = self.runs_left.checked_sub(1);
        self.runs_left = less.ok_or_else(|| ReadError::corrupt(Location::Inode(node.number), MappingFault::Runs))?;
        Ok(())
    }

    fn claim(&mut self, node: &Node, block: u64, len: u64) {
        if self.shared && node.kind == FileType::Regular {
            return;
        }
        match self.claims.last_mut() {
            Some(last) if last.inode == node.number && last.block + last.len == block => last.len += len,
            _ => self.claims.push(Claim { block, len, inode: node.number }),
        }
    }

    /// Refuses a volume on which a block belongs to two inodes, or to one twice.
    pub(super) fn check_claims(&mut self) -> Result<(), ReadError> {
        self.claims.sort_unstable();
        match self.claims.array_windows().find(|[one, next]| one.block + one.len > next.block) {
            None => Ok(()),
            Some([one, next]) => {
                let what = match one.inode == next.inode {
                    true => MappingFault::BlockTwice { block: next.block },
                    false => MappingFault::BlockShared { block: next.block, other: one.inode },
                };
                Err(ReadError::corrupt(Location::Inode(next.inode), what))
            }
        }
    }
}

/// The runs of an inode, ascending and disjoint, all inside the volume.
pub(super) fn read(volume: &Super<'_>, node: &Node, budget: &mut Budget) -> Result<Vec<Run>, ReadError> {
    if node.maps_nothing() || node.has_inline_data() {
        return Ok(Vec::new());
    }
    let mut runs = Runs { volume, node, budget, runs: Vec::new(), end: 0 };
    if node.has_extents() {
        extents::read(&mut runs)?
    } else {
        indirect::read(&mut runs)?
    }
    Ok(runs.runs)
}

/// The first `len` bytes of a small inode: holes are zeros, and no more blocks than necessary may be mapped.
pub(super) fn content(volume: &Super<'_>, node: &Node, len: u64) -> Result<Vec<u8>, ReadError> {
    let runs = read(volume, node, &mut Budget::of_small(len.div_ceil(volume.block)))?;
    let mut all = vec![0; usize::try_from(len).unwrap_or(0)];
    for run in runs.iter().filter(|run| run.written) {
        let (at, run_len) = (run.logical * volume.block, run.len * volume.block);
        let start = usize::try_from(at.min(len)).unwrap_or(0);
        let end = usize::try_from((at + run_len).min(len)).unwrap_or(0);
        volume.read(&mut all[start..end], run.physical * volume.block)?;
    }
    Ok(all)
}

/// The runs of an inode found so far.
pub(super) struct Runs<'a> {
    pub(super) volume: &'a Super<'a>,
    pub(super) node: &'a Node,
    pub(super) budget: &'a mut Budget,
    runs: Vec<Run>,
    /// First block of the file that is not covered yet.
    end: u64,
}

impl Runs<'_> {
    /// The minimum position of the next run in the file.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds a run, which must follow all before it and be inside the volume.
    pub(super) fn push(&mut self, run: Run, place: &Location) -> Result<(), ReadError> {
        if run.len == 0 || !self.volume.holds(run.physical, run.len) {
            let what = MappingFault::Run { len: run.len, block: run.physical };
            return Err(ReadError::corrupt(place.clone(), what));
        }
        if run.logical < self.end {
            let what = MappingFault::Order { logical: run.logical, end: self.end };
            return Err(ReadError::corrupt(place.clone(), what));
        }
        let last = self.runs.last_mut().filter(|last| {
            self.end == run.logical && last.physical + last.len == run.physical && last.written == run.written
        });
        self.end = run.logical + run.len;
        self.budget.claim(self.node, run.physical, run.len);
        match last {
            Some(last) => last.len += run.len,
            None => {
                self.budget.take_run(self.node)?;
                self.runs.push(run);
            }
        }
        Ok(())
    }
}
