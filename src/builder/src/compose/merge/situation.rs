//! What of a maintainer script is reached when dpkg calls it with known arguments: a script in, the same script without
//! the branches that are not reached out. Lines keep their text and order, so that what is left is judged as a script.
//!
//! Conditions on `$1` and `$2` are decided, and so is whether systemd runs: it does not. All others may hold or not: both
//! branches stay, with their `if`. A script with anything that could hide where a branch ends (heredocs, loops, functions,
//! quotes over several lines, changed arguments) is left as it is, which can only lead to more being refused.

mod condition;

use super::lex::{BLANKS, code};
use condition::{Truth, truth};

/// What a call of a script says: its first two arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a> {
    /// Such as `upgrade` or `configure`.
    pub(super) action: &'a str,
    /// The other version.
    pub(super) version: &'a str,
}

/// An open `if` or `case`.
enum Frame {
    If {
        /// Whether the branch that is read may be reached.
        live: bool,
        /// Whether an earlier branch is certainly taken.
        taken: bool,
        /// Whether the `if` stays, since nobody knows its outcome.
        shown: bool,
    },
    Case {
        /// The text that is compared; `None` where it is not known.
        word: Option<String>,
        /// Whether an arm was taken.
        taken: bool,
        /// Whether the arm that is read is reached.
        live: bool,
        /// Whether a line that is no comment begins an arm.
        between: bool,
    },
}

impl Frame {
    fn live(&self) -> bool {
        match self {
            Self::If { live, .. } | Self::Case { live, .. } => *live,
        }
    }

    /// Whether what stands inside is reached for certain.
    fn known(&self) -> bool {
        matches!(self, Self::If { shown: false, .. } | Self::Case { word: Some(_), .. })
    }
}

/// The lines of `script` that a call with `arguments` may reach.
pub(super) fn reached(script: &str, arguments: Arguments<'_>) -> String {
    walk(script, arguments).unwrap_or_else(|| script.to_owned())
}

/// `None` where the script is not simple enough.
fn walk(script: &str, arguments: Arguments<'_>) -> Option<String> {
    if script.contains("<<") || script.contains(";&") || script.contains("()") {
        return None;
    }
    let mut out = String::new();
    let mut frames: Vec<Frame> = Vec::new();
    let lines = joined(script)?;
    let mut lines = lines.iter().map(String::as_str).peekable();
    while let Some(line) = lines.next() {
        let live = frames.iter().all(Frame::live);
        if line.is_empty() || line.starts_with('#') {
            push(&mut out, line, live);
            continue;
        }
        let code = code(line)?.text;
        // `then` may stand on a line of its own.
        let code = match lines.peek() {
            Some(&"then") if code.starts_with("if ") || code.starts_with("elif ") => {
                lines.next();
                format!("{}; then", code.trim_end_matches(';').trim_end())
            }
            _ => code.to_owned(),
        };
        let certain = frames.iter().all(Frame::known);
        if certain && live && code == "exit 0" {
            break;
        }
        step(&code, &mut frames, arguments, &mut out)?;
    }
    Some(out)
}

/// Reads one line that is neither empty nor a comment.
fn step(code: &str, frames: &mut Vec<Frame>, arguments: Arguments<'_>, out: &mut String) -> Option<()> {
    let live = frames.iter().all(Frame::live);
    if let Some(Frame::Case { between: true, .. }) = frames.last() {
        return arm(code, frames, arguments, out);
    }
    match code.split_whitespace().next()? {
        "if" if code.ends_with("; then") => {
            let truth = truth(condition_of(code, "if")?, arguments);
            let shown = live && truth == Truth::Unknown;
            push(out, code, shown);
            frames.push(Frame::If { live: truth != Truth::False, taken: truth == Truth::True, shown });
        }
        "elif" | "else" | "fi" => return branch(code, frames, arguments, out),
        "case" => {
            let word = code.strip_prefix("case ")?.strip_suffix(" in")?;
            let word = condition::value(word.trim(), arguments);
            push(out, code, live && word.is_none());
            frames.push(Frame::Case { word, taken: false, live: true, between: true });
        }
        _ => plain(code, frames, live, out)?,
    }
    Some(())
}

