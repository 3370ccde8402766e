//! Work on many items by a fixed number of threads.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Applies `work` to every item, `threads` at a time; the results come in the order of the items.
pub fn for_each<T: Send, R: Send>(items: Vec<T>, threads: NonZeroUsize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = threads.get().min(items.len());
    let todo = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some((index, item)) = locked(&todo).next() else { break };
                    let result = work(item);
                    locked(&done).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The content of a mutex, whether or not a thread panicked while it had it.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
