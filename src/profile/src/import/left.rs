//! Checks scripts that run on the first boot: their result must not depend on changes between the call in the profile and the first boot.

use std::collections::{BTreeMap, BTreeSet};

use super::base::{Content, Found};
use super::error::ImportError;

/// Refuses files that a command changes after a script was left to the machine: those that were there at its call, and those that it names.
pub(super) fn check(scripts: &[Vec<String>], before: &[Vec<Found>], after: &[Found]) -> Result<(), ImportError> {
    for (scripts, before) in scripts.iter().zip(before) {
        let Some(script) = scripts.first() else { continue };
        if let Some((path, how)) = changed(scripts, before, after) {
            let what = format!(
                "it is {how} after the call of {script}, which queries the machine and therefore runs on the first boot, after all changes: move the call to the end"
            );
            return Err(ImportError::Tree { path, what });
        }
    }
    Ok(())
}

fn changed(scripts: &[String], before: &[Found], after: &[Found]) -> Option<(String, &'static str)> {
    let by_path = |all: &'_ [Found]| -> BTreeMap<String, Found> {
        all.iter().map(|found| (found.path.clone(), found.clone())).collect()
    };
    let (before, after) = (by_path(before), by_path(after));
    for (path, old) in &before {
        match after.get(path) {
            None => return Some((path.clone(), "removed")),
            Some(new) if !is_same(old, new) => return Some((path.clone(), "changed")),
            Some(_) => {}
        }
    }
    let texts = texts(scripts, &before);
    let is_named = |path: &str| {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        texts.iter().any(|text| {
            mentions(text, path) || has_word(text, name) || (!directory.is_empty() && looks_into(text, directory))
        })
    };
    let new = after.values().filter(|found| found.content != Content::Directory && !before.contains_key(&found.path));
    new.map(|found| found.path.clone()).find(|path| is_named(path)).map(|path| (path, "created"))
}

fn is_same(one: &Found, other: &Found) -> bool {
    (one.mode, one.owner, &one.content) == (other.mode, other.owner, &other.content)
}

/// The texts of scripts, and of the files that they name.
fn texts<'a>(scripts: &[String], files: &'a BTreeMap<String, Found>) -> Vec<&'a Vec<u8>> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut all = Vec::new();
    let mut waiting: Vec<&'a Found> = scripts.iter().filter_map(|path| files.get(path)).collect();
    while let Some(file) = waiting.pop() {
        let Content::File(text) = &file.content else { continue };
        if found.insert(&file.path) {
            all.push(text);
            waiting.extend(files.values().filter(|other| names(text, &other.path)));
        }
    }
    all
}

/// Whether a script names a file, by its path or by its name alone.
pub(super) fn names(text: &[u8], path: &str) -> bool {
    mentions(text, path) || path.rsplit('/').next().is_some_and(|name| has_word(text, name))
}

/// Whether a text has a path in it, and not only one that begins so.
pub(super) fn mentions(text: &[u8], path: &str) -> bool {
    positions(text, path).any(|(_, next)| !next.is_some_and(|byte| goes_on(byte) || byte == b'/'))
}

/// Whether a script may look for files in a directory. `mkdir` does not.
fn looks_into(text: &[u8], directory: &str) -> bool {
    let only_makes = |line: &[u8]| {
        line.trim_ascii_start().starts_with(b"mkdir ") && !line.iter().any(|byte| b";&|`$(<>\\".contains(byte))
    };
    text.split(|byte| *byte == b'\n').any(|line| !only_makes(line) && mentions(line, directory))
}

/// Whether a text has a word in it, also as the last part of a path.
pub(super) fn has_word(text: &[u8], word: &str) -> bool {
    let has_end = |byte: Option<u8>| !byte.is_some_and(goes_on);
    positions(text, word).any(|(last, next)| has_end(last) && has_end(next))
}

fn goes_on(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)
}

/// Where a text has a word: the bytes before and after it.
fn positions<'a>(text: &'a [u8], word: &'a str) -> impl Iterator<Item = (Option<u8>, Option<u8>)> + 'a {
    let length = word.len().max(1);
    let found = text.windows(length).enumerate().filter(move |(_, window)| *window == word.as_bytes());
    found.map(move |(at, _)| {
        let last = at.checked_sub(1).and_then(|at| text.get(at)).copied();
        (last, text.get(at.saturating_add(length)).copied())
    })
}