/// `elif`, `else` and `fi`.
fn branch(code: &str, frames: &mut Vec<Frame>, arguments: Arguments<'_>, out: &mut String) -> Option<()> {
    let outer = frames.split_last().is_some_and(|(_, outer)| outer.iter().all(Frame::live));
    let Frame::If { live, taken, shown } = frames.last_mut()? else { return None };
    match code.split_whitespace().next()? {
        "elif" => {
            let truth = truth(condition_of(code, "elif")?, arguments);
            *live = !*taken && truth != Truth::False;
            match (*live, *shown, truth) {
                (false, ..) => {}
                // Which of two open ends is meant could not be told.
                (true, true, Truth::Unknown) => return None,
                (true, true, _) => push(out, "else", outer),
                (true, false, Truth::Unknown) => {
                    *shown = true;
                    push(out, code.strip_prefix("el")?, outer);
                }
                (true, false, _) => {}
            }
            *taken |= truth == Truth::True;
        }
        "else" if code == "else" => {
            *live = !*taken;
            push(out, code, outer && *live && *shown);
        }
        "fi" if code == "fi" => {
            push(out, code, outer && *shown);
            frames.pop();
        }
        _ => return None,
    }
    Some(())
}

/// Between the arms of a `case`: a pattern with what follows it, or the end.
fn arm(code: &str, frames: &mut Vec<Frame>, arguments: Arguments<'_>, out: &mut String) -> Option<()> {
    let outer = frames.split_last().is_some_and(|(_, outer)| outer.iter().all(Frame::live));
    let Some(Frame::Case { word, taken, live, between }) = frames.last_mut() else { return None };
    if code == "esac" {
        push(out, code, outer && word.is_none());
        frames.pop();
        return Some(());
    }
    let (patterns, rest) = code.trim_start_matches('(').split_once(')')?;
    let mut matched = false;
    for pattern in patterns.split('|').map(|pattern| pattern.trim_matches(BLANKS)) {
        let quoted = |quote| pattern.strip_prefix(quote)?.strip_suffix(quote).filter(|text| !text.contains('*'));
        let pattern = quoted('"').or_else(|| quoted('\'')).unwrap_or(pattern);
        if pattern.is_empty() || !pattern.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_*".contains(&byte)) {
            return None;
        }
        matched |= word.as_deref().is_none_or(|word| super::matches(pattern.as_bytes(), word.as_bytes()));
    }
    *live = matched && !*taken;
    *taken |= matched && word.is_some();
    *between = false;
    push(out, &format!("{patterns})"), outer && *live && word.is_none());
    match rest.trim() {
        "" => Some(()),
        rest => step(rest, frames, arguments, out),
    }
}

/// A command. Words that begin or end what is not tracked here are refused wherever they stand outside of quotes.
fn plain(code: &str, frames: &mut [Frame], live: bool, out: &mut String) -> Option<()> {
    const STRUCTURE: [&str; 16] =
        ["if", "then", "elif", "else", "fi", "case", "esac", "for", "while", "until", "do", "done", "{", "}", "(", ")"];
    let (command, ends) = match code.strip_suffix(";;") {
        Some(command) => (command.trim_end(), true),
        None => (code, false),
    };
    let bare = super::lex::code(command)?.bare;
    let words: Vec<&str> = bare.split([' ', '\t', ';', '&', '|']).filter(|word| STRUCTURE.contains(word)).collect();
    let open = !words.is_empty() && words != ["if", "then", "fi"];
    let sets = command.starts_with("shift") || (command.starts_with("set ") && !command.starts_with("set -e"));
    if open || sets || bare.ends_with(['|', '&', '\\']) {
        return None;
    }
    if !command.is_empty() {
        push(out, command, live);
    }
    match (ends, frames.last_mut()) {
        (false, _) => Some(()),
        (true, Some(Frame::Case { word, between, .. })) => {
            push(out, ";;", live && word.is_none());
            *between = true;
            Some(())
        }
        (true, _) => None,
    }
}

fn push(out: &mut String, line: &str, live: bool) {
    if live {
        out.push_str(line);
        out.push('\n');
    }
}

/// What stands between the word that begins a line and `then`.
fn condition_of<'a>(code: &'a str, word: &str) -> Option<&'a str> {
    Some(code.strip_prefix(word)?.strip_suffix("then")?.trim_end().strip_suffix(';')?.trim())
}

/// The lines without blanks around them; those that end with a backslash are one with the next. `None` where that is in quotes or in a
/// comment behind code.
fn joined(script: &str) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in script.split('\n') {
        let text = line.trim_start_matches(BLANKS);
        let comment = !goes_on && text.starts_with('#');
        let (text, more) = match text.strip_suffix('\\').filter(|_| !comment) {
            Some(text) => (text, true),
            None => (text.trim_end_matches(BLANKS), false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(text),
            None => lines.push(text.to_owned()),
        }
        goes_on = more;
        if more && lines.last().is_some_and(|line| code(line).is_none_or(|code| code.comment)) {
            return None;
        }
    }
    let mut lines: Vec<String> = lines.iter().map(|line| line.trim_matches(BLANKS).to_owned()).collect();
    // Behind the last line end there is no line.
    lines.pop_if(|last| last.is_empty());
    Some(lines)
}

#[cfg(test)]
mod tests;
