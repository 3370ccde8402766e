//! Indexed and associative arrays.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Associative, Key};

/// What an element costs of the budget of variables beyond its bytes.
pub(super) const ELEMENT: usize = 16;

/// The elements of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Array {
    Indexed(BTreeMap<u64, Rc<Vec<u8>>>),
    Associative(Associative),
}

impl Array {
    /// The element that `$name` gives.
    pub(crate) fn first(&self) -> Option<&Rc<Vec<u8>>> {
        match self {
            Self::Indexed(elements) => elements.get(&0),
            Self::Associative(elements) => elements.get(b"0"),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Rc<Vec<u8>>> {
        match (self, key) {
            (Self::Indexed(elements), Key::Index(index)) => elements.get(index),
            (Self::Associative(elements), Key::Text(key)) => elements.get(key),
            _ => None,
        }
    }

    pub(super) fn insert(&mut self, key: &Key, value: Rc<Vec<u8>>) {
        match (self, key) {
            (Self::Indexed(elements), Key::Index(index)) => drop(elements.insert(*index, value)),
            (Self::Associative(elements), Key::Text(key)) => elements.insert(key, value),
            _ => {}
        }
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Rc<Vec<u8>>> {
        match (self, key) {
            (Self::Indexed(elements), Key::Index(index)) => elements.remove(index),
            (Self::Associative(elements), Key::Text(key)) => elements.remove(key),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Indexed(elements) => elements.len(),
            Self::Associative(elements) => elements.len(),
        }
    }

    /// Keys and values in the order of bash.
    pub(crate) fn entries(&self) -> Vec<(Key, Rc<Vec<u8>>)> {
        match self {
            Self::Indexed(elements) => {
                elements.iter().map(|(index, value)| (Key::Index(*index), value.clone())).collect()
            }
            Self::Associative(elements) => {
                elements.iter().map(|(key, value)| (Key::Text(key.to_vec()), value.clone())).collect()
            }
        }
    }

    /// The bytes that the budget of variables counts.
    pub(crate) fn size(&self) -> usize {
        self.entries().iter().map(|(key, value)| ELEMENT + key.len() + value.len()).sum()
    }

    /// Whether the order depends on the machine: bytes beyond ASCII are negative on some, and hashed as such.
    pub(super) fn order_varies(&self) -> bool {
        match self {
            Self::Indexed(_) => false,
            Self::Associative(elements) => elements.len() > 1 && elements.keys().any(|key| !key.is_ascii()),
        }
    }
}
