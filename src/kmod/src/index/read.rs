//! Reads an index. Nodes may be in any order, but each is behind its parent or before it: a damaged index cannot make a search endless,
//! because each step consumes a character of the key or of the pattern's index.

use super::{CHILDREN, HEADER_LEN, MAGIC, OFFSET, PREFIX, VALUES, VERSION};
use crate::error::Fault;

/// Longest key: that of a line of kmod. Bounds the depth of a damaged index.
const MAX_KEY: usize = crate::name::PATH_MAX;
/// Most nodes that a search by patterns visits: an index of Debian has 60,000. Bounds the work for a damaged index.
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

    /// Calls `visit` for every key with its values, in the order of keys.
    pub fn each(&self, mut visit: impl FnMut(&[u8], Vec<Value<'a>>)) -> Result<(), Fault> {
        let mut stack = vec![(self.root, Vec::new())];
        let mut visits = 0;
        while let Some((location, mut key)) = stack.pop() {
            let Some(node) = self.node(location)? else { continue };
            visits += 1;
            key.extend_from_slice(node.prefix);
            if visits > MAX_VISITS || key.len() > MAX_KEY {
                let offset = u64::from(location & OFFSET);
                return Err(Fault::new(offset, "node", "an index without cycles", format!("{visits} nodes")));
            }
            if let Some((first, last)) = node.children {
                for character in (first..=last).rev() {
                    let child = [&key[..], &[character]].concat();
                    stack.push((self.child(node, character)?, child));
                }
            }
            visit(&key, self.values(node)?);
        }
        Ok(())
    }

    /// The node at a location; `None` for location 0.
    fn node(&self, location: u32) -> Result<Option<Node<'a>>, Fault> {
        if location & OFFSET == 0 {
            return Ok(None);
        }
        let mut at = usize::try_from(location & OFFSET).unwrap_or(usize::MAX);
        if at < HEADER_LEN as usize {
            return Err(Fault::new(at as u64, "location of a node", "behind the header", at));
        }
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

    fn child(&self, node: Node<'a>, character: u8) -> Result<u32, Fault> {
        match node.children {
            Some((first, last)) if (first..=last).contains(&character) => {
                self.word(node.start + 4 * usize::from(character - first), "location of a child")
            }
            _ => Ok(0),
        }
    }

    fn values(&self, node: Node<'a>) -> Result<Vec<Value<'a>>, Fault> {
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
        Fault::new(at as u64, what, "more bytes", format!("the end at {}", self.bytes.len()))
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
