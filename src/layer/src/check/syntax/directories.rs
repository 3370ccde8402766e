//! Files of systemd in which each line stands alone: sysctl.d(5), modules-load.d(5), tmpfiles.d(5) and sysusers.d(5). systemd ignores lines that are not valid.

mod accounts;
mod duplicates;
mod files;

use super::accounts::{Named, is_id};
use super::units::sequence;
use super::{File, Problem};
pub use duplicates::{TmpfilesConflict, tmpfiles_conflicts};
pub(super) use files::{is_time, microseconds};

/// `WHITESPACE` of systemd: other white space is a part of a word.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Checks assignments of kernel parameters. A line that begins with `-` excludes one.
pub(super) fn check_sysctl(text: &str) -> Vec<Problem> {
    let comments = ['#', ';'];
    let mut found = each(text, "systemd-sysctl", &comments, |line| {
        let is_valid = line.contains('=') || line.starts_with('-');
        (!is_valid).then(|| format!("expected KEY = VALUE, found {line:?}"))
    });
    let values = lines(text, &comments).filter_map(|(line, text)| Some((line, text.split_once('=')?.1.trim())));
    found.extend(values.filter_map(|(line, value)| Some(Problem::error(line, odd_value(value)?).warning())));
    found
}

/// What is probably not meant in the value of a parameter, which the kernel gets as it is.
fn odd_value(value: &str) -> Option<String> {
    let has_comment = [" #", "\t#"].iter().any(|start| value.contains(start));
    let number = value.trim_end_matches(|next: char| next.is_ascii_alphabetic());
    let has_unit = ["k", "m", "g", "t"].iter().any(|unit| value[number.len()..].eq_ignore_ascii_case(unit));
    if has_comment {
        return Some(format!("sets the value {value:?}: write the comment in a separate line"));
    }
    let is_size = has_unit && number.bytes().all(|byte| byte.is_ascii_digit()) && !number.is_empty();
    is_size.then(|| format!("sets the value {value:?}, which the kernel refuses for numbers: it knows no units"))
}

/// Checks names of modules: each line is one.
pub(super) fn check_modules(text: &str) -> Vec<Problem> {
    each(text, "systemd-modules-load", &['#', ';'], |line| {
        let has_blank = line.contains([' ', '\t']);
        has_blank.then(|| format!("expected the name of one module, found {line:?}"))
    })
}

/// Checks types, paths, modes, owners, ages and arguments.
pub(super) fn check_tmpfiles(text: &str) -> Vec<Problem> {
    let split = |line: &str| words(line, 6, true);
    let mut found =
        each(text, "systemd-tmpfiles", &['#'], |line| split(line).and_then(|words| files::check(&words)).err());
    let notes = lines(text, &['#']).filter_map(|(line, text)| Some((line, files::note(&split(text).ok()?)?)));
    found.extend(notes.map(|(line, note)| Problem::error(line, note).warning()));
    found.extend(tmpfiles_conflicts([text]).into_iter().map(|conflict| {
        let TmpfilesConflict { place: (_, line), first: (_, first), path, is_conditional } = conflict;
        let message = format!("is ignored by systemd-tmpfiles: line {first} has other settings for {path:?}");
        Problem { line: Some(line), is_warning: is_conditional, message }
    }));
    found.sort_by_key(|problem| problem.line);
    found
}

/// Checks types, names, ids and the number of fields. Descriptions are UTF-8.
pub(super) fn check_sysusers(file: &File) -> Vec<Problem> {
    let split = |line: &str| words(line, usize::MAX, false);
    let rule = |line: &str| split(line).and_then(|words| accounts::check(&words)).err();
    let mut found = each(file.text, "systemd-sysusers", &['#'], rule);
    let lines_with_words = lines(file.text, &['#']).filter_map(|(line, text)| Some((line, split(text).ok()?)));
    let conflicts = accounts::conflicts(lines_with_words.filter(|(_, words)| accounts::check(words).is_ok()));
    found.extend(
        conflicts
            .into_iter()
            .map(|(line, reason)| Problem::error(line, format!("is ignored by systemd-sysusers: {reason}"))),
    );
    let lines = (1..).zip(file.bytes.split(|byte| *byte == b'\n'));
    let wrong = lines.filter(|(_, line)| str::from_utf8(line).is_err() && !line.trim_ascii_start().starts_with(b"#"));
    let message = "is ignored by systemd-sysusers: expected UTF-8, found another byte";
    found.extend(wrong.map(|(number, _)| Problem::error(number, message.to_owned())));
    found.sort_by_key(|problem| problem.line);
    found
}

