//! The scalar values of a YAML document, each with the path of keys that leads to it, in document order.

use saphyr_parser::{Event, Parser};

/// Maximum nesting depth: network settings have six levels.
const MAX_DEPTH: usize = 40;

/// The scalars of all mappings and lists; an empty mapping or list counts as an empty string. Aliases are not supported.
pub(super) fn values(text: &str) -> Result<Vec<(Vec<String>, String)>, String> {
    let mut parser = Parser::new_from_str(text);
    let mut found = Vec::new();
    // The open mappings and lists, outermost first.
    let mut open: Vec<Level> = Vec::new();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let here = || format!("on line {}", span.start.line());
        let value = match event {
            Event::Scalar(text, ..) => text.into_owned(),
            Event::Alias(_) => return Err(format!("unsupported alias {}", here())),
            Event::MappingStart(..) | Event::SequenceStart(..) if open.len() >= MAX_DEPTH => {
                return Err(format!("nested more than {MAX_DEPTH} levels deep {}", here()));
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let is_key = open.last().is_some_and(Level::awaits_key);
                if is_key {
                    return Err(format!("key is not a scalar {}", here()));
                }
                let is_mapping = matches!(event, Event::MappingStart(..));
                open.push(Level { is_mapping, key: None, is_empty: true });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some(level) if level.is_empty => String::new(),
                _ => {
                    finish(&mut open);
                    continue;
                }
            },
            _ => continue,
        };
        if let Some(level) = open.last_mut() {
            level.is_empty = false;
            if level.awaits_key() {
                level.key = Some(value);
                continue;
            }
        }
        found.push((open.iter().filter_map(|level| level.key.clone()).collect(), value));
        finish(&mut open);
    }
    Ok(found)
}

/// An open mapping or list.
struct Level {
    is_mapping: bool,
    key: Option<String>,
    is_empty: bool,
}

impl Level {
    fn awaits_key(&self) -> bool {
        self.is_mapping && self.key.is_none()
    }
}

/// Ends the value of the current key.
fn finish(open: &mut [Level]) {
    if let Some(level) = open.last_mut() {
        level.key = None;
        level.is_empty = false;
    }
}
