//! The hardware database (hwdb.bin): properties by patterns of modaliases, in a radix tree. Integers are little-endian; offsets are those of
//! the file, which has a header, the nodes, and the table of strings.

use super::strings::{Offset, Strings, TooLarge};

const SIGNATURE: &[u8; 8] = b"KSLPHHRH";
/// Sizes in bytes: of the header, and of what nodes are made of.
const HEADER: u64 = 80;
const NODE: u64 = 24;
const CHILD: u64 = 16;
const VALUE: u64 = 32;

/// Most bytes that are looked at to insert all properties, each under every pattern of its record: Debian's database takes 14 million.
const MAX_WORK: usize = 1 << 27;

/// Most nodes and values: Debian's database has 300,000.
const MAX_ENTRIES: usize = 1 << 21;

/// A property, and where it is set.
#[derive(Clone, Copy)]
pub(super) struct Property<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) file: &'a [u8],
    pub(super) priority: u16,
    pub(super) line: u32,
}

#[derive(Default)]
struct Node {
    /// What all patterns below the node continue with.
    prefix: Offset,
    /// Sorted by byte.
    children: Vec<(u8, u32)>,
    /// Sorted by key.
    values: Vec<Value>,
}

struct Value {
    key: Offset,
    value: Offset,
    file: Offset,
    line: u32,
    priority: u16,
}

pub(super) struct Trie {
    strings: Strings,
    nodes: Vec<Node>,
    /// Number of all values.
    values: usize,
    work: usize,
}

impl Trie {
    pub(super) fn new() -> Self {
        Self { strings: Strings::new(), nodes: vec![Node::default()], values: 0, work: 0 }
    }

    /// Sets a property of a pattern. A later value has precedence.
    pub(super) fn insert(&mut self, pattern: &[u8], property: &Property<'_>) -> Result<(), TooLarge> {
        self.work += pattern.len() + property.key.len() + property.value.len() + property.file.len();
        if self.work > MAX_WORK {
            return Err(TooLarge);
        }
        let (mut at, mut left) = (0, pattern);
        loop {
            let prefix = self.strings.string(self.nodes[at].prefix);
            let common = prefix.iter().zip(left).take_while(|(a, b)| a == b).count();
            if common < prefix.len() {
                self.split(at, common)?;
            }
            left = &left[common..];
            let Some((byte, rest)) = left.split_first() else { return self.set(at, property) };
            let children = &self.nodes[at].children;
            match children.binary_search_by_key(byte, |(byte, _)| *byte) {
                Ok(found) => (at, left) = (children[found].1 as usize, rest),
                Err(place) => {
                    let prefix = self.strings.add(rest)?;
                    let child = self.push(Node { prefix, ..Node::default() })?;
                    self.nodes[at].children.insert(place, (*byte, child));
                    return self.set(child as usize, property);
                }
            }
        }
    }

    fn push(&mut self, node: Node) -> Result<u32, TooLarge> {
        if self.is_full() {
            return Err(TooLarge);
        }
        let id = u32::try_from(self.nodes.len()).map_err(|_| TooLarge)?;
        self.nodes.push(node);
        Ok(id)
    }

    fn is_full(&self) -> bool {
        self.nodes.len() + self.values >= MAX_ENTRIES
    }

    /// Leaves a node the first bytes of its prefix, and moves what it has to a child.
    fn split(&mut self, at: usize, common: usize) -> Result<(), TooLarge> {
        let offset = self.nodes[at].prefix;
        let prefix = self.strings.string(offset);
        let (kept, byte) = (prefix[..common].to_vec(), prefix[common]);
        let moved = std::mem::take(&mut self.nodes[at]);
        let rest = offset + Offset::try_from(common + 1).map_err(|_| TooLarge)?;
        let child = self.push(Node { prefix: rest, ..moved })?;
        let prefix = self.strings.add(&kept)?;
        self.nodes[at] = Node { prefix, children: vec![(byte, child)], values: Vec::new() };
        Ok(())
    }

    fn set(&mut self, at: usize, property: &Property<'_>) -> Result<(), TooLarge> {
        let key = self.strings.add(property.key)?;
        let value = self.strings.add(property.value)?;
        let file = self.strings.add(property.file)?;
        let value = Value { key, value, file, line: property.line, priority: property.priority };
        let is_full = self.is_full();
        let values = &mut self.nodes[at].values;
        let strings = &self.strings;
        match values.binary_search_by(|found| strings.string(found.key).cmp(property.key)) {
            // The key stays at the offset that it had.
            Ok(found) => values[found] = Value { key: values[found].key, ..value },
            Err(_) if is_full => return Err(TooLarge),
            Err(place) => {
                values.insert(place, value);
                self.values += 1;
            }
        }
        Ok(())
    }

    /// The file, as that version of systemd-hwdb writes it.
    pub(super) fn store(&self, version: u16) -> Vec<u8> {
        let nodes_len: u64 = self.nodes.iter().map(size).sum();
        let strings = self.strings.table();
        let strings_len = strings.len() as u64;
        let (nodes, root) = self.store_nodes(HEADER + nodes_len);
        let mut file = SIGNATURE.to_vec();
        let file_size = HEADER + nodes_len + strings_len;
        for field in [version.into(), file_size, HEADER, NODE, CHILD, VALUE, root, nodes_len, strings_len] {
            file.extend_from_slice(&u64::to_le_bytes(field));
        }
        file.extend(nodes);
        file.extend_from_slice(strings);
        file
    }

    /// The nodes, children first, and the offset of the root. The strings begin at `strings`.
    fn store_nodes(&self, strings: u64) -> (Vec<u8>, u64) {
        let string = |offset: Offset| (strings + u64::from(offset)).to_le_bytes();
        let (mut stored, mut offsets) = (Vec::new(), vec![0_u64; self.nodes.len()]);
        // The nodes from the root to the one at hand, each with the number of its children that are stored.
        let mut path = vec![(0_usize, 0_usize)];
        while let Some((at, next)) = path.last_mut() {
            let (id, node) = (*at, &self.nodes[*at]);
            if let Some((_, child)) = node.children.get(*next) {
                *next += 1;
                path.push((*child as usize, 0));
                continue;
            }
            path.pop();
            offsets[id] = HEADER + stored.len() as u64;
            stored.extend_from_slice(&string(node.prefix));
            stored.extend_from_slice(&(node.children.len() as u64).to_le_bytes());
            stored.extend_from_slice(&(node.values.len() as u64).to_le_bytes());
            for (byte, child) in &node.children {
                stored.extend_from_slice(&[*byte, 0, 0, 0, 0, 0, 0, 0]);
                stored.extend_from_slice(&offsets[*child as usize].to_le_bytes());
            }
            for value in &node.values {
                for field in [value.key, value.value, value.file] {
                    stored.extend_from_slice(&string(field));
                }
                stored.extend_from_slice(&value.line.to_le_bytes());
                stored.extend_from_slice(&value.priority.to_le_bytes());
                stored.extend_from_slice(&[0; 2]);
            }
        }
        (stored, offsets[0])
    }
}

/// Bytes of a node in the file.
fn size(node: &Node) -> u64 {
    NODE + CHILD * node.children.len() as u64 + VALUE * node.values.len() as u64
}