/// The owners that lines of tmpfiles.d(5) name.
pub(super) fn tmpfiles_accounts(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for (line, text) in lines(text, &['#']) {
        let words = words(text, 6, true).unwrap_or_default();
        for (at, what) in [(3, "user"), (4, "group")] {
            // A colon is for what does not exist yet.
            let name = field(&words, at).map(|name| name.trim_start_matches(':').to_owned());
            found.extend(name.filter(|name| !is_id(name)).map(|name| (line, what, name)));
        }
    }
    found
}

/// Applies a rule to each line that is neither empty nor a comment.
fn each(text: &str, program: &str, comments: &[char], rule: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let faults = lines(text, comments).filter_map(|(line, text)| Some((line, rule(text)?)));
    faults.map(|(line, reason)| Problem::error(line, format!("is ignored by {program}: {reason}"))).collect()
}

/// Lines that are neither empty nor comments, counted from 1.
fn lines<'a>(text: &'a str, comments: &'a [char]) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = (1..).zip(text.lines().map(|line| line.trim_matches(BLANKS)));
    lines.filter(move |(_, line)| !line.is_empty() && !line.starts_with(comments))
}

/// Words between blanks, which may be quoted. The text after the first `max` of them is one more word. A backslash escapes the next
/// character, or begins an escape sequence if `has_sequences`.
fn words(line: &str, max: usize, has_sequences: bool) -> Result<Vec<String>, String> {
    let (mut words, mut rest) = (Vec::new(), line);
    while !rest.is_empty() && words.len() < max {
        let (mut word, mut quote) = (String::new(), None);
        while let Some(next) = rest.chars().next() {
            if quote.is_none() && BLANKS.contains(&next) {
                break;
            }
            rest = &rest[next.len_utf8()..];
            match (quote, next) {
                (_, '\\') => {
                    let (character, after) = unescaped(rest, has_sequences)?;
                    word.push(character);
                    rest = after;
                }
                (Some(open), _) if open == next => quote = None,
                (None, '"' | '\'') => quote = Some(next),
                _ => word.push(next),
            }
        }
        if quote.is_some() {
            return Err("expected a closing quote, found the end of the line".to_owned());
        }
        words.push(word);
        rest = rest.trim_start_matches(BLANKS);
    }
    if !rest.is_empty() {
        words.push(rest.to_owned());
    }
    Ok(words)
}

/// The character for which a backslash and the text after it stand, and what follows.
fn unescaped(text: &str, has_sequences: bool) -> Result<(char, &str), String> {
    let next = text.chars().next().ok_or("expected a character after the backslash, found the end of the line")?;
    match has_sequences {
        true => sequence(text).ok_or_else(|| format!("\\{next} is not an escape sequence; write \\\\ for a backslash")),
        false => Ok((next, &text[next.len_utf8()..])),
    }
}

/// A field that is neither missing nor `-`.
fn field(words: &[String], at: usize) -> Option<&str> {
    words.get(at).map(String::as_str).filter(|word| !matches!(*word, "" | "-"))
}

/// A letter or digit after `%` that is not one of the specifiers.
fn unknown_specifier(text: &str, specifiers: &str) -> Result<(), String> {
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        let after = if next == '%' { chars.next() } else { None };
        if let Some(unknown) = after.filter(|after| after.is_ascii_alphanumeric() && !specifiers.contains(*after)) {
            return Err(format!("%{unknown} in {text:?} is not a specifier; write %% for a percent sign"));
        }
    }
    Ok(())
}

/// An id without sign and leading zeros. Two of them are errors for programs that have ids of 32 or 16 bits.
pub(super) fn id(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|id| is_plain && *id != u32::MAX && *id != 0xffff)
}
