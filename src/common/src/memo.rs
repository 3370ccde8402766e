//! Values that several threads need and that cost something: each is made once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::parallel::locked;

/// Values that are made once each, by whichever thread comes first.
pub struct Memo<T> {
    slots: Mutex<BTreeMap<String, Arc<Slot<T>>>>,
}

/// A value that is there, or that the thread which has the lock is making.
type Slot<T> = Mutex<Option<Arc<T>>>;

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self { slots: Mutex::new(BTreeMap::new()) }
    }
}

impl<T> Memo<T> {
    /// The value of a key; whoever asks for one that is being made waits for it. What failed is tried again.
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
