//! Files that did their work when the image was made.

use std::collections::BTreeMap;

use super::Parts;
use crate::profile::import::base::{Content, Found};
use crate::profile::import::evaluate::Evaluated;
use crate::profile::import::machine::units;

/// Units and scripts that did their work when the image was made, and that nothing in it needs, with the reason.
pub(super) fn consumed<'a>(
    evaluated: &'a Evaluated,
    parts: &Parts<'_>,
    changed: &[&'a Found],
) -> BTreeMap<&'a str, &'static str> {
    let effects = &evaluated.effects;
    let mut consumed = BTreeMap::new();
    for found in changed.iter().filter(|found| parts.own.contains(&found.path)) {
        let unit = found.path.strip_prefix(units::UNITS).and_then(|name| name.strip_prefix('/'));
        if unit.is_some_and(|unit| effects.done.contains(unit)) {
            consumed.insert(found.path.as_str(), "what it starts is done");
        } else if effects.scripts.contains(&found.path) && !evaluated.deferred.contains(&found.path) {
            consumed.insert(found.path.as_str(), "its commands are done");
        }
    }
    // A script that something else calls stays, and what that one calls.
    loop {
        let kept = changed.iter().filter(|found| !consumed.contains_key(found.path.as_str()));
        let texts: Vec<&Vec<u8>> = kept
            .filter_map(|found| match &found.content {
                Content::File(text) => Some(text),
                _ => None,
            })
            .collect();
        let is_named = |path: &str| texts.iter().any(|text| mentions(text, path));
        let needed = consumed.keys().copied().find(|path| !path.starts_with(units::UNITS) && is_named(path));
        match needed {
            Some(path) => consumed.remove(path),
            None => return consumed,
        };
    }
}

/// Whether a text has a path in it, and not only one that begins so.
fn mentions(text: &[u8], path: &str) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(byte);
    let mut at = text.windows(path.len()).enumerate().filter(|(_, window)| *window == path.as_bytes());
    at.any(|(at, _)| !text.get(at.saturating_add(path.len())).is_some_and(goes_on))
}
