//! A program as the grammar derives it: a tree of text, so that parts of it can be left out while it stays a program.

use std::collections::BTreeSet;

/// What may take the place of a node when a program is reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A command; nothing, `:` or a command inside it may replace it.
    Statement,
    /// An argument; nothing, `a` or a word inside it may replace it.
    Word,
    /// A part that may be left out.
    Optional,
    /// A part that is needed.
    Fixed,
}

#[derive(Debug, Clone)]
pub enum Piece {
    Text(String),
    Node(Node),
    /// A here-document, which starts in the next line.
    Document(Vec<Piece>),
}

/// A production of the grammar.
#[derive(Debug, Clone)]
pub struct Node {
    pub label: &'static str,
    pub kind: Kind,
    pub pieces: Vec<Piece>,
}

/// A newline inside quotes, before which no here-document starts.
pub const QUOTED_NEWLINE: char = '\u{2}';

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Node> for Piece {
    fn from(node: Node) -> Self {
        Self::Node(node)
    }
}

macro_rules! pieces {
    ($($piece:expr),* $(,)?) => { vec![$($crate::judge::program::Piece::from($piece)),*] };
}
pub(super) use pieces;

impl Node {
    pub fn statement(label: &'static str, pieces: Vec<Piece>) -> Self {
        Self { label, kind: Kind::Statement, pieces }
    }

    pub fn word(label: &'static str, pieces: Vec<Piece>) -> Self {
        Self { label, kind: Kind::Word, pieces }
    }

    pub fn optional(label: &'static str, pieces: Vec<Piece>) -> Self {
        Self { label, kind: Kind::Optional, pieces }
    }

    pub fn fixed(label: &'static str, pieces: Vec<Piece>) -> Self {
        Self { label, kind: Kind::Fixed, pieces }
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut waiting = Vec::new();
        write(&self.pieces, &mut out, &mut waiting);
        if !waiting.is_empty() {
            out.push('\n');
            out.extend(waiting);
        }
        out
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.pieces.iter().flat_map(|piece| match piece {
            Piece::Node(node) => vec![node],
            Piece::Text(_) => Vec::new(),
            Piece::Document(pieces) => pieces.iter().filter_map(Piece::node).collect(),
        })
    }

    fn all<'n>(&'n self, found: &mut Vec<&'n Node>) {
        for node in self.nodes() {
            found.push(node);
            node.all(found);
        }
    }

    /// The productions that the program uses.
    pub fn labels(&self) -> BTreeSet<&'static str> {
        let mut found = Vec::new();
        self.all(&mut found);
        found.iter().map(|node| node.label).filter(|label| !label.is_empty()).collect()
    }

    /// Smaller programs, each with one node replaced; those that lose most come first. Each names the node by its place in pre-order.
    pub fn reductions(&self) -> Vec<(usize, Node)> {
        let mut found = Vec::new();
        self.all(&mut found);
        let length = self.text().len();
        let mut smaller = Vec::new();
        for (place, node) in found.iter().enumerate() {
            for replacement in node.replacements() {
                let program = self.replaced(place, &replacement);
                let saved = length.saturating_sub(program.text().len());
                if saved > 0 {
                    smaller.push((saved, place, program));
                }
            }
        }
        smaller.sort_by_key(|(saved, place, _)| (usize::MAX - saved, *place));
        smaller.into_iter().map(|(_, place, program)| (place, program)).collect()
    }

    /// The program without the nodes at all of these places.
    pub fn without(&self, places: &BTreeSet<usize>) -> Node {
        let mut next = 0;
        self.map(&mut next, &mut |place, _| places.contains(&place).then(|| Node::fixed("", Vec::new())))
    }

    fn replacements(&self) -> Vec<Node> {
        let empty = Node::fixed("", Vec::new());
        let fixed = |text: &str| Node::fixed("", pieces![text]);
        let mut inner = Vec::new();
        self.all(&mut inner);
        let inner = inner.into_iter().filter(|node| node.kind == self.kind).take(12).cloned();
        match self.kind {
            Kind::Statement => [empty, fixed(":")].into_iter().chain(inner).collect(),
            Kind::Word => [empty, fixed("a")].into_iter().chain(inner).collect(),
            Kind::Optional => vec![empty],
            Kind::Fixed => Vec::new(),
        }
    }

    fn replaced(&self, at: usize, replacement: &Node) -> Node {
        let mut next = 0;
        self.map(&mut next, &mut |place, _| (place == at).then(|| replacement.clone()))
    }

    fn map(&self, next: &mut usize, change: &mut dyn FnMut(usize, &Node) -> Option<Node>) -> Node {
        let pieces = map_pieces(&self.pieces, next, change);
        Node { pieces, ..*self }
    }

    fn count(&self) -> usize {
        let mut found = Vec::new();
        self.all(&mut found);
        found.len()
    }
}

impl Piece {
    /// The piece as text, without here-documents.
    pub fn text(&self) -> String {
        let mut out = String::new();
        write(std::slice::from_ref(self), &mut out, &mut Vec::new());
        out
    }

    fn node(&self) -> Option<&Node> {
        if let Self::Node(node) = self { Some(node) } else { None }
    }
}

fn map_pieces(pieces: &[Piece], next: &mut usize, change: &mut dyn FnMut(usize, &Node) -> Option<Node>) -> Vec<Piece> {
    let mut mapped = Vec::new();
    for piece in pieces {
        mapped.push(match piece {
            Piece::Text(text) => Piece::Text(text.clone()),
            Piece::Document(inner) => Piece::Document(map_pieces(inner, next, change)),
            Piece::Node(node) => {
                let place = *next;
                *next += 1;
                if let Some(replacement) = change(place, node) {
                    *next += node.count();
                    Piece::Node(replacement)
                } else {
                    Piece::Node(node.map(next, change))
                }
            }
        });
    }
    mapped
}

fn write(pieces: &[Piece], out: &mut String, waiting: &mut Vec<String>) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                for letter in text.chars() {
                    match letter {
                        QUOTED_NEWLINE => out.push('\n'),
                        '\n' => {
                            out.push('\n');
                            out.extend(waiting.drain(..));
                        }
                        other => out.push(other),
                    }
                }
            }
            Piece::Node(node) => write(&node.pieces, out, waiting),
            Piece::Document(inner) => {
                let mut text = String::new();
                write(inner, &mut text, &mut Vec::new());
                waiting.push(text);
            }
        }
    }
}
