//! Errors found in a layer, each with the JSON pointer (RFC 6901) of the invalid value.

use std::collections::BTreeSet;

use super::position::child;

/// Something that is wrong, or only looks so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub(super) pointer: String,
    /// Whether the key is meant, not its value.
    pub(super) key: bool,
    pub(super) warning: bool,
    pub(super) message: String,
}

/// The faults found so far.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Found>);

impl Findings {
    /// Records that a value is wrong, if there is a message.
    pub(super) fn value(&mut self, pointer: String, message: Option<String>) {
        self.0.extend(message.map(|message| Found { pointer, key: false, warning: false, message }));
    }

    /// Records that a key is wrong, if there is a message.
    pub(super) fn key(&mut self, pointer: String, message: Option<String>) {
        self.0.extend(message.map(|message| Found { pointer, key: true, warning: false, message }));
    }

    /// Checks the keys of a map.
    pub(super) fn keys<'a>(
        &mut self,
        parent: &str,
        keys: impl IntoIterator<Item = &'a String>,
        rule: impl Fn(&str) -> Option<String>,
    ) {
        keys.into_iter().for_each(|key| self.key(child(parent, key), rule(key)));
    }

    /// Checks the elements of a list, which may not come twice either.
    pub(super) fn list(&mut self, parent: &str, list: &[String], rule: impl Fn(&str) -> Option<String>) {
        let mut seen = BTreeSet::new();
        for (index, element) in list.iter().enumerate() {
            let twice = (!seen.insert(element)).then(|| format!("duplicate {element:?}"));
            self.value(format!("{parent}/{index}"), rule(element).or(twice));
        }
    }
}
