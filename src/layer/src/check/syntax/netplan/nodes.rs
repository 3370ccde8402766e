//! The nodes of a YAML document, with their lines.

use saphyr_parser::{Event, Parser};

use super::Fault;

/// How many collections may be in each other. Those of a network are not as deep.
const MAX_DEPTH: usize = 32;

pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

pub(super) enum Value {
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
    /// An alias, which has the value of another node.
    Unknown,
}

impl Node {
    pub(super) fn mapping(&self) -> Result<&[(Self, Self)], Fault> {
        match &self.value {
            Value::Mapping(entries) => Ok(entries),
            Value::Unknown => Ok(&[]),
            _ => Err(self.expected("a mapping; check the indentation")),
        }
    }

    pub(super) fn list(&self) -> Result<&[Self], Fault> {
        match &self.value {
            Value::List(entries) => Ok(entries),
            Value::Unknown => Ok(&[]),
            _ => Err(self.expected("a list, such as [a, b]")),
        }
    }

    /// The text of a key.
    pub(super) fn text(&self) -> Result<&str, Fault> {
        self.known_text().map(Option::unwrap_or_default)
    }

    /// The text; `None` for that of another node.
    pub(super) fn known_text(&self) -> Result<Option<&str>, Fault> {
        match &self.value {
            Value::Text(text) => Ok(Some(text)),
            Value::Unknown => Ok(None),
            _ => Err(self.expected("a text or a number")),
        }
    }

    pub(super) fn expected(&self, what: &str) -> Fault {
        let found = match &self.value {
            Value::Text(text) if text.is_empty() => "nothing".to_owned(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
            Value::Unknown => "an alias".to_owned(),
        };
        (self.line, format!("expected {what}, found {found}"))
    }
}

/// The root of the first document, unless its collections are too deep.
pub(super) fn document(text: &str) -> Option<Node> {
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<(usize, Vec<Node>)> = Vec::new();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.ok()?;
        let line = span.start.line();
        let node = match event {
            Event::Scalar(text, ..) => Node { line, value: Value::Text(text.into_owned()) },
            Event::Alias(_) => Node { line, value: Value::Unknown },
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == MAX_DEPTH => return None,
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                open.push((line, Vec::new()));
                continue;
            }
            Event::SequenceEnd => open.pop().map(|(line, nodes)| Node { line, value: Value::List(nodes) })?,
            Event::MappingEnd => {
                let (line, nodes) = open.pop()?;
                let mut nodes = nodes.into_iter();
                let entries = std::iter::from_fn(|| nodes.next().zip(nodes.next()));
                Node { line, value: Value::Mapping(entries.collect()) }
            }
            Event::DocumentEnd => return None,
            _ => continue,
        };
        match open.last_mut() {
            Some((_, nodes)) => nodes.push(node),
            None => return Some(node),
        }
    }
    None
}
