//! Tables of cron(8), as in crontab(5) of Debian: a text enters, the first line for which cron ignores the file leaves.

use super::{File, Problem};
use crate::check::is_run_by_parts;

/// A field of time: its name, its lowest and highest value, and the names of its values.
type Field = (&'static str, u32, u32, &'static [&'static str]);

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    ("month", 1, 12, &MONTHS),
    ("day of the week", 0, 7, &DAYS),
];

const SPECIAL: [&str; 8] = ["@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

const BLANKS: [char; 2] = [' ', '\t'];

/// Checks a table of the system, whose lines name a user. Files with other names are not read.
pub(super) fn check(file: &File) -> Vec<Problem> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    if !is_run_by_parts(name.as_bytes()) {
        return Vec::new();
    }
    for (index, line) in file.text.split_inclusive('\n').enumerate() {
        let ended = line.strip_suffix('\n');
        let line = ended.unwrap_or(line).trim_start_matches(BLANKS);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = (!is_variable(line)).then(|| fault(line)).flatten();
        let unended = || ended.is_none().then(|| "does not end with a newline".to_owned());
        if let Some(reason) = fault.or_else(unended) {
            return vec![Problem::error(index + 1, format!("is skipped by cron: {reason}"))];
        }
    }
    Vec::new()
}

/// Whether a line sets a variable: `NAME = value`, either of them with quotes.
fn is_variable(line: &str) -> bool {
    let rest = match quoted(line) {
        Some(rest) => rest,
        None => line.trim_start_matches(|next: char| !next.is_whitespace() && next != '='),
    };
    let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else { return false };
    !value.starts_with(['"', '\'']) || quoted(value).is_some_and(|rest| rest.trim().is_empty())
}

/// What follows a text in quotes.
fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    text[1..].split_once(quote).map(|(_, rest)| rest)
}

/// What is wrong with a line of a job.
fn fault(line: &str) -> Option<String> {
    let word = |text: &str| text.split(BLANKS).next().unwrap_or_default().to_owned();
    let mut rest = line;
    if line.starts_with('@') {
        let special = word(line);
        if !SPECIAL.contains(&special.as_str()) {
            return Some(format!("expected one of {}, found {special:?}", SPECIAL.join(", ")));
        }
        rest = line[special.len()..].trim_start_matches(BLANKS);
    } else {
        for field in &FIELDS {
            match list(rest, field) {
                Some(next) => rest = next,
                None => {
                    let (name, low, high, _) = field;
                    return Some(format!("expected a {name} from {low} to {high}, found {:?}", word(rest)));
                }
            }
        }
    }
    (!rest.contains(BLANKS)).then(|| "expected a user and a command after the time".to_owned())
}

/// What follows a list of ranges. cron passes over the rest of its word, such as `#2` in `1#2`.
fn list<'a>(mut rest: &'a str, field: &Field) -> Option<&'a str> {
    loop {
        rest = range(rest, field)?;
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let end = rest.find(BLANKS).unwrap_or(rest.len());
    Some(rest[end..].trim_start_matches(BLANKS))
}

/// What follows `*`, a value or a range, each with a step perhaps; a single value has none.
fn range<'a>(text: &'a str, &(_, low, high, names): &Field) -> Option<&'a str> {
    let (first, last, rest) = match text.strip_prefix('*') {
        Some(rest) => (low, high, rest),
        None => {
            let (first, rest) = number(text, low, names)?;
            match rest.strip_prefix('-') {
                Some(rest) => {
                    let (last, rest) = number(rest, low, names)?;
                    (first, last, rest)
                }
                None => return ((low..=high).contains(&first) && !rest.starts_with('/')).then_some(rest),
            }
        }
    };
    let (step, rest) = match rest.strip_prefix('/') {
        Some(rest) => number(rest, 0, &[]).filter(|(step, _)| *step > 0)?,
        None => (1, rest),
    };
    // A range that ends before it begins has no values, and cron takes it.
    let reached = last.checked_sub(first).map(|span| first + span / step * step);
    reached.is_none_or(|reached| first >= low && reached <= high).then_some(rest)
}

/// A number, or a name of one.
fn number<'a>(text: &'a str, low: u32, names: &[&str]) -> Option<(u32, &'a str)> {
    let end = text.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    match names.iter().position(|name| name.eq_ignore_ascii_case(word)) {
        Some(at) => Some((low + u32::try_from(at).ok()?, rest)),
        None => Some((word.parse().ok()?, rest)),
    }
}
