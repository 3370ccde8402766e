//! Settings of cloud-init in YAML: it ignores a file that is not a mapping.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::Problem;

/// Texts of a null (YAML 1.1).
const NULLS: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// Checks that a file is one mapping, or nothing.
pub(super) fn check(text: &str) -> Vec<Problem> {
    // cloud-init renders it first.
    if text.starts_with("## template:") {
        return Vec::new();
    }
    let mut parser = Parser::new_from_str(text);
    let (mut documents, mut is_top) = (0, false);
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => return problem(error.marker().line(), error.info()),
        };
        let line = span.start.line();
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                is_top = true;
                if documents > 1 {
                    return problem(line, "expected one document, found another one");
                }
            }
            Event::Scalar(text, style, ..) if is_top => {
                if style != ScalarStyle::Plain || !NULLS.contains(&text.as_ref()) {
                    return problem(line, "expected a mapping such as `key: value`, found a text");
                }
                is_top = false;
            }
            Event::SequenceStart(..) if is_top => return problem(line, "expected a mapping, found a list"),
            Event::MappingStart(..) => is_top = false,
            _ => {}
        }
    }
    Vec::new()
}

fn problem(line: usize, reason: &str) -> Vec<Problem> {
    vec![Problem::error(line, format!("is ignored by cloud-init: {reason}"))]
}
