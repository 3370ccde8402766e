//! What is done before a qcow2 file is begun, of which most clusters are in earlier files: the others are compressed, and with that
//! the lengths of all are known.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use super::WriteError;
use super::chunk::{Chunk, Job, Worker};
use super::pipeline;
use super::qcow2::Plan;

/// Most bytes of compressed chunks that are kept.
const MAX_KEPT: usize = 64 << 20;

/// What was found.
#[derive(Default)]
pub struct Ahead {
    /// Finished chunks, by their places on the disk.
    pub chunks: BTreeMap<u64, Chunk>,
    /// Where everything will be in the file; `None` where more than these chunks must be compressed for that.
    pub plan: Option<Plan>,
}

impl Ahead {
    /// Looks through all chunks of the disk.
    pub fn look(job: &Job<'_>, threads: NonZeroUsize) -> Result<Self, WriteError> {
        let (mut chunks, mut kept) = (BTreeMap::new(), 0);
        let mut plan = Plan::new(job.disk.len())?;
        pipeline::run(job, threads, pipeline::starts(job.disk), Worker::look, |chunk, is_finished| {
            plan.add(chunk);
            if is_finished {
                kept += chunk.shrink();
                chunks.insert(chunk.at(), std::mem::take(chunk));
            }
            Ok(if kept > MAX_KEPT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Self { chunks, plan: (kept <= MAX_KEPT).then_some(plan) })
    }

    /// Has the chunks that are not finished yet processed, and passes all to `consume`, in the order of the disk.
    pub fn run(
        mut self,
        job: &Job<'_>,
        threads: NonZeroUsize,
        mut consume: impl FnMut(&Chunk) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let finished: BTreeSet<u64> = self.chunks.keys().copied().collect();
        let others =
            pipeline::starts(job.disk).filter(|start| !start.as_ref().is_ok_and(|start| finished.contains(start)));
        pipeline::run(job, threads, others, Worker::process, |chunk, ()| {
            while let Some(first) = self.chunks.first_entry().filter(|first| *first.key() < chunk.at()) {
                consume(&first.remove())?;
            }
            consume(chunk).map(ControlFlow::Continue)
        })?;
        self.chunks.values().try_for_each(consume)
    }
}
