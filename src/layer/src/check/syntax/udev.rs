//! Rules of udev(7): a text enters, the rules that udevd ignores because of their syntax leave.

mod keys;

use super::Problem;
use super::accounts::Named;
use super::directories::id;
use keys::Pair;

const OPERATORS: [&str; 6] = ["==", "!=", "+=", "-=", ":=", "="];

/// Checks the rules of a file.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let (mut found, mut jumps) = (Vec::new(), Vec::<(usize, String)>::new());
    let ignored = |line, reason: &str| Problem::error(line, format!("is ignored by udevd: {reason}"));
    for (line, rule) in rules(text) {
        let (pairs, faults) = judged(&rule);
        found.extend(faults.iter().map(|reason| ignored(line, reason)));
        let substitutions = pairs.iter().filter_map(keys::substitution);
        found.extend(substitutions.map(|(is_dropped, reason)| match is_dropped {
            true => ignored(line, &reason),
            false => Problem::error(line, format!("udevd keeps the text: {reason}")).warning(),
        }));
        let notes = pairs.iter().filter_map(keys::note);
        found.extend(notes.filter(|_| faults.is_empty()).map(|note| Problem::error(line, note).warning()));
        if !faults.is_empty() {
            continue;
        }
        for key in ["LABEL", "GOTO"] {
            if pairs.iter().filter(|pair| pair.key == key).count() > 1 {
                let message = format!("udevd warns about several {key} keys: only the last one counts");
                found.push(Problem::error(line, message).warning());
            }
        }
        let named = |key: &str| pairs.iter().rfind(|pair| pair.key == key).map(|pair| pair.value.to_owned());
        // A jump goes to a later rule.
        if let Some(label) = named("LABEL") {
            jumps.retain(|(_, goal)| *goal != label);
        }
        jumps.extend(named("GOTO").map(|label| (line, label)));
    }
    found.extend(
        jumps.iter().map(|(line, label)| ignored(*line, &format!("GOTO={label:?} has no later LABEL={label:?}"))),
    );
    found.sort_by_key(|problem| problem.line);
    found
}

/// The owners that rules name. Values with `$` or `%` are known on the machine only.
pub(super) fn accounts(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for (line, rule) in rules(text) {
        for pair in pairs(&rule) {
            let what = match pair.key {
                "OWNER" => "user",
                "GROUP" => "group",
                _ => continue,
            };
            if id(pair.value).is_none() && !pair.value.is_empty() && !pair.value.contains(['$', '%']) {
                found.push((line, what, pair.value.to_owned()));
            }
        }
    }
    found
}

/// Rules with the numbers of their first lines. A backslash at the end of a line continues a rule.
fn rules(text: &str) -> Vec<(usize, String)> {
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
                found.push((start, std::mem::take(&mut rule)));
            }
        }
    }
    found
}

/// The pairs of a rule, or none if one is not valid.
fn pairs(rule: &str) -> Vec<Pair<'_>> {
    let (pairs, faults) = judged(rule);
    if faults.is_empty() { pairs } else { Vec::new() }
}

/// The pairs of a rule up to one that cannot be read, and what is wrong with them.
fn judged(rule: &str) -> (Vec<Pair<'_>>, Vec<String>) {
    let (mut rest, mut found, mut faults) = (skip_separators(rule), Vec::new(), Vec::new());
    while !rest.is_empty() {
        match pair(rest) {
            Ok((pair, next)) => {
                faults.extend(keys::fault(&pair));
                found.push(pair);
                rest = skip_separators(next);
            }
            Err(reason) => {
                faults.push(reason);
                rest = "";
            }
        }
    }
    (found, faults)
}

fn skip_separators(text: &str) -> &str {
    text.trim_start_matches(|next: char| next.is_ascii_whitespace() || next == ',')
}

/// A pair of key and value, and what follows.
fn pair(text: &str) -> Result<(Pair<'_>, &str), String> {
    let invalid = || format!("expected KEY==\"value\" or KEY=\"value\", found {text:?}");
    let end = text.find(|next: char| next.is_ascii_whitespace() || "={+-!:".contains(next)).ok_or_else(invalid)?;
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
    let prefixes = &value[..value.find('"').unwrap_or_default()];
    let (is_escaped, is_caseless) = (prefixes.contains('e'), prefixes.contains('i'));
    if !["", "e", "i", "ei", "ie"].contains(&prefixes) {
        return Err(invalid());
    }
    let value = &value[prefixes.len()..];
    let value = value.strip_prefix('"').ok_or_else(invalid)?;
    let rest = after_quote(value, is_escaped).ok_or_else(|| format!("expected a quote at the end of {value:?}"))?;
    let text = &value[..value.len() - rest.len() - 1];
    Ok((Pair { key, attribute, operator, value: text, is_caseless, is_escaped }, rest))
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
