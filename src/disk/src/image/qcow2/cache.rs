//! A bounded cache that loads each value once, even if several threads request it at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Values by key; the least recently used one is evicted.
pub struct Cache<K, V> {
    state: Mutex<State<K, V>>,
    capacity: usize,
}

struct State<K, V> {
    slots: BTreeMap<K, Entry<V>>,
    clock: u64,
}

/// Threads that wait for a value block on its slot, not on the whole cache.
type Slot<V> = Arc<Mutex<Option<Arc<V>>>>;

struct Entry<V> {
    used: u64,
    slot: Slot<V>,
}

/// More entries would make the search for the oldest one slow.
const MAX_ENTRIES: u64 = 512;

impl<K: Ord + Copy, V> Cache<K, V> {
    /// Holds about `budget` bytes of values of `value_len` bytes each, and at least four.
    pub fn new(budget: u64, value_len: u64) -> Self {
        let capacity = usize::try_from((budget / value_len).clamp(4, MAX_ENTRIES)).unwrap_or(4);
        Self { state: Mutex::new(State { slots: BTreeMap::new(), clock: 0 }), capacity }
    }

    /// The value of `key`, loaded if missing. A failed load is retried by the next caller.
    pub fn get<E>(&self, key: K, load: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let slot = self.slot(key);
        let mut value = lock(&slot);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        let loaded = Arc::new(load()?);
        *value = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn slot(&self, key: K) -> Slot<V> {
        let mut state = lock(&self.state);
        state.clock += 1;
        let used = state.clock;
        if let Some(entry) = state.slots.get_mut(&key) {
            entry.used = used;
            return Arc::clone(&entry.slot);
        }
        if state.slots.len() >= self.capacity {
            let oldest = state.slots.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            oldest.map(|key| state.slots.remove(&key));
        }
        let slot = Slot::default();
        state.slots.insert(key, Entry { used, slot: Arc::clone(&slot) });
        slot
    }
}

/// A value behind a poisoned lock is consistent: it is set in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_value_is_loaded_once_by_many_threads() {
        let cache = Cache::new(1 << 20, 1 << 10);
        let loads = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for key in 0..200 {
                        let load = || {
                            loads.fetch_add(1, Ordering::Relaxed);
                            Ok::<_, ()>(key)
                        };
                        assert_eq!(*cache.get(key, load).unwrap(), key);
                    }
                });
            }
        });
        assert_eq!(loads.into_inner(), 200);
    }

    #[test]
    fn the_least_recently_used_value_makes_room() {
        let cache = Cache::new(0, 1);
        for key in [0u8, 1, 2, 3, 0, 4] {
            cache.get(key, || Ok::<_, ()>(key)).unwrap();
        }
        cache.get(0, || Err("0 was used after 1")).unwrap();
        assert!(cache.get(1, || Err("gone")).is_err());
        assert_eq!(*cache.get(1, || Ok::<_, ()>(7)).unwrap(), 7, "a failed load is tried again");
        assert!(lock(&cache.state).slots.len() <= 4);
    }
}
