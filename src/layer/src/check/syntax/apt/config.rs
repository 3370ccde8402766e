//! Files of apt.conf(5): text in, the statements that apt refuses out. One of them makes every command of apt fail.
//!
//! As in apt, a line is read without its comments first. A statement ends at `;`, `{` or `}` outside of quotes, perhaps on a later line, and
//! the end of the file closes all blocks.

use super::{Problem, problem};

/// Directives, which `#` does not turn into a comment.
const DIRECTIVES: [&[u8]; 3] = [b"clear", b"include", b"x-apt-configure-index"];

/// White space of isspace(3).
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Checks statements and blocks.
pub(in super::super) fn check(bytes: &[u8]) -> Vec<Problem> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if let Err((line, reason)) = reader.line(number, line) {
            return vec![problem(line, &reason)];
        }
    }
    if let Some((line, reason)) = reader.unnamed {
        return vec![Problem::error(line, format!("has a setting without effect: {reason}"))];
    }
    let (line, text) = reader.statement;
    if !text.is_empty() {
        let text = String::from_utf8_lossy(&text).into_owned();
        return vec![problem(line, &format!("expected `;` after {text:?}, found the end of the file"))];
    }
    let open = reader.blocks.first().map(|line| {
        Problem::error(*line, "has a block without `}`: it includes the rest of the file".to_owned()).warning()
    });
    open.into_iter().collect()
}

/// A line and what is wrong with it.
type Fault = (usize, String);

