//! Passes chunks through worker threads and returns them in the order of the disk.

use std::collections::VecDeque;
use std::iter;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use super::chunk::{CHUNK, Chunk, Job, Worker};
use super::{MAX_IN_FLIGHT, WriteError};
use crate::disk::Disk;
use crate::source::ReadAt;

/// A chunk to process, and where to return it.
struct Order<T> {
    chunk: Chunk,
    reply: SyncSender<Result<(Chunk, T), WriteError>>,
}

/// Calls `work` for the chunks of the disk at `starts`, and passes each with its result to `consume`, in that order.
///
/// The first error, in that order, ends processing: workers return when the channel is closed.
pub fn run<'a, T: Send, E: From<WriteError>>(
    job: &'a Job<'a>,
    threads: NonZeroUsize,
    starts: impl Iterator<Item = Result<u64, WriteError>>,
    work: impl Fn(&mut Worker<'a>, &mut Chunk) -> Result<T, WriteError> + Sync,
    mut consume: impl FnMut(&mut Chunk, T) -> Result<(), E>,
) -> Result<(), E> {
    let (orders, inbox) = channel();
    let inbox = Mutex::new(inbox);
    std::thread::scope(|scope| {
        // Moved here to be dropped before the scope waits for the workers.
        let orders: Sender<Order<T>> = orders;
        // Two for the calling thread: one that it processes, and one for the next idle worker.
        let in_flight = threads.get().saturating_add(2).min(MAX_IN_FLIGHT);
        for _ in 0..threads.get().min(in_flight) {
            let worker = Worker::new(job)?;
            let spawned = std::thread::Builder::new().spawn_scoped(scope, || serve(worker, &work, &inbox));
            spawned.map_err(|source| WriteError::Thread { source })?;
        }
        let mut spare: Vec<Chunk> = Vec::new();
        let mut pending: VecDeque<Receiver<_>> = VecDeque::new();
        let mut starts = starts.fuse();
        loop {
            while pending.len() < in_flight {
                let Some(start) = starts.next().transpose()? else { break };
                let (reply, receiver) = sync_channel(1);
                let mut chunk = spare.pop().unwrap_or_default();
                chunk.set_range(start, job.disk.len());
                orders.send(Order { chunk, reply }).map_err(|_| WriteError::ThreadLost)?;
                pending.push_back(receiver);
            }
            let Some(receiver) = pending.pop_front() else { return Ok(()) };
            let (mut chunk, done) = receiver.recv().map_err(|_| WriteError::ThreadLost)??;
            consume(&mut chunk, done)?;
            spare.push(chunk);
        }
    })
}

/// The offsets of chunks that may have data, ascending.
pub fn starts(disk: &Disk) -> impl Iterator<Item = Result<u64, WriteError>> {
    let mut at = Some(0);
    iter::from_fn(move || {
        let from = at.take()?;
        let data = disk.next_data(from).map_err(|source| WriteError::Read { offset: from, source });
        let start = data.transpose()?.map(|data| data.start - data.start % CHUNK);
        at = start.as_ref().ok().and_then(|start| start.checked_add(CHUNK));
        Some(start)
    })
}

fn serve<'a, T>(
    mut worker: Worker<'a>,
    work: impl Fn(&mut Worker<'a>, &mut Chunk) -> Result<T, WriteError>,
    inbox: &Mutex<Receiver<Order<T>>>,
) {
    loop {
        // The lock is held while waiting: its holder takes the next order.
        let order = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Order { mut chunk, reply }) = order else { return };
        let done = work(&mut worker, &mut chunk).map(|done| (chunk, done));
        // The receiver is gone if another chunk has failed.
        if reply.send(done).is_err() {
            return;
        }
    }
}
