//! YAML as a tree with positions: text in, nodes with line and column out.
//!
//! Stricter than YAML 1.2: a single document, no anchors, aliases, tags or merge keys, no duplicate keys, and only string keys. So a
//! document has only one meaning, and does not grow while it is read. A plain scalar that YAML 1.1 and 1.2 read differently is refused
//! where it is used: Kubernetes reads YAML 1.1.

use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::error::{Location, ProfileError};

/// Largest document, in bytes: the largest profile that its authors ship has 40 KB, and etcd keeps at most 1.5 MiB of any object.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Deepest nesting: a profile has 10 levels.
const MAX_DEPTH: usize = 40;
/// Most nodes: a profile has some 300.
const MAX_NODES: usize = 50_000;

/// A document, with the file that it is from.
#[derive(Debug)]
pub(super) struct Document {
    path: PathBuf,
    pub(super) root: Node,
}

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// A value, and where it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: At,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// A text.
    Scalar {
        text: String,
        style: ScalarStyle,
    },
    List(Vec<Node>),
    Map(Vec<(String, At, Node)>),
}

/// What is open while the events come.
struct Open {
    node: Node,
    /// Of a mapping: the key whose value is to come.
    key: Option<(String, At)>,
}

impl Document {
    /// Reads a document of a file.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, ProfileError> {
        let document = Self {
            path: path.to_owned(),
            root: Node { at: At { line: 1, column: 1 }, content: Content::List(Vec::new()) },
        };
        let root = document.read(text)?;
        Ok(Self { root, ..document })
    }

    /// That place in the file.
    pub(super) fn spot(&self, at: At) -> Location {
        Location { path: self.path.clone(), line: at.line, column: at.column }
    }

    fn read(&self, text: &str) -> Result<Node, ProfileError> {
        let mut parser = Parser::new_from_str(text);
        let (mut open, mut root): (Vec<Open>, Option<Node>) = (Vec::new(), None);
        let mut count = 0_usize;
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| ProfileError::Syntax {
                spot: self.spot(At::of(error.marker())),
                message: error.info().to_owned(),
            })?;
            let at = At::of(&span.start);
            count = count.saturating_add(1);
            self.admit(&event, at, open.len(), count, root.is_some())?;
            match event {
                Event::Scalar(text, style, ..) => {
                    let node = Node { at, content: Content::Scalar { text: text.into_owned(), style } };
                    self.close(node, &mut open, &mut root)?;
                }
                Event::SequenceStart(..) => open.push(Open::new(at, Content::List(Vec::new()))),
                Event::MappingStart(..) => open.push(Open::new(at, Content::Map(Vec::new()))),
                Event::SequenceEnd | Event::MappingEnd => {
                    if let Some(done) = open.pop() {
                        self.close(done.node, &mut open, &mut root)?;
                    }
                }
                _ => {}
            }
        }
        root.ok_or_else(|| ProfileError::value(self.spot(At { line: 1, column: 1 }), "a mapping", "an empty document"))
    }

    /// Refuses what has two meanings, and what is too much.
    fn admit(&self, event: &Event<'_>, at: At, depth: usize, count: usize, done: bool) -> Result<(), ProfileError> {
        let what = match event {
            Event::Alias(_) => "aliases are not supported: repeat the value",
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if *anchor != 0 =>
            {
                "anchors are not supported"
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                "tags are not supported"
            }
            Event::DocumentStart(_) if done => "expected a single document, found a second one",
            _ if depth > MAX_DEPTH => "nested more than 40 levels deep",
            _ if count > MAX_NODES => "more than 50000 values",
            _ => return Ok(()),
        };
        Err(ProfileError::Unsupported { spot: self.spot(at), what })
    }

    /// Puts a finished node where it belongs.
    fn close(&self, node: Node, open: &mut [Open], root: &mut Option<Node>) -> Result<(), ProfileError> {
        let Some(parent) = open.last_mut() else {
            *root = Some(node);
            return Ok(());
        };
        match (&mut parent.node.content, parent.key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some((key, at))) => entries.push((key, at, node)),
            (Content::Map(entries), None) => {
                let Content::Scalar { text, .. } = node.content else {
                    return Err(ProfileError::value(self.spot(node.at), "a name as the key", "a list or mapping"));
                };
                let spot = self.spot(node.at);
                if text == "<<" {
                    return Err(ProfileError::Unsupported { spot, what: "merge keys are not supported" });
                }
                if entries.iter().any(|(key, ..)| *key == text) {
                    return Err(ProfileError::value(spot, "unique keys", format!("duplicate {text}")));
                }
                parent.key = Some((text, node.at));
            }
            (Content::Scalar { .. }, _) => {}
        }
        Ok(())
    }
}

impl Open {
    fn new(at: At, content: Content) -> Self {
        Self { node: Node { at, content }, key: None }
    }
}

impl At {
    fn of(marker: &Marker) -> Self {
        Self { line: marker.line(), column: marker.col().saturating_add(1) }
    }
}
