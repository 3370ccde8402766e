//! Caches values that are expensive to compute and needed by several threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::parallel::locked;

/// Computes each value once, on first use.
pub struct OnceMap<T> {
    slots: Mutex<BTreeMap<String, Arc<Slot<T>>>>,
}

/// `None` until the value has been computed by the thread that holds the lock.
type Slot<T> = Mutex<Option<Arc<T>>>;

impl<T> Default for OnceMap<T> {
    fn default() -> Self {
        Self { slots: Mutex::new(BTreeMap::new()) }
    }
}

impl<T> OnceMap<T> {
    /// The value of a key. Callers block while another thread computes it. Failures are not cached.
    pub fn get<E>(&self, key: &str, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let slot = locked(&self.slots).entry(key.to_owned()).or_default().clone();
        let mut slot = locked(&slot);
        if let Some(value) = &*slot {
            return Ok(value.clone());
        }
        let value = Arc::new(make()?);
        *slot = Some(value.clone());
        Ok(value)
    }
}
