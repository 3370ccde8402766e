//! Variables that change on a running machine: a file of new values and the present file in, the new present file out.
//!
//! The new values come from outside, so little is taken: lines `NAME=value`, perhaps after `export`, blank lines and comment
//! lines. A value is the rest of its line without blanks around it and without one pair of quotes; it has at most 4096
//! characters, each an ASCII letter or digit, a blank or one of `-./_:+=#@,`. A name is a mutable variable of the plan or an older name of
//! one. With another name, two different values for one name, or one that does not look as the plan says, nothing is written.
//!
//! What holds: the result has every mutable variable, sorted, under its present name, and no other, but an unlisted one only
//! where it was given a value, and no longer once that is emptied; 0600, root's. What is not in the new values keeps its value, or else has its default. The
//! order of lines does not matter, and to do the same twice is to do it once.

use std::collections::BTreeMap;
use std::path::Path;

use crate::env;
use crate::error::Error;
use crate::plan::{Plan, Variable};
use crate::root::{Owner, Root};
use crate::settings::{check_value, value};

const MAX_VALUE_CHARACTERS: usize = 4096;

/// Values may be secrets.
const OWNER: Owner = Owner { mode: 0o600, uid: 0, gid: 0 };

/// Puts the values in the file `source` into the file `destination`, true when that changed it; then removes `source` if
/// wanted. The caller holds the lock.
pub fn update(root: &Root, plan: &Plan, source: &str, destination: &str, delete_source: bool) -> Result<bool, Error> {
    if source == destination {
        return Err(Error::refused(&root.shown(source), "another file than the one that is updated", "the same"));
    }
    let shown = root.shown(source);
    let new = root.read(source, env::MAX_BYTES)?.ok_or_else(|| Error::missing(&shown))?;
    let new = values(&shown, &new)?;
    if let Some(name) = new.keys().find(|name| !mutable(plan).any(|(known, variable)| variable.has_name(known, name))) {
        return Err(Error::NotMutable { path: shown, name: name.clone() });
    }
    for (name, variable) in mutable(plan) {
        value(name, variable, &new).map_or(Ok(()), |value| check_value(name, variable, value))?;
    }
    let present = root.read(destination, env::MAX_BYTES)?.unwrap_or_default();
    let present = env::parse(&root.shown(destination), &present)?;
    let changed = root.write(destination, merged(plan, &[&new, &present])?.as_bytes(), &OWNER)?;
    if delete_source {
        root.remove(source)?;
    }
    Ok(changed)
}

/// The text of a file with every mutable variable: each has the value of the first map that knows it, or else its default.
pub fn merged(plan: &Plan, maps: &[&BTreeMap<String, String>]) -> Result<String, Error> {
    env::render(mutable(plan).filter_map(|(name, variable)| {
        let value = maps.iter().find_map(|map| value(name, variable, map));
        // An empty value of an unlisted variable takes it out again: what user data say is back.
        let listed = if variable.unlisted { value.is_some_and(|value| !value.is_empty()) } else { true };
        listed.then(|| (name, value.unwrap_or(&variable.default)))
    }))
}

fn mutable(plan: &Plan) -> impl Iterator<Item = (&str, &Variable)> {
    plan.variables.iter().filter(|(_, variable)| variable.mutable).map(|(name, variable)| (name.as_str(), variable))
}

/// The new values, by the names that they have in the file.
fn values(path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let mut values = BTreeMap::new();
    for (line, number) in env::text(path, bytes)?.lines().zip(1..) {
        let line = line.strip_suffix('\r').unwrap_or(line).trim_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line =
            line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t'])).map_or(line, str::trim_start);
        let (name, value) = line
            .split_once('=')
            .filter(|(name, _)| env::is_name(name))
            .ok_or_else(|| Error::syntax(path, number, "NAME=value, a comment or a blank line"))?;
        let value = unquoted(value.trim_matches([' ', '\t']));
        if value.len() > MAX_VALUE_CHARACTERS || !value.bytes().all(is_allowed) {
            return Err(Error::syntax(path, number, "a value of at most 4096 letters, digits, blanks and -./_:+=#@,"));
        }
        match values.insert(name.to_owned(), value.to_owned()) {
            Some(other) if other != value => {
                return Err(Error::Ambiguous { path: path.to_path_buf(), name: name.to_owned() });
            }
            _ => {}
        }
    }
    Ok(values)
}

fn unquoted(value: &str) -> &str {
    let without = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    without('\'').or_else(|| without('"')).unwrap_or(value)
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-./_:+=#@, ".contains(&byte)
}

#[cfg(test)]
mod tests;
