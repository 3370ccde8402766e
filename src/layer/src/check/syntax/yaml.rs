//! Settings of cloud-init in YAML: it ignores a file that is not a mapping, or that PyYAML does not read.
//!
//! The parser reads YAML 1.2, and PyYAML YAML 1.1: it refuses tabs between words, unknown tags and keys that are not scalars.

mod nodes;

use saphyr_parser::{Event, Parser, ScalarStyle};

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
pub(super) fn check(text: &str) -> Vec<Problem> {
    // cloud-init renders it first.
    if text.starts_with("## template:") {
        return Vec::new();
    }
    let mut parser = Parser::new_from_str(text);
    let (mut documents, mut is_top, mut nodes) = (0, false, Nodes::default());
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) if ACCEPTED.contains(&error.info()) => return nodes.warnings,
            Err(error) => return problem(error.marker().line(), error.info()),
        };
        let line = span.start.line();
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
        if let Some(reason) = nodes.fault(&event, line, span.end.line()) {
            return problem(line, &reason);
        }
    }
    match nodes.line_with_tab(text) {
        Some(line) => problem(line, "expected blanks, found a tab"),
        None => nodes.warnings,
    }
}

fn problem(line: usize, reason: &str) -> Vec<Problem> {
    vec![Problem::error(line, format!("is ignored by cloud-init: {reason}"))]
}
