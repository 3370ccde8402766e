//! Reads an index. Nodes may be in any order; limits end a search if the nodes of a damaged index form a cycle.

use super::{CHILDREN, HEADER_LEN, MAGIC, OFFSET, PREFIX, VALUES, VERSION};
use crate::error::Fault;
use crate::query::glob;

/// Maximum length of a key, which is a line of kmod. Bounds the depth of a damaged index.
const MAX_KEY: usize = crate::name::PATH_MAX;
/// Maximum number of nodes that a search visits: an index of Debian has 60,000. Bounds the work for a damaged index.
const MAX_VISITS: usize = 1 << 22;

/// The bytes of an index.
#[derive(Clone, Copy, Debug)]
pub struct Index<'a> {
    bytes: &'a [u8],
    root: u32,
}

/// A value and its priority.
pub type Value<'a> = (u32, &'a [u8]);

impl<'a> Index<'a> {
    /// Checks the header. An empty file, which depmod writes if the kernel has no list of built-in modules, is an empty index.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        if bytes.is_empty() {
            return Ok(Self { bytes, root: 0 });
        }
        let index = Self { bytes, root: 0 };
        for (offset, what, expected) in [(0, "magic number", MAGIC), (4, "version", VERSION)] {
            let found = index.word(offset, what)?;
            if found != expected {
                return Err(Fault::new(offset as u64, what, format!("{expected:#010x}"), format!("{found:#010x}")));
            }
        }
        Ok(Self { bytes, root: index.word(8, "location of the root")? })
    }

    /// The values of a key, by priority: the first one counts for names.
    pub fn get(&self, key: &[u8]) -> Result<Vec<Value<'a>>, Fault> {
        let (mut location, mut rest) = (self.root, key);
        while let Some(node) = self.node(location)? {
            let Some(after) = rest.strip_prefix(node.prefix) else { return Ok(Vec::new()) };
            let Some((first, after)) = after.split_first() else { return self.values(node) };
            location = self.child(node, *first)?;
            rest = after;
        }
        Ok(Vec::new())
    }

    /// The values of all keys that match a name as patterns, by priority, in kmod's order. Fails for an unsupported pattern.
    pub fn matching(&self, name: &[u8]) -> Result<Vec<Value<'a>>, Fault> {
        let mut search = Search { index: *self, name, key: Vec::new(), visits: 0, found: Vec::new() };
        let (mut location, mut rest) = (self.root, name);
        while let Some(node) = self.node(location)? {
            let is_wild = |character: &u8| b"*?[".contains(character);
            let literal = &node.prefix[..node.prefix.iter().position(is_wild).unwrap_or(node.prefix.len())];
            let Some(after) = rest.strip_prefix(literal) else { break };
            search.key.extend_from_slice(literal);
            if literal.len() < node.prefix.len() {
                search.below(location, literal.len())?;
                break;
            }
            for character in *b"*?[" {
                let child = self.child(node, character)?;
                search.key.push(character);
                search.below(child, 0)?;
                search.key.pop();
            }
            let Some((first, after)) = after.split_first() else {
                search.add(node)?;
                break;
            };
            location = self.child(node, *first)?;
            search.key.push(*first);
            rest = after;
        }
        Ok(search.found)
    }

    /// The node at a location; `None` for location 0.
    fn node(&self, location: u32) -> Result<Option<Node<'a>>, Fault> {
        let offset = location & OFFSET;
        if offset == 0 {
            return Ok(None);
        }
        if offset < HEADER_LEN {
            return Err(Fault::new(offset.into(), "location of a node", "after the header", offset));
        }
        let mut at = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut prefix = &[][..];
        if location & PREFIX != 0 {
            prefix = self.string(at, "prefix of a node")?;
            at += prefix.len() + 1;
        }
        let mut children = None;
        let start = at + 2;
        if location & CHILDREN != 0 {
            let range = self.bytes.get(at..start).filter(|range| range[0] <= range[1]);
            let Some(&[first, last]) = range else {
                return Err(Fault::new(at as u64, "range of children", "first and last character", "none"));
            };
            children = Some((first, last));
            at = start + 4 * (usize::from(last - first) + 1);
        }
        Ok(Some(Node { prefix, children, start, values: (location & VALUES != 0).then_some(at) }))
    }

    fn child(&self, node: Node<'_>, character: u8) -> Result<u32, Fault> {
        match node.children {
            Some((first, last)) if (first..=last).contains(&character) => {
                self.word(node.start + 4 * usize::from(character - first), "location of a child")
            }
            _ => Ok(0),
        }
    }

    fn values(&self, node: Node<'_>) -> Result<Vec<Value<'a>>, Fault> {
        let Some(mut at) = node.values else { return Ok(Vec::new()) };
        let count = self.word(at, "number of values")?;
        at += 4;
        let mut values = Vec::new();
        for _ in 0..count {
            let priority = self.word(at, "priority")?;
            let value = self.string(at + 4, "value")?;
            at += 4 + value.len() + 1;
            values.push((priority, value));
        }
        Ok(values)
    }

    fn word(&self, at: usize, what: &'static str) -> Result<u32, Fault> {
        let word = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        word.map(|word| u32::from_be_bytes(*word)).ok_or_else(|| self.short(at, what))
    }

    fn string(&self, at: usize, what: &'static str) -> Result<&'a [u8], Fault> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0);
        end.map(|end| &rest[..end]).ok_or_else(|| self.short(at, what))
    }

    fn short(&self, at: usize, what: &'static str) -> Fault {
        Fault::new(at as u64, what, "more bytes", format!("end of file at {}", self.bytes.len()))
    }
}

