//! The scalar values of a YAML document with their key paths, in document order.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser};

/// Maximum nesting depth: network settings have six levels.
const MAX_DEPTH: usize = 40;

/// Maximum number of values, with those of aliases.
const MAX_VALUES: usize = 10_000;

/// A scalar with the keys that lead to it.
type Value = (Vec<String>, String);

/// The scalars of all mappings and lists; an empty mapping or list counts as an empty string. An alias has the values of its anchor.
pub(super) fn values(text: &str) -> Result<Vec<Value>, String> {
    let mut parser = Parser::new_from_str(text);
    let mut document = Document::default();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| error.to_string())?;
        document.take(event).map_err(|what| format!("{what} on line {}", span.start.line()))?;
    }
    Ok(document.found)
}

#[derive(Default)]
struct Document {
    found: Vec<Value>,
    /// The open mappings and lists, outermost first.
    open: Vec<Level>,
    /// The values of nodes with anchors, with the keys below the node.
    anchors: BTreeMap<usize, Vec<Value>>,
}

impl Document {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                self.anchors.insert(anchor, vec![(Vec::new(), text.to_string())]);
                self.add(vec![(Vec::new(), text.into_owned())])
            }
            Event::Alias(anchor) => {
                let values = self.anchors.get(&anchor).cloned();
                self.add(values.ok_or("alias in the node that it refers to")?)
            }
            Event::MappingStart(anchor, _) | Event::SequenceStart(anchor, _) => {
                if self.open.len() >= MAX_DEPTH {
                    return Err(format!("nested more than {MAX_DEPTH} levels deep"));
                }
                if self.open.last().is_some_and(Level::awaits_key) {
                    return Err("key is not a scalar".to_owned());
                }
                let is_mapping = matches!(event, Event::MappingStart(..));
                self.open.push(Level { is_mapping, key: None, anchor, start: self.found.len() });
                Ok(())
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let Some(level) = self.open.pop() else { return Ok(()) };
                let keys = self.keys();
                if self.found.len() == level.start {
                    self.found.push((keys.clone(), String::new()));
                }
                let below = self.found.get(level.start..).unwrap_or_default().iter();
                let below =
                    below.map(|(path, value)| (path.get(keys.len()..).unwrap_or_default().to_vec(), value.clone()));
                self.anchors.insert(level.anchor, below.collect());
                self.finish();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds the values of a node, or uses it as a key.
    fn add(&mut self, values: Vec<Value>) -> Result<(), String> {
        if let Some(level) = self.open.last_mut().filter(|level| level.awaits_key()) {
            let [(below, key)] = &values[..] else { return Err("key is not a scalar".to_owned()) };
            if !below.is_empty() {
                return Err("key is not a scalar".to_owned());
            }
            level.key = Some(key.clone());
            return Ok(());
        }
        if self.found.len().saturating_add(values.len()) > MAX_VALUES {
            return Err(format!("more than {MAX_VALUES} values"));
        }
        let keys = self.keys();
        self.found.extend(values.into_iter().map(|(below, value)| ([&keys[..], &below].concat(), value)));
        self.finish();
        Ok(())
    }

    fn keys(&self) -> Vec<String> {
        self.open.iter().filter_map(|level| level.key.clone()).collect()
    }

    /// Ends the value of the current key.
    fn finish(&mut self) {
        if let Some(level) = self.open.last_mut() {
            level.key = None;
        }
    }
}

/// An open mapping or list.
struct Level {
    is_mapping: bool,
    key: Option<String>,
    /// Its anchor; 0 if it has none.
    anchor: usize,
    /// How many values precede it.
    start: usize,
}

impl Level {
    fn awaits_key(&self) -> bool {
        self.is_mapping && self.key.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_has_the_values_of_its_anchor() {
        let text = "a: &x {b: [1, &y 2], c: {}}\nd: *x\ne: [*y, *x]\n*y : f\n";
        let found = values(text).unwrap();
        let lines: Vec<String> = found.iter().map(|(path, value)| format!("{}={value}", path.join("."))).collect();
        assert_eq!(lines, ["a.b=1", "a.b=2", "a.c=", "d.b=1", "d.b=2", "d.c=", "e=2", "e.b=1", "e.b=2", "e.c=", "2=f"]);
        assert!(values("a: &x [*x]\n").unwrap_err().contains("alias in the node"));
        let many = (1..20).fold("a0: &a0 [1, 1]\n".to_owned(), |text, at| {
            let before = at - 1;
            text + &format!("a{at}: &a{at} [*a{before}, *a{before}]\n")
        });
        assert!(values(&many).unwrap_err().contains("more than 10000 values"));
    }
}
