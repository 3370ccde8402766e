//! Rules of udev(7): a text enters, the rules that udevd ignores because of their syntax leave.

use super::Problem;

/// Whether a key has an attribute, such as `ATTR{size}`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    None,
    Optional,
    Required,
}

use Attribute::{None as Plain, Optional, Required};

/// The keys, whether they have an attribute, and whether they can only be compared.
const KEYS: [(&str, Attribute, bool); 29] = [
    ("ACTION", Plain, true),
    ("ATTR", Required, false),
    ("ATTRS", Required, true),
    ("CONST", Required, true),
    ("DEVPATH", Plain, true),
    ("DRIVER", Plain, true),
    ("DRIVERS", Plain, true),
    ("ENV", Required, false),
    ("GOTO", Plain, false),
    ("GROUP", Plain, false),
    ("IMPORT", Required, false),
    ("KERNEL", Plain, true),
    ("KERNELS", Plain, true),
    ("LABEL", Plain, false),
    ("MODE", Plain, false),
    ("NAME", Plain, false),
    ("OPTIONS", Plain, false),
    ("OWNER", Plain, false),
    ("PROGRAM", Plain, false),
    ("RESULT", Plain, true),
    ("RUN", Optional, false),
    ("SECLABEL", Required, false),
    ("SUBSYSTEM", Plain, true),
    ("SUBSYSTEMS", Plain, true),
    ("SYMLINK", Plain, false),
    ("SYSCTL", Required, false),
    ("TAG", Plain, false),
    ("TAGS", Plain, true),
    ("TEST", Optional, true),
];

const OPERATORS: [&str; 6] = ["==", "!=", "+=", "-=", ":=", "="];

/// Checks the rules of a file, of which a backslash at the end of a line continues one.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let (mut found, mut rule, mut start) = (Vec::new(), String::new(), 0);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        // Comments may stand between the lines of a rule.
        if line.starts_with('#') {
            continue;
        }
        if rule.is_empty() {
            start = index + 1;
        }
        match line.strip_suffix('\\') {
            Some(continued) => rule.push_str(continued),
            None => {
                rule.push_str(line);
                let reason = fault(&rule);
                found.extend(reason.map(|reason| Problem::error(start, format!("is ignored by udevd: {reason}"))));
                rule.clear();
            }
        }
    }
    found
}

/// What is wrong with the pairs of a rule.
fn fault(rule: &str) -> Option<String> {
    let mut rest = rule;
    loop {
        rest = rest.trim_start_matches(|next: char| next.is_whitespace() || next == ',');
        if rest.is_empty() {
            return None;
        }
        match pair(rest) {
            Ok(next) => rest = next,
            Err(reason) => return Some(reason),
        }
    }
}

/// What follows a pair of key and value.
fn pair(text: &str) -> Result<&str, String> {
    let invalid = || format!("expected KEY==\"value\" or KEY=\"value\", found {text:?}");
    let end = text.find(|next: char| next.is_whitespace() || "={+-!:".contains(next)).ok_or_else(invalid)?;
    let (key, rest) = text.split_at(end);
    let (attribute, rest) = match rest.strip_prefix('{') {
        Some(inside) => {
            let (attribute, rest) = inside.split_once('}').ok_or_else(invalid)?;
            (Some(attribute), rest)
        }
        None => (None, rest),
    };
    let rest = rest.trim_start();
    let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator)).ok_or_else(invalid)?;
    let value = rest[operator.len()..].trim_start();
    let (value, is_escaped) = match value.strip_prefix('e') {
        Some(value) => (value, true),
        None => (value.strip_prefix('i').unwrap_or(value), false),
    };
    let value = value.strip_prefix('"').ok_or_else(invalid)?;
    let rest = after_quote(value, is_escaped).ok_or_else(|| format!("expected a quote at the end of {value:?}"))?;
    let &(_, form, compares) =
        KEYS.iter().find(|(known, ..)| *known == key).ok_or_else(|| format!("unknown key {key:?}"))?;
    match (form, attribute) {
        (Plain, Some(attribute)) => return Err(format!("{key} has no attribute, found {{{attribute}}}")),
        (Required, None | Some("")) => return Err(format!("{key} needs an attribute, such as {key}{{name}}")),
        _ => {}
    }
    if compares && !matches!(*operator, "==" | "!=") {
        return Err(format!("{key} can only be compared, with == or !=; found {operator}"));
    }
    Ok(rest)
}

/// What follows the closing quote. A backslash before a quote makes it a part of the value; in escaped values it stands before any character.
fn after_quote(value: &str, is_escaped: bool) -> Option<&str> {
    let mut chars = value.char_indices().peekable();
    while let Some((at, next)) = chars.next() {
        match next {
            '"' => return value.get(at + 1..),
            '\\' if is_escaped || chars.peek().is_some_and(|(_, next)| *next == '"') => {
                chars.next();
            }
            _ => {}
        }
    }
    None
}
