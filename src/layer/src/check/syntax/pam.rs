//! Rules of pam.d(5): an invalid line makes the stack of its type fail, so that all logins fail.

use super::{File, Problem};

/// What separates words; a carriage return is a part of one.
const BLANKS: [char; 2] = [' ', '\t'];

const TYPES: [&str; 4] = ["account", "auth", "password", "session"];

const CONTROLS: [&str; 6] = ["required", "requisite", "sufficient", "optional", "include", "substack"];

/// Results of a module that `[RESULT=ACTION]` can name.
const RESULTS: [&str; 33] = [
    "success",
    "open_err",
    "symbol_err",
    "service_err",
    "system_err",
    "buf_err",
    "perm_denied",
    "auth_err",
    "cred_insufficient",
    "authinfo_unavail",
    "user_unknown",
    "maxtries",
    "new_authtok_reqd",
    "acct_expired",
    "session_err",
    "cred_unavail",
    "cred_expired",
    "cred_err",
    "no_module_data",
    "conv_err",
    "authtok_err",
    "authtok_recover_err",
    "authtok_lock_busy",
    "authtok_disable_aging",
    "try_again",
    "ignore",
    "abort",
    "authtok_expired",
    "module_unknown",
    "bad_item",
    "conv_again",
    "incomplete",
    "default",
];

const ACTIONS: [&str; 6] = ["ignore", "ok", "done", "bad", "die", "reset"];

/// What a rule loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PamTarget {
    /// A module, by name or path.
    Module(String),
    /// Another file of rules, by name or path.
    Rules(String),
}

/// Something that a rule needs in the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PamRule {
    /// Counted from 1.
    pub line: usize,
    pub target: PamTarget,
}

/// The modules and files that rules load. A rule whose type begins with `-` may lack its module.
pub fn pam_rules(text: &str) -> Vec<PamRule> {
    let rules = lines(text).into_iter().filter_map(|(line, text)| Some(PamRule { line, target: read(&text).ok()?? }));
    rules.collect()
}

/// Checks types, controls and the presence of a module.
pub(super) fn check(file: &File) -> Vec<Problem> {
    let faults = lines(file.text).into_iter().filter_map(|(line, text)| Some((line, read(&text).err()?)));
    faults.map(|(line, reason)| Problem::error(line, format!("makes logins fail: {reason}"))).collect()
}

/// The rules, in which a backslash at the end of a line continues it, with their first lines.
fn lines(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut rule, mut start) = (Vec::new(), String::new(), 0);
    for (number, line) in (1..).zip(text.split('\n')) {
        let line = line.split('#').next().unwrap_or_default();
        if rule.is_empty() {
            start = number;
        }
        if let Some(part) = line.strip_suffix('\\') {
            rule.push_str(part);
            rule.push(' ');
            continue;
        }
        rule.push_str(line);
        let rule = std::mem::take(&mut rule);
        if !rule.trim_matches(BLANKS).is_empty() {
            found.push((start, rule));
        }
    }
    found
}

/// What a rule loads, or what is wrong with it.
fn read(rule: &str) -> Result<Option<PamTarget>, String> {
    let unclosed = || "expected `]`, found the end of the line".to_owned();
    let (kind, rest) = word(rule).ok_or_else(unclosed)?;
    let (second, rest) = word(rest).ok_or_else(unclosed)?;
    if kind == "@include" {
        let is_missing = second.is_empty();
        let missing = || "expected the name of a file after @include, found the end of the line".to_owned();
        return if is_missing { Err(missing()) } else { Ok(Some(PamTarget::Rules(second.to_owned()))) };
    }
    let is_optional = kind.starts_with('-');
    let kind = kind.strip_prefix('-').unwrap_or(kind);
    if !TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind)) {
        return Err(format!("expected one of the types {}, found {kind:?}", TYPES.join(", ")));
    }
    let control = control(second)?;
    let module = word(rest).ok_or_else(unclosed)?.0;
    match control {
        _ if module.is_empty() => Err("expected a module after the control, found the end of the line".to_owned()),
        _ if module.contains('\r') => Err("found a carriage return; use newlines only".to_owned()),
        "include" | "substack" => Ok(Some(PamTarget::Rules(module.to_owned()))),
        _ => Ok((!is_optional).then(|| PamTarget::Module(module.to_owned()))),
    }
}

/// The first word of a text, which may stand in square brackets, and the text after it. `None` for a bracket that is not closed.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(BLANKS);
    match text.strip_prefix('[') {
        Some(inside) => inside.split_once(']'),
        None => Some(text.split_at(text.find(BLANKS).unwrap_or(text.len()))),
    }
}

/// One of [`CONTROLS`], or an empty word for pairs of results and actions.
fn control(word: &str) -> Result<&'static str, String> {
    match CONTROLS.into_iter().find(|known| known.eq_ignore_ascii_case(word)) {
        Some(known) => Ok(known),
        None if word.contains('=') => pairs_fault(word).map_or(Ok(""), Err),
        None => Err(format!("expected one of the controls {} or [RESULT=ACTION], found {word:?}", CONTROLS.join(", "))),
    }
}

/// What is wrong with pairs of results and actions. Blanks between them are optional after a number.
fn pairs_fault(pairs: &str) -> Option<String> {
    let mut rest = pairs.trim_start();
    while !rest.is_empty() {
        // The longest name counts: `authtok_err` begins no other one, but names may follow each other.
        let result = RESULTS.iter().filter_map(|result| rest.strip_prefix(result)).min_by_key(|after| after.len());
        let Some(after) = result else { return Some(format!("expected a result such as `success`, found {rest:?}")) };
        let Some(after) = after.trim_start().strip_prefix('=') else {
            return Some(format!("expected `=` after a result in {rest:?}"));
        };
        let after = after.trim_start();
        let digits = after.len() - after.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        let action = ACTIONS.iter().find_map(|action| after.strip_prefix(action));
        let after = match (digits, action) {
            (_, Some(after)) => after,
            (1.., None) if after[..digits].bytes().any(|digit| digit != b'0') => &after[digits..],
            _ => {
                return Some(format!(
                    "expected one of {} or a number of rules to skip, found {after:?}",
                    ACTIONS.join(", ")
                ));
            }
        };
        rest = after.trim_start();
    }
    None
}
