//! Files that the image does not need, because the import has executed them.

use std::collections::BTreeMap;

use super::Parts;
use crate::import::base::{Content, Found};
use crate::import::error::ImportError;
use crate::import::evaluate::Evaluated;
use crate::import::left::{mentions, names};
use crate::import::machine::units;

/// Directories in which commands are found by their names.
const PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Units and scripts that did their work when the image was made, and that nothing in it needs, with the reason.
pub(super) fn consumed<'a>(
    evaluated: &'a Evaluated,
    parts: &Parts<'_>,
    changed: &[&'a Found],
) -> Result<BTreeMap<&'a str, &'static str>, ImportError> {
    let effects = &evaluated.effects;
    let mut consumed = BTreeMap::new();
    for found in changed {
        let done = unit(&found.path).and_then(|unit| effects.done.get(unit));
        if done.is_some_and(|done| found.content != Content::File(done.text.clone().into_bytes())) {
            let what = "it is changed after it was started: give the two units different names".to_owned();
            return Err(ImportError::Tree { path: found.path.clone(), what });
        }
        if !parts.own.contains_key(found.path.as_str()) {
            continue;
        }
        if done.is_some() {
            consumed.insert(found.path.as_str(), "its commands ran during the import");
        } else if effects.scripts.contains(&found.path) && !evaluated.deferred.contains(&found.path) {
            consumed.insert(found.path.as_str(), "it ran during the import");
        }
    }
    let by_left = |found: &Found, path: &str| match &found.content {
        Content::File(text) => evaluated.deferred.contains(&found.path) && names(text, path),
        _ => false,
    };
    // What something else starts or calls stays, and what that one calls.
    loop {
        let kept: Vec<&&Found> = changed.iter().filter(|found| !consumed.contains_key(found.path.as_str())).collect();
        let needed =
            consumed.keys().copied().find(|path| kept.iter().any(|found| needs(found, path) || by_left(found, path)));
        match needed {
            Some(path) => consumed.remove(path),
            None => return Ok(consumed),
        };
    }
}

/// The name of a unit in the directory of units.
fn unit(path: &str) -> Option<&str> {
    path.strip_prefix(units::UNITS)?.strip_prefix('/')
}

/// Whether a file of the image starts or calls what is at a path: by the path, by the name of a command or unit, or as the timer, path
/// unit or socket of a service.
fn needs(found: &Found, path: &str) -> bool {
    let Content::File(text) = &found.content else { return false };
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some(wanted) = unit(path) else {
        let is_command = PATH.iter().any(|place| path.strip_suffix(name) == Some(&format!("{place}/")));
        return mentions(text, path) || (is_command && has_word(text, name));
    };
    let stem = wanted.strip_suffix(".service").unwrap_or(wanted);
    let is_trigger = unit(&found.path)
        .and_then(|unit| unit.rsplit_once('.'))
        .is_some_and(|(name, kind)| name == stem && matches!(kind, "path" | "socket" | "timer"));
    // An order alone starts nothing.
    let is_order = |line: &[u8]| line.starts_with(b"After=") || line.starts_with(b"Before=");
    is_trigger || text.split(|byte| *byte == b'\n').any(|line| !is_order(line) && has_word(line, wanted))
}

/// Whether a text has a name that is not a part of a longer one.
fn has_word(text: &[u8], name: &str) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-@".contains(byte);
    text.windows(name.len()).enumerate().filter(|(_, window)| *window == name.as_bytes()).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let after = text.get(at.saturating_add(name.len()));
        !before.is_some_and(|byte| goes_on(byte) || *byte == b'/') && !after.is_some_and(goes_on)
    })
}
