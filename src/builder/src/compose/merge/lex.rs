//! Lines of shell scripts as dash reads them (POSIX.1-2017, XCU 2.2 and 2.3): a line in, its words and operators out, or nothing where
//! it has anything whose extent is not certain.
//!
//! Each line stands for itself: quotes end on it, and it does not go on. Blanks are the space and the tab alone, and a comment
//! begins where a word could. Refused are here-documents, backslashes but for `\~`, backquotes, other substitutions of commands and
//! parameters than debhelper's, and control characters.

use std::iter::Peekable;
use std::str::CharIndices;

/// Blanks of the shell. Others that Unicode has are parts of words.
pub(super) const BLANKS: [char; 2] = [' ', '\t'];

/// Empty on an image that is installed from inside.
const ROOT_OPTION: &str = "${DPKG_ROOT:+--root=\"$DPKG_ROOT\"}";
const ROOT: &str = "${DPKG_ROOT:-}";
/// The path of a program, in a test of whether there is one.
const PROGRAM: &str = "$(command -v systemd-tmpfiles)";

/// Words that mean something else in quotes.
const RESERVED: [&str; 14] =
    ["!", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while"];

/// Most substitutions inside of each other.
const MAX_DEPTH: u32 = 3;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Without its quotes; parameters stay as they are written.
    Word(String),
    /// `;`, `&&`, `||` or `>`.
    Operator(&'static str),
}

/// The words and operators of a line, without its comment.
pub(super) fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(BLANKS);
        if rest.is_empty() || rest.starts_with('#') {
            return (!line.contains('\0')).then_some(tokens);
        }
        if let Some(after) = rest.strip_prefix(ROOT_OPTION) {
            rest = after.strip_prefix(BLANKS)?;
            continue;
        }
        if let Some(operator) = ["&&", "||", ";", ">"].into_iter().find(|operator| rest.starts_with(operator)) {
            tokens.push(Token::Operator(operator));
            rest = rest.get(operator.len()..)?;
            continue;
        }
        let (word, len) = word(rest).filter(|(_, len)| *len > 0)?;
        rest = rest.get(len..)?;
        // A number before a redirection is no word.
        if rest.starts_with('>') && word.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        tokens.push(Token::Word(word));
    }
}

/// The word at the beginning of a text, and how much of that it takes.
fn word(text: &str) -> Option<(String, usize)> {
    let (mut word, mut quoted, mut at) = (String::new(), false, 0_usize);
    while let Some(next) = text.get(at..)?.chars().next() {
        let rest = text.get(at..)?;
        match next {
            ' ' | '\t' | ';' | '&' | '|' | '>' => break,
            '\'' => {
                let (inside, _) = rest.get(1..)?.split_once('\'')?;
                if inside.contains(char::is_control) {
                    return None;
                }
                word.push_str(inside);
                (quoted, at) = (true, at + inside.len() + 2);
            }
            '"' => {
                let inside = double(rest.get(1..)?, &mut word)?;
                (quoted, at) = (true, at + inside + 2);
            }
            '\\' if rest.starts_with("\\~") => {
                word.push('~');
                (quoted, at) = (true, at + 2);
            }
            '\\' | '`' | '<' | '(' | ')' | '{' | '}' => return None,
            // Not the same to every shell.
            '$' if rest.starts_with("$'") || rest.starts_with("$\"") => return None,
            other if other.is_control() || !other.is_ascii() => return None,
            other => {
                word.push(other);
                at += 1;
            }
        }
    }
    (!(quoted && RESERVED.contains(&word.as_str()))).then_some((word, at))
}

/// Adds what stands in double quotes, up to their end, to a word; returns its length.
fn double(text: &str, word: &mut String) -> Option<usize> {
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix(ROOT) {
            rest = after;
        } else if let Some(after) = rest.strip_prefix(PROGRAM) {
            word.push('x');
            rest = after;
        } else {
            let next = rest.chars().next()?;
            match next {
                '"' => return Some(text.len() - rest.len()),
                '\\' | '`' => return None,
                '$' if rest.starts_with("$(") || rest.starts_with("${") => return None,
                control if control.is_control() => return None,
                other => word.push(other),
            }
            rest = rest.get(next.len_utf8()..)?;
        }
    }
}

