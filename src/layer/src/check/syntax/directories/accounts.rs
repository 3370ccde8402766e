//! Lines of sysusers.d(5).

use std::collections::BTreeMap;

use super::{field, id, unknown_specifier};

/// Types of lines.
const TYPES: [&str; 5] = ["u", "u!", "g", "m", "r"];

const SPECIFIERS: &str = "ablmoqvwABHMTVW";

/// Longest name (`sizeof(ut_user) - 1`), in bytes.
const MAX_NAME: usize = 31;

/// Checks the fields of a line.
pub(super) fn check(words: &[String]) -> Result<(), String> {
    let kind = words.first().map(String::as_str).unwrap_or_default();
    if !TYPES.contains(&kind) {
        return Err(format!("unknown type {kind:?}"));
    }
    if words.len() < 2 {
        return Err("expected a name after the type, found the end of the line".to_owned());
    }
    words.iter().try_for_each(|word| unknown_specifier(word, SPECIFIERS))?;
    let (name, value) = (field(words, 1), field(words, 2));
    match (kind, name, value) {
        ("r", Some(name), _) => Err(format!("type r has no name, found {name:?}")),
        ("r", None, Some(range)) => ids(range),
        ("r", None, None) => Err("type r needs a range of ids in the third field".to_owned()),
        (_, None, _) => Err(format!("type {kind} needs a name in the second field")),
        ("m", _, None) => Err("type m needs a group in the third field".to_owned()),
        ("m", Some(user), Some(group)) => self::name(user).and_then(|()| self::name(group)),
        (_, Some(name), value) => self::name(name).and_then(|()| value.map_or(Ok(()), |value| account(kind, value))),
    }?;
    details(kind, words)
}

fn name(name: &str) -> Result<(), String> {
    let is_valid = name.len() <= MAX_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    // Specifiers are replaced first.
    if is_valid || name.contains('%') && !name.contains("%%") {
        Ok(())
    } else {
        Err(format!("{name:?} is not the name of an account"))
    }
}

/// A range of ids, or a single one.
fn ids(range: &str) -> Result<(), String> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let is_range = id(first).zip(id(last)).is_some_and(|(first, last)| first <= last);
    if is_range { Ok(()) } else { Err(format!("expected a range of ids, found {range:?}")) }
}

/// Specifiers that may expand to a path or a number.
const EXPANDED: [&str; 7] = ["%A", "%B", "%M", "%T", "%V", "%W", "%w"];

/// Lines for an account for which an earlier line has other values.
pub(super) fn conflicts(lines: impl Iterator<Item = (usize, Vec<String>)>) -> Vec<(usize, String)> {
    let (mut earlier, mut found) = (BTreeMap::new(), Vec::new());
    for (line, words) in lines {
        let kind = words[0].trim_end_matches('!').to_owned();
        if !["u", "g"].contains(&kind.as_str()) {
            continue;
        }
        // Shells are not compared: different paths may lead to one program.
        let fields: Vec<String> = (2..5).map(|at| simplified(field(&words, at).unwrap_or_default())).collect();
        let (first, known) = earlier.entry((kind, words[1].clone())).or_insert_with(|| (line, fields.clone()));
        if *known != fields {
            found.push((line, format!("conflicts with line {first}, which has other values for {:?}", words[1])));
        }
    }
    found
}

/// A path without redundant slashes and dots, or another text as it is.
pub(super) fn simplified(text: &str) -> String {
    let names = text.split('/').filter(|name| !["", "."].contains(name));
    if text.starts_with('/') { names.map(|name| format!("/{name}")).collect() } else { text.to_owned() }
}

/// An id, a path that has one, and for users a group after a colon.
fn account(kind: &str, value: &str) -> Result<(), String> {
    let is_expanded = EXPANDED.iter().any(|specifier| value.starts_with(specifier));
    if value.starts_with('/') || is_expanded {
        return Ok(());
    }
    let (uid, group) = value.split_once(':').map_or((value, None), |(uid, group)| (uid, Some(group)));
    let is_group = |group: &str| id(group).is_some() || name(group).is_ok();
    let is_valid = (id(uid).is_some() || uid == "-" && group.is_some())
        && group.is_none_or(|group| kind != "g" && is_group(group));
    if is_valid { Ok(()) } else { Err(format!("expected an id or a path, found {value:?}")) }
}

/// The fields after the id: a description, a home and a shell.
fn details(kind: &str, words: &[String]) -> Result<(), String> {
    if let Some(extra) = words.get(6) {
        return Err(format!("expected at most six fields, also found {extra:?}"));
    }
    let fields = [(3, "description"), (4, "home directory"), (5, "shell")];
    for (at, what, text) in fields.into_iter().filter_map(|(at, what)| Some((at, what, field(words, at)?))) {
        let is_path = at > 3;
        if !kind.starts_with('u') {
            return Err(format!("type {kind} has no {what}, found {text:?}"));
        }
        let has_parent = text.split('/').any(|name| name == "..");
        let is_wrong_path = is_path && (!text.starts_with(['/', '%']) || has_parent);
        if text.contains(':') || text.contains(char::is_control) || is_wrong_path {
            return Err(format!("{text:?} is not a valid {what}"));
        }
    }
    Ok(())
}
