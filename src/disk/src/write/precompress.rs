//! Compresses the new clusters before a qcow2 file is started, if most clusters are in earlier files, so that all
//! lengths are known.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use super::WriteError;
use super::chunk::{Chunk, Job, Worker};
use super::pipeline;
use super::qcow2::Plan;

/// Maximum bytes of new chunks in memory: compressed, and with their data if they have plain clusters.
const MAX_NEW: usize = 80 << 20;

/// The new chunks of a disk, compressed, and the layout of the file.
#[derive(Default)]
pub struct Precompressed {
    /// Finished chunks, by their offsets on the disk.
    chunks: BTreeMap<u64, Chunk>,
    /// The layout of the file; `None` if too much is new.
    pub plan: Option<Plan>,
}

impl Precompressed {
    /// Examines all chunks of the disk, and finishes the new ones unless there are too many.
    pub fn compress(job: &Job<'_>, threads: NonZeroUsize) -> Result<Self, WriteError> {
        let (mut found, mut new) = (Vec::new(), 0);
        let look = |worker: &mut Worker<'_>, chunk: &mut Chunk| Ok(worker.look(chunk));
        pipeline::run(job, threads, pipeline::starts(job.disk), look, |chunk, stored| {
            new += if stored.is_none() { chunk.len() } else { 0 };
            found.push((chunk.at(), stored));
            Ok::<_, WriteError>(())
        })?;
        if new > MAX_NEW {
            return Ok(Self::default());
        }
        let mut chunks = BTreeMap::new();
        let starts = found.iter().filter(|(_, stored)| stored.is_none()).map(|(start, _)| Ok(*start));
        pipeline::run(job, threads, starts, Worker::process, |chunk, ()| {
            chunk.shrink();
            chunks.insert(chunk.at(), std::mem::take(chunk));
            Ok::<_, WriteError>(())
        })?;
        let (mut plan, mut known) =
            (Plan::new(job.disk.len(), job.needs.clusters.unwrap_or_default())?, Chunk::default());
        for (start, stored) in found {
            known.set_range(start, job.disk.len());
            stored.into_iter().for_each(|stored| known.set_stored(&stored));
            plan.add(chunks.get(&start).unwrap_or(&known));
        }
        Ok(Self { chunks, plan: Some(plan) })
    }

    /// Processes unfinished chunks, and passes all to `consume`, in the order of the disk.
    pub fn run<E: From<WriteError>>(
        mut self,
        job: &Job<'_>,
        threads: NonZeroUsize,
        mut consume: impl FnMut(&Chunk) -> Result<(), E>,
    ) -> Result<(), E> {
        let finished: BTreeSet<u64> = self.chunks.keys().copied().collect();
        let others =
            pipeline::starts(job.disk).filter(|start| !start.as_ref().is_ok_and(|start| finished.contains(start)));
        pipeline::run(job, threads, others, Worker::process, |chunk, ()| {
            while let Some(first) = self.chunks.first_entry().filter(|first| *first.key() < chunk.at()) {
                consume(&first.remove())?;
            }
            consume(chunk)
        })?;
        self.chunks.values().try_for_each(consume)
    }
}
