//! Files of systemd in which each line stands alone: sysctl.d(5), tmpfiles.d(5) and sysusers.d(5). systemd ignores lines that are not valid.

use super::Problem;

/// Types of lines in tmpfiles.d, and those of them that need an argument.
const TMPFILES: &str = "fFwdDevqQpLcbCxXrRzZtThHaAm";
const WITH_ARGUMENT: &str = "wcbtThHaA";

/// Modifiers after the type.
const MODIFIERS: &str = "+!-=~^$?";

/// Types of lines in sysusers.d.
const ACCOUNTS: [&str; 5] = ["u", "u!", "g", "m", "r"];

/// Checks assignments of kernel parameters. A line that begins with `-` excludes one.
pub(super) fn check_sysctl(text: &str) -> Vec<Problem> {
    each(text, "systemd-sysctl", |line| {
        let is_valid = line.contains('=') || line.starts_with('-');
        (!is_valid).then(|| format!("expected KEY = VALUE, found {line:?}"))
    })
}

/// Checks types, paths, modes, and whether arguments are there.
pub(super) fn check_tmpfiles(text: &str) -> Vec<Problem> {
    each(text, "systemd-tmpfiles", |line| words(line, 6).and_then(|words| file(&words)).err())
}

/// Checks types, names and ids.
pub(super) fn check_sysusers(text: &str) -> Vec<Problem> {
    each(text, "systemd-sysusers", |line| words(line, usize::MAX).and_then(|words| account(&words)).err())
}

/// Applies a rule to each line that is neither empty nor a comment.
fn each(text: &str, program: &str, rule: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']));
    let faults = lines.filter_map(|(index, line)| Some((index + 1, rule(line)?)));
    faults.map(|(line, reason)| Problem::error(line, format!("is ignored by {program}: {reason}"))).collect()
}

/// Words between blanks, which may be quoted. What follows the first `max` of them is one more word.
fn words(line: &str, max: usize) -> Result<Vec<String>, String> {
    let (mut words, mut rest) = (Vec::new(), line);
    while !rest.is_empty() && words.len() < max {
        let (mut word, mut quote, mut end, mut is_escaped) = (String::new(), None, rest.len(), false);
        for (at, next) in rest.char_indices() {
            match (quote, next) {
                _ if is_escaped => {
                    is_escaped = false;
                    word.push(next);
                }
                (_, '\\') => is_escaped = true,
                (Some(open), _) if open == next => quote = None,
                (None, '"' | '\'') => quote = Some(next),
                (None, _) if next.is_whitespace() => {
                    end = at;
                    break;
                }
                _ => word.push(next),
            }
        }
        if quote.is_some() {
            return Err("expected a closing quote, found the end of the line".to_owned());
        }
        words.push(word);
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() {
        words.push(rest.to_owned());
    }
    Ok(words)
}

/// A field that is neither missing nor `-`.
fn field(words: &[String], at: usize) -> Option<&str> {
    words.get(at).map(String::as_str).filter(|word| !matches!(*word, "" | "-"))
}

/// A line of tmpfiles.d.
fn file(words: &[String]) -> Result<(), String> {
    let word = words.first().map(String::as_str).unwrap_or_default();
    let kind = word.get(..1).filter(|kind| TMPFILES.contains(kind));
    let Some(kind) = kind else { return Err(format!("unknown type {word:?}")) };
    let modifiers = &word[1..];
    if let Some(other) =
        modifiers.chars().find(|next| !MODIFIERS.contains(*next) || modifiers.matches(*next).count() > 1)
    {
        return Err(format!("unknown or repeated modifier {other:?} in {word:?}"));
    }
    let path = words.get(1).ok_or("expected a path after the type, found the end of the line")?;
    if !path.starts_with(['/', '%']) {
        return Err(format!("path {path:?} is not absolute"));
    }
    if let Some(mode) = field(words, 2) {
        let octal = u32::from_str_radix(mode.trim_start_matches(['~', ':']), 8);
        octal.ok().filter(|octal| *octal <= 0o7777).ok_or_else(|| format!("invalid mode {mode:?}"))?;
    }
    let is_missing = WITH_ARGUMENT.contains(kind) && !modifiers.contains('^') && field(words, 6).is_none();
    if is_missing { Err(format!("type {kind} needs an argument in the seventh field")) } else { Ok(()) }
}

/// A line of sysusers.d.
fn account(words: &[String]) -> Result<(), String> {
    let kind = words.first().map(String::as_str).unwrap_or_default();
    if !ACCOUNTS.contains(&kind) {
        return Err(format!("unknown type {kind:?}"));
    }
    if words.len() < 2 {
        return Err("expected a name after the type, found the end of the line".to_owned());
    }
    let (name, value) = (field(words, 1), field(words, 2));
    // Both are errors for programs that have ids of 32 or 16 bits.
    let id = |text: &str| text.parse::<u32>().ok().filter(|id| *id != u32::MAX && *id != 0xffff);
    match (kind, name, value) {
        ("r", Some(name), _) => Err(format!("type r has no name, found {name:?}")),
        ("r", None, Some(range)) => {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let is_range = id(first).zip(id(last)).is_some_and(|(first, last)| first <= last);
            if is_range { Ok(()) } else { Err(format!("expected a range of ids, found {range:?}")) }
        }
        ("r", None, None) => Err("type r needs a range of ids in the third field".to_owned()),
        (_, None, _) => Err(format!("type {kind} needs a name in the second field")),
        ("m", _, None) => Err("type m needs a group in the third field".to_owned()),
        ("u" | "u!" | "g", _, Some(value)) if !value.starts_with(['/', '%']) => {
            let uid = value.split_once(':').map_or(value, |(uid, _)| uid);
            if id(uid).is_some() || uid == "-" {
                Ok(())
            } else {
                Err(format!("expected an id or a path, found {value:?}"))
            }
        }
        _ => Ok(()),
    }
}