#[derive(Default)]
struct Reader {
    is_comment: bool,
    /// The statement so far, and its first line.
    statement: (usize, Vec<u8>),
    /// The lines of blocks that are open.
    blocks: Vec<usize>,
    /// The first value without a name.
    unnamed: Option<Fault>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &[u8]) -> Result<(), Fault> {
        let line = self.without_comments(trim(line));
        let (mut is_quoted, mut start) = (false, 0);
        for (at, byte) in line.iter().enumerate() {
            is_quoted ^= *byte == b'"';
            if !is_quoted && b"{;}".contains(byte) {
                self.add(number, &line[start..at]);
                start = at + 1;
                self.end(number, *byte)?;
            }
        }
        self.add(number, &line[start..]);
        Ok(())
    }

    /// The text of a line outside of comments.
    fn without_comments(&mut self, mut line: &[u8]) -> Vec<u8> {
        if self.is_comment {
            let Some(end) = find(line, b"*/", 0) else { return Vec::new() };
            self.is_comment = false;
            line = &line[end + 2..];
        }
        let is_directive = |at: usize| DIRECTIVES.iter().any(|name| line[at + 1..].starts_with(name));
        line = &line[..unquoted(line, b"//", |_| true).unwrap_or(line.len())];
        line = &line[..unquoted(line, b"#", |at| !is_directive(at)).unwrap_or(line.len())];
        let mut text = Vec::new();
        while let Some(start) = unquoted(line, b"/*", |_| true) {
            text.extend_from_slice(&line[..start]);
            let Some(end) = find(line, b"*/", start + 2) else {
                self.is_comment = true;
                return text;
            };
            line = &line[end + 2..];
        }
        text.extend_from_slice(line);
        text
    }

    /// Adds a part of a line to the statement.
    fn add(&mut self, number: usize, part: &[u8]) {
        let part = trim(part);
        let (line, text) = &mut self.statement;
        if part.is_empty() {
            return;
        }
        if text.is_empty() {
            *line = number;
        } else {
            text.push(b' ');
        }
        text.extend(
            part.iter().flat_map(|byte| if *byte == b'\t' { &b"        "[..] } else { std::slice::from_ref(byte) }),
        );
    }

    /// Reads the statement before `;`, `{` or `}`.
    fn end(&mut self, number: usize, by: u8) -> Result<(), Fault> {
        let (line, text) = std::mem::take(&mut self.statement);
        if text.is_empty() {
            match by {
                b'{' => return Err((number, "expected a name before `{`".to_owned())),
                b'}' => drop(self.blocks.pop()),
                _ => {}
            }
            return Ok(());
        }
        self.statement(line, &text, by).map_err(|reason| (line, reason))?;
        match by {
            b'{' => self.blocks.push(line),
            b'}' => drop(self.blocks.pop()),
            _ => {}
        }
        Ok(())
    }

    /// What is wrong with a statement: a name and a value, of which the name may be missing.
    fn statement(&mut self, line: usize, text: &[u8], by: u8) -> Result<(), String> {
        let shown = || String::from_utf8_lossy(text).into_owned();
        let (name, rest) = quoted_word(text).ok_or_else(|| format!("expected a closing bracket in {:?}", shown()))?;
        let value = c_words(rest).map(|()| (true, &rest[rest.len()..])).or_else(|| Some((true, quoted_word(rest)?.1)));
        let (has_value, rest) = value.unwrap_or((false, rest));
        if !rest.is_empty() {
            return Err(format!(
                "expected `;` after one value, found {:?} in {:?}",
                String::from_utf8_lossy(rest),
                shown()
            ));
        }
        let directive = name.strip_prefix(b"#");
        match directive {
            Some(_) if has_value && !self.blocks.is_empty() => Err(format!(
                "directives such as {:?} are only allowed outside of blocks",
                String::from_utf8_lossy(name)
            )),
            Some(directive) if has_value && !DIRECTIVES.contains(&directive) => {
                Err(format!("unknown directive {:?}", String::from_utf8_lossy(name)))
            }
            Some(b"clear") if !has_value && by != b'{' => Err("expected a name after #clear".to_owned()),
            None if !has_value && by == b';' && self.blocks.is_empty() && self.unnamed.is_none() => {
                self.unnamed = assigned(name).map(|reason| (line, reason));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// apt takes `NAME="VALUE"` for a value without a name, which has no effect outside of blocks.
fn assigned(word: &[u8]) -> Option<String> {
    match find(word, b"=", 0) {
        Some(at) if !word.starts_with(b"\"") => {
            let (name, value) = (String::from_utf8_lossy(&word[..at]), String::from_utf8_lossy(&word[at + 1..]));
            Some(format!(
                "expected a blank between the name and the value, found `=`: write `{name} \"{}\";`",
                value.replace('"', "")
            ))
        }
        _ => None,
    }
}

/// A word up to white space, in which quotes and brackets are closed, and the text after it.
fn quoted_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = text.iter().position(|byte| *byte != b' ')?;
    let mut end = start;
    while let Some(byte) = text.get(end).filter(|byte| !is_space(**byte)) {
        end = match byte {
            b'"' => find(text, b"\"", end + 1)?,
            b'[' => find(text, b"]", end + 1)?,
            _ => end,
        } + 1;
    }
    let word = &text[start..end];
    let rest = &text[end..];
    Some((word, &rest[rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len())..]))
}

/// Whether a text is only quoted texts and white space.
fn c_words(text: &[u8]) -> Option<()> {
    let mut at = text.iter().position(|byte| *byte != b' ')?;
    while let Some(byte) = text.get(at) {
        at = match byte {
            b'"' => find(text, b"\"", at + 1)?,
            byte if is_space(*byte) => at,
            _ => return None,
        } + 1;
    }
    Some(())
}

/// The first place of `what` with an even number of quotes before it.
fn unquoted(line: &[u8], what: &[u8], counts: impl Fn(usize) -> bool) -> Option<usize> {
    let (mut from, mut is_quoted, mut seen) = (0, false, 0);
    while let Some(at) = find(line, what, from) {
        is_quoted ^= line[seen..at].iter().filter(|byte| **byte == b'"').count() % 2 == 1;
        if !is_quoted && counts(at) {
            return Some(at);
        }
        (seen, from) = (at, at + 1);
    }
    None
}

fn find(text: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.windows(what.len()).position(|found| found == what).map(|at| from + at)
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(*byte)).map_or(start, |last| last + 1);
    &text[start..end]
}
