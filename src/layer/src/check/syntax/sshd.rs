//! Settings of sshd(8), as in sshd_config(5): a line that is not valid keeps sshd from starting, so that no login is possible.

mod algorithms;
mod conditions;
mod keywords;
mod lists;
mod values;

use vmbake_common::spelling::near;

use super::{MOST, Problem};
use keywords::{GLOBAL, MATCH};

/// Blanks at the ends of a line.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\u{c}'];

/// Commands that sshd does not take without a user.
const COMMANDS: [[&str; 2]; 2] = [
    ["authorizedkeyscommand", "authorizedkeyscommanduser"],
    ["authorizedprincipalscommand", "authorizedprincipalscommanduser"],
];

/// A line of sshd_config(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshdLine {
    /// Counted from 1.
    pub line: usize,
    /// The keyword as it is written.
    pub written: String,
    /// The same in small letters.
    pub keyword: String,
    pub arguments: Vec<String>,
    /// Whether it is `Match`, or in a block of it.
    pub is_matched: bool,
}

/// The lines of a file, without those whose quotes are not closed.
pub fn sshd_lines(text: &str) -> Vec<SshdLine> {
    let mut is_matched = false;
    let lines = lines(text).filter_map(|(line, text)| {
        let (written, rest) = split(text)?;
        let keyword = written.to_ascii_lowercase();
        is_matched |= keyword == "match";
        Some(SshdLine { line, written, keyword, arguments: arguments(rest)?, is_matched })
    });
    lines.collect()
}

/// Lines that are neither empty nor comments, counted from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    let lines = lines.map(|(number, line)| (number, line.trim_end_matches(BLANKS).trim_start_matches([' ', '\t'])));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Checks keywords and their arguments, and whether a `Match` block may have them.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let (mut found, mut is_matching, mut commands) = (Vec::new(), false, Vec::new());
    for (number, line) in lines(text) {
        let Some((written, rest)) = split(line) else {
            let message = "is ignored by sshd: expected a closing quote after the keyword";
            found.push(Problem::error(number, message.to_owned()).warning());
            continue;
        };
        let keyword = written.to_ascii_lowercase();
        let arguments = arguments(rest);
        let reason = match is_known(&keyword) {
            true => fault(&written, &keyword, arguments.as_deref(), is_matching),
            false => Some(unknown(&written, &keyword, found.len())),
        };
        found.extend(reason.map(|reason| Problem::error(number, format!("keeps sshd from starting: {reason}"))));
        if COMMANDS.as_flattened().contains(&keyword.as_str()) {
            commands.push((number, keyword.clone(), !rest.eq_ignore_ascii_case("none")));
        }
        if keyword == "match" {
            is_matching = !arguments.is_some_and(|words| words.len() == 1 && words[0].eq_ignore_ascii_case("all"));
        }
    }
    for [command, user] in COMMANDS {
        let is_set = |name: &str| commands.iter().find(|(_, found, is_set)| found == name && *is_set);
        if let (Some((line, ..)), None) = (is_set(command), is_set(user)) {
            let message = format!("keeps sshd from starting, unless another file sets {user}");
            found.push(Problem::error(*line, message).warning());
        }
    }
    found
}

fn is_known(keyword: &str) -> bool {
    GLOBAL.contains(&keyword) || MATCH.contains(&keyword)
}

/// What is wrong with an unknown keyword. A similar one is only searched for the first faults, as that takes long.
fn unknown(written: &str, keyword: &str, faults: usize) -> String {
    let known = GLOBAL.into_iter().chain(MATCH).filter(|_| faults < MOST);
    let near = near(keyword, known);
    let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("unknown keyword {written:?}{hint}")
}

/// What is wrong with a line of a known keyword; `arguments` is `None` if a quote is not closed.
fn fault(written: &str, keyword: &str, arguments: Option<&[String]>, is_matching: bool) -> Option<String> {
    if GLOBAL.contains(&keyword) && is_matching {
        return Some(format!("{written} is not allowed within a `Match` block"));
    }
    let reason = match (arguments, keyword) {
        (None, _) => Some("expected a closing quote, found the end of the line".to_owned()),
        (Some([]), _) => return Some(format!("{written} has no argument")),
        (Some([_]), "subsystem") => Some("expected a name and a command".to_owned()),
        (Some(words), "match") => conditions::fault(words),
        (Some(words), keyword) => values::fault(keyword, words).or_else(|| lists::fault(keyword, words)),
    };
    reason.map(|reason| format!("{written}: {reason}"))
}

/// The keyword, of which a part may be quoted, and the text of its arguments after blanks or `=`. `None` if the quote is not closed: sshd
/// then ignores the line.
fn split(line: &str) -> Option<(String, &str)> {
    let (begin, rest) = line.split_at(line.find([' ', '\t', '=', '"']).unwrap_or(line.len()));
    let (quoted, rest) = match rest.strip_prefix('"') {
        Some(rest) => rest.split_once('"')?,
        None => ("", rest),
    };
    let rest = rest.trim_start_matches([' ', '\t']);
    Some((format!("{begin}{quoted}"), rest.strip_prefix('=').unwrap_or(rest).trim_start_matches([' ', '\t'])))
}

/// Words between blanks, with quotes and escapes, up to a comment. `None` if a quote is not closed.
fn arguments(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\\' => {
                let is_escape = |after: &char| "'\"\\".contains(*after) || quote.is_none() && *after == ' ';
                let escaped = chars.next_if(is_escape);
                word.get_or_insert_default().push(escaped.unwrap_or(next));
            }
            ' ' | '\t' if quote.is_none() => words.extend(word.take()),
            '#' if quote.is_none() && word.is_none() => break,
            '"' | '\'' if quote.is_none() => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            _ if quote == Some(next) => quote = None,
            _ => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
