//! Tables of cron(8), as in crontab(5) of Debian: a text enters, the first line for which cron ignores the file leaves.

use super::{File, Problem, access};
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

/// Longest command (`MAX_COMMAND` without the NUL byte at its end), in bytes.
const MAX_COMMAND: usize = 998;

const BLANKS: [char; 2] = [' ', '\t'];

/// Checks a table of the system, whose lines name a user. Files with other names are not read.
pub(super) fn check(file: &File) -> Vec<Problem> {
    if !is_table(file.path) {
        return Vec::new();
    }
    if let Some(problem) = access::of_program(file, "cron") {
        return vec![problem];
    }
    let mut found = Vec::new();
    for (number, line) in lines(file.text) {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let is_job = !is_variable(text);
        let fault = if is_job { user(text).err() } else { None };
        let unended = || (!line.ends_with('\n')).then(|| "does not end with a newline".to_owned());
        if let Some(reason) = fault.or_else(unended) {
            return vec![Problem::error(number, format!("is skipped by cron: {reason}"))];
        }
        if found.is_empty() && is_job && text.ends_with('\r') {
            let message = "has a carriage return, which cron takes as a part of the command; use newlines only";
            found.push(Problem::error(number, message.to_owned()).warning());
        }
    }
    found
}

/// The users of the jobs in a table of the system, each with its line. There are none if cron skips the file.
pub fn users(path: &str, text: &str) -> Vec<(usize, String)> {
    let jobs = lines(text).filter(|(_, line)| is_table(path) && !is_variable(line));
    let users = jobs.map(|(number, line)| Some((number, user(line.trim_end()).ok()?.to_owned())));
    users.collect::<Option<_>>().unwrap_or_default()
}

/// Whether cron reads a file as a table of the system.
fn is_table(path: &str) -> bool {
    let name = path.strip_prefix("/etc/cron.d/");
    path == "/etc/crontab" || name.is_some_and(|name| is_run_by_parts(name.as_bytes()))
}

/// Lines of variables and jobs, counted from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split_inclusive('\n').map(|line| line.trim_start_matches(BLANKS));
    (1..).zip(lines).filter(|(_, line)| !matches!(line.chars().next(), None | Some('\n' | '#')))
}

/// Whether a line sets a variable: `NAME = value`, either of them with quotes.
fn is_variable(line: &str) -> bool {
    let rest = match quoted(line) {
        Some(rest) => rest,
        None if line.starts_with(['"', '\'']) => return false,
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

/// The user of a job, or what is wrong with its line.
fn user(line: &str) -> Result<&str, String> {
    let word = |text: &str| text.split(BLANKS).next().unwrap_or_default().to_owned();
    let mut rest = line;
    if line.starts_with('@') {
        let special = word(line);
        if !SPECIAL.contains(&special.as_str()) {
            return Err(format!("expected one of {}, found {special:?}", SPECIAL.join(", ")));
        }
        rest = line[special.len()..].trim_start_matches(BLANKS);
    } else {
        for field in &FIELDS {
            match list(rest, field) {
                Some(next) => rest = next,
                None => {
                    let (name, low, high, _) = field;
                    return Err(format!("expected a {name} from {low} to {high}, found {:?}", word(rest)));
                }
            }
        }
    }
    let (user, command) = rest.split_once(BLANKS).ok_or("expected a user and a command after the time")?;
    if user.starts_with('-') || user.contains(['*', ':', '%', '/']) {
        return Err(format!("expected the name of a user after the time, found {user:?}"));
    }
    if command.len() > MAX_COMMAND {
        return Err(format!("the command is longer than {MAX_COMMAND} bytes"));
    }
    Ok(user)
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
