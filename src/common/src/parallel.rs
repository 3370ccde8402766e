//! Parallel work on a fixed number of threads.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Applies `work` to every item on up to `threads` threads; results are in the order of the items.
pub fn for_each<T: Send, R: Send>(items: Vec<T>, threads: NonZeroUsize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    run(items.into_iter().map(|item| (0, item)).collect(), threads, |item, _| work(item))
}

/// Runs all jobs on up to `threads` threads, the heaviest first, including those that jobs add to the queue; results
/// are in the order in which the jobs were added.
pub fn run<J: Send, R: Send>(
    jobs: Vec<(u64, J)>,
    threads: NonZeroUsize,
    work: impl Fn(J, &Queue<J>) -> R + Sync,
) -> Vec<R> {
    let queue = Queue { state: Mutex::default(), changed: Condvar::new() };
    jobs.into_iter().for_each(|(weight, job)| queue.add(weight, job));
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                while let Some((number, job)) = queue.next() {
                    let _running = Running(&queue);
                    let result = work(job, &queue);
                    locked(&done).push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Jobs waiting for a thread.
#[derive(Debug)]
pub struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<J> {
    /// By weight and number, the next one first.
    waiting: BTreeMap<(Reverse<u64>, usize), J>,
    /// Number of jobs ever added.
    count: usize,
    /// Number of running jobs, which may add others.
    running: usize,
}

impl<J> Default for State<J> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), count: 0, running: 0 }
    }
}

impl<J> Queue<J> {
    /// Adds a job. Waiting jobs are started by descending weight, equal ones in the order of addition.
    pub fn add(&self, weight: u64, job: J) {
        let mut state = locked(&self.state);
        let number = state.count;
        state.count += 1;
        state.waiting.insert((Reverse(weight), number), job);
        self.changed.notify_one();
    }

    /// The next job. Blocks while running jobs may still add one.
    fn next(&self) -> Option<(usize, J)> {
        let mut state = locked(&self.state);
        loop {
            if let Some(((_, number), job)) = state.waiting.pop_first() {
                state.running += 1;
                return Some((number, job));
            }
            if state.running == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Marks a job as running until dropped, even if it panics.
struct Running<'a, J>(&'a Queue<J>);

impl<J> Drop for Running<'_, J> {
    fn drop(&mut self) {
        locked(&self.0.state).running -= 1;
        self.0.changed.notify_all();
    }
}

/// Locks a mutex, even if a thread panicked while holding it.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_comes_first_and_results_keep_their_order() {
        let order = Mutex::new(Vec::new());
        let results = run(vec![(1, 'a'), (3, 'b'), (2, 'c'), (3, 'd')], NonZeroUsize::MIN, |job, _| {
            locked(&order).push(job);
            job
        });
        assert_eq!(results, ['a', 'b', 'c', 'd']);
        assert_eq!(locked(&order)[..], ['b', 'd', 'c', 'a']);
    }

    #[test]
    fn threads_wait_for_jobs_that_others_add() {
        for threads in 1..5 {
            let results = run(vec![(0, 5_u32)], NonZeroUsize::new(threads).unwrap(), |job, queue| {
                (0..job).for_each(|more| queue.add(0, more));
                job
            });
            assert_eq!(results.len(), 32, "{threads}");
            assert_eq!(results[0], 5, "{threads}");
        }
    }
}
