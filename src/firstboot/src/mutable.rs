//! Variables that can change on a running machine: a file of new values and the current file in, the new file out.
//!
//! The new values are untrusted, so the format is strict: lines `NAME=value`, optionally after `export`, blank lines and comment
//! lines. A value is the rest of its line without surrounding blanks and one pair of quotes; it has at most 4096
//! characters, each an ASCII letter or digit, a blank or one of `-./_:+=#@,`, or brackets around an IPv6 address. A name is a mutable variable of the plan or an alias of
//! one. Unknown names, conflicting values and values that violate the plan's format are errors; then nothing is written.
//!
//! Invariants: the result has every mutable variable, sorted, under its current name, and no others, but an unlisted one only
//! if it was given a value, until that is emptied; mode 0600, owner root. Variables without a new value keep their value, or have their default. The
//! order of lines does not matter, and updates are idempotent.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;

use crate::env;
use crate::error::Error;
use crate::plan::{Plan, Variable};
use crate::root::{Owner, Root};
use crate::settings::{check_value, value};

const MAX_VALUE_CHARACTERS: usize = 4096;

/// Values can be secrets.
const OWNER: Owner = Owner { mode: 0o600, uid: 0, gid: 0 };

/// Merges the file `source` into the file `destination`; returns whether it changed. Then removes `source` if
/// requested. The caller holds the lock.
pub fn update(root: &Root, plan: &Plan, source: &str, destination: &str, delete_source: bool) -> Result<bool, Error> {
    if source == destination {
        return Err(Error::refused(&root.shown(source), "a file other than the destination", "the same file"));
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

/// A file with all mutable variables: each has the value of the first map with it, or else its default.
pub fn merged(plan: &Plan, maps: &[&BTreeMap<String, String>]) -> Result<String, Error> {
    env::render(mutable(plan).filter_map(|(name, variable)| {
        let value = maps.iter().find_map(|map| value(name, variable, map));
        // An empty value removes an unlisted variable, so that user data apply again.
        let listed = if variable.unlisted { value.is_some_and(|value| !value.is_empty()) } else { true };
        listed.then(|| (name, value.unwrap_or(&variable.default)))
    }))
}

fn mutable(plan: &Plan) -> impl Iterator<Item = (&str, &Variable)> {
    plan.variables.iter().filter(|(_, variable)| variable.mutable).map(|(name, variable)| (name.as_str(), variable))
}

/// The new values, by their names in the file.
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
        if value.len() > MAX_VALUE_CHARACTERS || !is_allowed(value) {
            return Err(Error::syntax(
                path,
                number,
                "a value of at most 4096 letters, digits, blanks and -./_:+=#@, or IPv6 addresses in brackets",
            ));
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

fn is_allowed(mut value: &str) -> bool {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-./_:+=#@, ".contains(&byte));
    while let Some((before, rest)) = value.split_once('[') {
        match rest.split_once(']') {
            Some((address, after)) if is_plain(before) && address.parse::<Ipv6Addr>().is_ok() => value = after,
            _ => return false,
        }
    }
    is_plain(value)
}

#[cfg(test)]
mod tests;
