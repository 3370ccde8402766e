//! Settings of cloud-init and netplan in YAML. netplan refuses a file that libyaml does not read. cloud-init ignores a file that is not a
//! mapping, or that PyYAML does not read, and stops at one that is not UTF-8.
//!
//! The parser reads YAML 1.2, and PyYAML YAML 1.1: it refuses tabs between words, unknown tags, keys that are not scalars, an anchor that a
//! document has twice, and values that do not fit their type.

mod nodes;
mod scalars;

use std::collections::BTreeSet;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::Problem;
use nodes::Nodes;

/// Texts of a null (YAML 1.1).
const NULLS: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// Faults that only this parser finds: for PyYAML, the lines of a text in quotes or of a collection in brackets may begin anywhere.
const ACCEPTED: [&str; 5] = [
    "comments must be separated from other tokens by whitespace",
    "invalid indentation",
    "invalid indentation in flow construct",
    "invalid indentation in quoted scalar",
    "tab cannot be used as indentation",
];

/// Checks that a file is one mapping, or nothing.
pub(super) fn check(bytes: &[u8]) -> Vec<Problem> {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = 1 + bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
            return vec![Problem::error(line, "stops cloud-init: expected UTF-8, found another byte".to_owned())];
        }
    };
    // cloud-init renders it first.
    if text.starts_with("## template:") {
        return Vec::new();
    }
    if let Some((line, character)) = unprintable(text) {
        return problem(line, &format!("expected a printable character, found {character:?}"));
    }
    if let Some(line) = ended(text) {
        return problem(line, "expected a mapping, found the end of a document");
    }
    let plain = text.replace(BREAKS, "\n");
    let mut found = check_text(&plain);
    for problem in &mut found {
        problem.line = problem.line.map(|line| line - breaks_before(text, line));
    }
    found
}

/// A text that begins with a character that neither PyYAML nor libyaml accepts there: within brackets, both know no blocks of text.
fn wrong_start(event: &Event) -> Option<String> {
    let Event::Scalar(text, ScalarStyle::Plain, ..) = event else { return None };
    let first = text.chars().next().filter(|first| "|>%@`".contains(*first))?;
    Some(format!("a text that begins with {first} needs quotes: within brackets, | and > do not start a block"))
}

/// Checks that libyaml reads a file.
pub(super) fn check_netplan(text: &str) -> Vec<Problem> {
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let found = match &event {
            Ok((event, span)) => wrong_start(event).map(|reason| (span.start.line(), reason)),
            Err(error) if ACCEPTED.contains(&error.info()) => return Vec::new(),
            Err(error) => Some((error.marker().line(), error.info().to_owned())),
        };
        if let Some((line, reason)) = found {
            return vec![Problem::error(line, format!("is refused by netplan: {reason}"))];
        }
    }
    Vec::new()
}

/// Characters that end a line in YAML 1.1.
const BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// How many of the ends of the lines before a line are [`BREAKS`].
fn breaks_before(text: &str, line: usize) -> usize {
    let ends = text.chars().filter(|next| *next == '\n' || BREAKS.contains(next));
    ends.take(line.saturating_sub(1)).filter(|next| *next != '\n').count()
}

/// The line of an end of a document that no document is before.
fn ended(text: &str) -> Option<usize> {
    let mut lines = (1..).zip(text.trim_start_matches('\u{feff}').lines());
    let (number, first) = lines.find(|(_, line)| !matches!(line.trim_start().chars().next(), None | Some('#')))?;
    let rest = first.strip_prefix("...")?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(number)
}

/// The same for a text that has only newlines between lines.
fn check_text(text: &str) -> Vec<Problem> {
    let mut parser = Parser::new_from_str(text);
    let (mut documents, mut is_top, mut nodes, mut anchors) = (0, false, Nodes::default(), Anchors::default());
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) if ACCEPTED.contains(&error.info()) => return nodes.warnings,
            Err(error) => return problem(error.marker().line(), error.info()),
        };
        let line = span.start.line();
        if let Some(reason) = wrong_start(&event) {
            return problem(line, &reason);
        }
        match &event {
            Event::DocumentStart(_) => {
                documents += 1;
                is_top = true;
                if documents > 1 {
                    return problem(line, "expected one document, found another one");
                }
            }
            Event::Scalar(text, style, ..) if is_top => {
                if *style != ScalarStyle::Plain || !NULLS.contains(&text.as_ref()) {
                    return problem(line, "expected a mapping such as `key: value`, found a text");
                }
                is_top = false;
            }
            Event::SequenceStart(..) if is_top => return problem(line, "expected a mapping, found a list"),
            Event::MappingStart(..) => is_top = false,
            _ => {}
        }
        if let Some(name) = anchors.repeated(text, &event, span) {
            return problem(line, &format!("has the anchor {name:?} twice"));
        }
        if let Some(reason) = nodes.fault(&event, line, span.end.line()) {
            return problem(line, &reason);
        }
    }
    match nodes.line_with_tab(text) {
        Some(line) => problem(line, "expected blanks, found a tab"),
        None => nodes.warnings,
    }
}

/// The first character that PyYAML does not read, with its line.
fn unprintable(text: &str) -> Option<(usize, char)> {
    let is_read = |next: char| match next {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => !next.is_control(),
    };
    let (at, found) = text.char_indices().find(|(_, next)| !is_read(*next))?;
    Some((1 + text[..at].matches('\n').count(), found))
}

/// The names of anchors, as the parser numbers them anew where one has the name of an earlier one.
#[derive(Default)]
struct Anchors {
    names: BTreeSet<String>,
    /// Where the last event ended, in characters.
    end: usize,
    /// The last position found, in characters and in bytes: the search for a later one starts there.
    known: (usize, usize),
}

impl Anchors {
    /// The name of an event's anchor if an earlier one has it.
    fn repeated(&mut self, text: &str, event: &Event, span: Span) -> Option<String> {
        let start = std::mem::replace(&mut self.end, span.end.index());
        let (Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _)) = event else {
            return None;
        };
        let lines = text[self.byte_at(text, start)..]
            .lines()
            .map(|line| if line.starts_with('#') { "" } else { line.split(" #").next().unwrap_or_default() });
        let name = lines.into_iter().find_map(|line| line.split_once('&')).map(|(_, name)| name)?;
        let end = name.find(|next: char| next.is_whitespace() || ",[]{}".contains(next)).unwrap_or(name.len());
        let name = &name[..end];
        (!self.names.insert(name.to_owned())).then(|| name.to_owned())
    }

    /// The byte at which a character begins.
    fn byte_at(&mut self, text: &str, character: usize) -> usize {
        let (characters, bytes) = if self.known.0 <= character { self.known } else { (0, 0) };
        let mut next = text[bytes..].char_indices().skip(character - characters);
        let byte = next.next().map_or(text.len(), |(at, _)| bytes + at);
        self.known = (character.min(characters + text[bytes..byte].chars().count()), byte);
        byte
    }
}

fn problem(line: usize, reason: &str) -> Vec<Problem> {
    vec![Problem::error(line, format!("is ignored by cloud-init: {reason}"))]
}
