//! Moves chunks through worker threads and hands them back in the order of the disk.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};

use super::chunk::{CHUNK, Chunk, Job, Worker};
use super::{MAX_IN_FLIGHT, WriteError};

/// A chunk to work on, and where to hand it back.
struct Order {
    chunk: Chunk,
    reply: SyncSender<Result<Chunk, WriteError>>,
}

/// Works on each chunk of the disk that holds data and passes it to `consume`, in ascending order.
///
/// The first error, by position on the disk, ends all: with the orders gone the workers return.
pub fn run(
    job: &Job<'_>,
    threads: NonZeroUsize,
    mut consume: impl FnMut(&Chunk) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let (orders, inbox) = channel();
    let inbox = Mutex::new(inbox);
    std::thread::scope(|scope| {
        // Moved in here so that they are dropped, on every way out, before the scope waits for the workers.
        let orders: Sender<Order> = orders;
        // Two for the calling thread: one that it works on, and one for the next worker that becomes idle.
        let in_flight = threads.get().saturating_add(2).min(MAX_IN_FLIGHT);
        for _ in 0..threads.get().min(in_flight) {
            let worker = Worker::new(job)?;
            let spawned = std::thread::Builder::new().spawn_scoped(scope, || work(worker, &inbox));
            spawned.map_err(|source| WriteError::Thread { source })?;
        }
        let mut spare: Vec<Chunk> = Vec::new();
        let mut pending: VecDeque<Receiver<_>> = VecDeque::new();
        let mut at = Some(0);
        loop {
            while let Some(from) = at.filter(|_| pending.len() < in_flight) {
                at = None;
                if let Some(start) = next_chunk(job, from)? {
                    let (reply, receiver) = sync_channel(1);
                    let mut chunk = spare.pop().unwrap_or_default();
                    chunk.set_range(start, job.disk.len());
                    orders.send(Order { chunk, reply }).map_err(|_| WriteError::ThreadLost)?;
                    pending.push_back(receiver);
                    at = start.checked_add(CHUNK);
                }
            }
            let Some(receiver) = pending.pop_front() else { return Ok(()) };
            let chunk = receiver.recv().map_err(|_| WriteError::ThreadLost)??;
            consume(&chunk)?;
            spare.push(chunk);
        }
    })
}

/// Start of the first chunk at or after `from` that may hold data.
fn next_chunk(job: &Job<'_>, from: u64) -> Result<Option<u64>, WriteError> {
    use crate::source::ReadAt;
    let data = job.disk.next_data(from).map_err(|source| WriteError::Read { offset: from, source })?;
    Ok(data.map(|data| data.start - data.start % CHUNK))
}

fn work(mut worker: Worker<'_>, inbox: &Mutex<Receiver<Order>>) {
    loop {
        // The lock is held while waiting: whoever has it takes the next order.
        let order = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Order { mut chunk, reply }) = order else { return };
        let done = worker.process(&mut chunk).map(|()| chunk);
        // Nobody waits any more when another chunk has failed.
        if reply.send(done).is_err() {
            return;
        }
    }
}
