//! The table of strings of a database: strings that end with NUL, of which each is stored once. A string that is the end of another one may
//! be a part of it.
//!
//! Which ends are found depends on the order in which strings are added. They are searched in a tree by their last bytes: a node has one
//! string, and children by the byte before those that lead to the node.

/// Offset in the table, and in a database.
pub(super) type Offset = u32;

/// A string is not stored, because the table would be longer than 4 GiB.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

#[derive(Default)]
struct Node {
    start: Offset,
    len: Offset,
    /// Sorted by byte.
    children: Vec<(u8, u32)>,
}

pub(super) struct Strings {
    table: Vec<u8>,
    nodes: Vec<Node>,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self { table: vec![0], nodes: vec![Node::default()] }
    }

    /// The offset of a string without NUL.
    pub(super) fn add(&mut self, text: &[u8]) -> Result<Offset, TooLarge> {
        if text.is_empty() {
            return Ok(0);
        }
        let (mut at, mut depth) = (0_usize, 0);
        let place = loop {
            let node = &self.nodes[at];
            if let Some(offset) = self.end_of(node, text, depth == text.len()) {
                return Ok(offset);
            }
            // A node at the depth of the whole length has the string.
            let Some(byte) = text.len().checked_sub(depth + 1).and_then(|index| text.get(index)) else {
                return Err(TooLarge);
            };
            match node.children.binary_search_by_key(byte, |(byte, _)| *byte) {
                Ok(found) => at = node.children[found].1 as usize,
                Err(place) => break (place, *byte),
            }
            depth += 1;
        };
        let (place, byte) = place;
        let start = Offset::try_from(self.table.len()).map_err(|_| TooLarge)?;
        let len = Offset::try_from(text.len()).map_err(|_| TooLarge)?;
        let id = u32::try_from(self.nodes.len()).map_err(|_| TooLarge)?;
        self.table.extend_from_slice(text);
        self.table.push(0);
        self.nodes.push(Node { start, len, children: Vec::new() });
        self.nodes[at].children.insert(place, (byte, id));
        Ok(start)
    }

    /// Where a text is the end of the string of a node.
    fn end_of(&self, node: &Node, text: &[u8], is_known: bool) -> Option<Offset> {
        let len = Offset::try_from(text.len()).ok()?;
        let offset = node.len.checked_sub(len).map(|skipped| node.start + skipped)?;
        (is_known || self.get(offset).starts_with(text)).then_some(offset)
    }

    /// The table from an offset on.
    fn get(&self, offset: Offset) -> &[u8] {
        self.table.get(offset as usize..).unwrap_or_default()
    }

    /// The string at an offset.
    pub(super) fn string(&self, offset: Offset) -> &[u8] {
        let left = self.get(offset);
        let len = left.iter().position(|byte| *byte == 0).unwrap_or(left.len());
        &left[..len]
    }

    pub(super) fn table(&self) -> &[u8] {
        &self.table
    }
}

#[cfg(test)]
mod tests {
    use super::Strings;

    #[test]
    fn ends_of_strings_are_shared() {
        let mut strings = Strings::new();
        let added = ["hello", "lo", "", "jello", "ello", "hello", "xhello", "o"]
            .map(|text| strings.add(text.as_bytes()).unwrap());
        assert_eq!(added, [1, 4, 0, 7, 2, 1, 13, 5]);
        assert_eq!(strings.table(), b"\0hello\0jello\0xhello\0");
        assert_eq!(strings.string(8), b"ello");
    }
}