#[derive(Clone, Copy, Debug)]
struct Node<'a> {
    prefix: &'a [u8],
    /// The first and the last character.
    children: Option<(u8, u8)>,
    /// Offset of the locations of children.
    start: usize,
    /// Offset of the values.
    values: Option<usize>,
}

/// A search for patterns that match a name.
struct Search<'a, 'b> {
    index: Index<'a>,
    name: &'b [u8],
    /// The key of the current node.
    key: Vec<u8>,
    visits: usize,
    found: Vec<Value<'a>>,
}

impl Search<'_, '_> {
    /// Adds the values of matching keys at and below a node, whose prefix is read from character `skipped`. Children come first.
    fn below(&mut self, location: u32, skipped: usize) -> Result<(), Fault> {
        let Some(node) = self.index.node(location)? else { return Ok(()) };
        self.visits += 1;
        let key_len = self.key.len();
        self.key.extend_from_slice(&node.prefix[skipped..]);
        if self.visits > MAX_VISITS || self.key.len() > MAX_KEY {
            let found = format!("{} nodes, and a key of {} bytes", self.visits, self.key.len());
            return Err(Fault::new(u64::from(location & OFFSET), "node", "an index without cycles", found));
        }
        if let Some((first, last)) = node.children {
            for character in first..=last {
                let child = self.index.child(node, character)?;
                self.key.push(character);
                self.below(child, 0)?;
                self.key.pop();
            }
        }
        if node.values.is_some() {
            let is_match = glob::matches(&self.key, self.name).ok_or_else(|| {
                let offset = u64::from(location & OFFSET);
                Fault::new(offset, "alias", "a pattern without character classes", self.key.escape_ascii())
            })?;
            if is_match {
                self.add(node)?;
            }
        }
        self.key.truncate(key_len);
        Ok(())
    }

    fn add(&mut self, node: Node<'_>) -> Result<(), Fault> {
        for (priority, value) in self.index.values(node)? {
            let position = self.found.iter().position(|(other, _)| *other >= priority).unwrap_or(self.found.len());
            self.found.insert(position, (priority, value));
        }
        Ok(())
    }
}