/// A line of any script, of which is known what is in quotes.
#[derive(Debug)]
pub(super) struct Code<'a> {
    /// It, without a comment behind it.
    pub(super) text: &'a str,
    /// What is in no quotes, and not escaped.
    pub(super) bare: String,
    /// Whether a blank or a part of an operator is in quotes: who looks for these must look no further.
    pub(super) hides: bool,
    /// Whether there is a comment.
    pub(super) comment: bool,
}

/// Reads a line that may hold more than [`tokens`] knows; `None` where a quote stays open, and where a substitution could hold quotes or
/// comments of its own.
pub(super) fn code(line: &str) -> Option<Code<'_>> {
    let mut code = Code { text: line, bare: String::new(), hides: false, comment: false };
    let mut chars = line.char_indices().peekable();
    let mut double = false;
    let mut begins = true;
    while let Some((at, next)) = chars.next() {
        match next {
            '`' => return None,
            other if is_foreign(other) => return None,
            '\'' if !double => code.hides |= single(&mut chars)?,
            '"' => double = !double,
            '\\' => {
                let (_, escaped) = chars.next().filter(|(_, escaped)| !is_foreign(*escaped))?;
                code.hides |= hides(escaped);
            }
            '$' if matches!(chars.peek(), Some((_, '(' | '{'))) => {
                let text = substitution(line.get(at..)?, MAX_DEPTH)?;
                while chars.next_if(|(next, _)| *next < at + text).is_some() {}
                let inside = line.get(at..at + text).filter(|inside| !inside.contains(is_foreign))?;
                code.hides |= inside.contains(hides);
            }
            '$' if !double && matches!(chars.peek(), Some((_, '\'' | '"'))) => return None,
            '#' if !double && begins => {
                (code.text, code.comment) = (line.get(..at)?.trim_end_matches(BLANKS), true);
                break;
            }
            other if double => code.hides |= hides(other),
            other => code.bare.push(other),
        }
        begins = !double && matches!(next, ' ' | '\t' | ';' | '&' | '|' | '(' | ')' | '<' | '>');
    }
    (!double).then_some(code)
}

/// Reads on to the end of single quotes; whether they hide anything.
fn single(chars: &mut Peekable<CharIndices<'_>>) -> Option<bool> {
    let mut found = false;
    loop {
        match chars.next()? {
            (_, '\'') => return Some(found),
            (_, other) if is_foreign(other) => return None,
            (_, other) => found |= hides(other),
        }
    }
}

/// Whether a character would be a blank elsewhere than in a shell, or could be lost on the way to one.
fn is_foreign(char: char) -> bool {
    !BLANKS.contains(&char) && (char.is_whitespace() || char.is_control())
}

/// The length of the substitution that a text begins with. One of a parameter has neither blanks nor quotes, but for debhelper's; one of
/// commands may have quotes and others like it, but no comment, and no `case`, whose patterns end as it does.
fn substitution(text: &str, depth: u32) -> Option<usize> {
    if text.starts_with(ROOT_OPTION) {
        return Some(ROOT_OPTION.len());
    }
    if text.starts_with("${") {
        let inside = text.get(2..)?.split_once('}')?.0;
        return (!inside.contains(['\'', '"', '\\', '`', '(', '{', ' ', '\t'])).then_some(inside.len() + 3);
    }
    let mut double = false;
    let mut at = 2;
    loop {
        let rest = text.get(at..)?;
        let next = rest.chars().next()?;
        at += match next {
            ')' if !double => return (!text.get(..at)?.contains("case")).then_some(at + 1),
            '"' => {
                double = !double;
                1
            }
            '\'' if !double => rest.get(1..)?.find('\'')? + 2,
            '\\' => 1 + rest.chars().nth(1)?.len_utf8(),
            '$' if rest.starts_with("$(") || rest.starts_with("${") => substitution(rest, depth.checked_sub(1)?)?,
            '$' if !double && (rest.starts_with("$'") || rest.starts_with("$\"")) => return None,
            '`' => return None,
            '(' | '#' if !double => return None,
            other => other.len_utf8(),
        };
    }
}

fn hides(char: char) -> bool {
    matches!(char, ' ' | '\t' | ';' | '&' | '|' | '(' | ')')
}

#[cfg(test)]
mod tests;
