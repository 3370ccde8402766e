//! The values of a YAML document, each with the keys that lead to it: text in, pairs out, in their order.

use saphyr_parser::{Event, Parser};

/// Deepest nesting: settings of networks have six levels.
const MAX_DEPTH: usize = 40;

/// The scalars of all mappings and lists; an empty mapping or list counts as an empty text. Aliases, which would have to be followed, are refused.
pub(super) fn values(text: &str) -> Result<Vec<(Vec<String>, String)>, String> {
    let mut parser = Parser::new_from_str(text);
    let mut found = Vec::new();
    // Of each open mapping: the key whose value is to come. `None` for lists.
    let mut open: Vec<Level> = Vec::new();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let here = || format!("in line {}", span.start.line());
        let value = match event {
            Event::Scalar(text, ..) => text.into_owned(),
            Event::Alias(_) => return Err(format!("it has an alias {}", here())),
            Event::MappingStart(..) | Event::SequenceStart(..) if open.len() >= MAX_DEPTH => {
                return Err(format!("it is nested more than {MAX_DEPTH} levels deep {}", here()));
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let is_key = open.last().is_some_and(Level::awaits_key);
                if is_key {
                    return Err(format!("it has a key that is no text {}", here()));
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

/// A mapping or list whose end is to come.
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

/// The value of the last key is there.
fn finish(open: &mut [Level]) {
    if let Some(level) = open.last_mut() {
        level.key = None;
        level.is_empty = false;
    }
}
