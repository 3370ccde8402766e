//! Builds and writes an index.

use std::collections::BTreeMap;

use super::{CHILDREN, HEADER_LEN, MAGIC, OFFSET, PREFIX, VALUES, VERSION};
use crate::release::Release;

/// An index in memory. Node 0 is the root.
#[derive(Debug)]
pub struct Trie {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    prefix: Vec<u8>,
    /// Node numbers by character.
    children: BTreeMap<u8, usize>,
    /// By priority; of equal priorities, the last inserted comes first.
    values: Vec<(u32, Vec<u8>)>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl Trie {
    /// Adds a value. The key is ASCII without NUL.
    pub fn insert(&mut self, key: &[u8], value: &[u8], priority: u32) {
        let (mut number, mut rest) = (0, key);
        loop {
            let prefix = &self.nodes[number].prefix;
            let common = prefix.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if common < prefix.len() {
                self.split(number, common);
            }
            let Some((first, after)) = rest[common..].split_first() else { break };
            rest = after;
            match self.nodes[number].children.get(first) {
                Some(child) => number = *child,
                None => {
                    let leaf = Node { prefix: rest.to_vec(), ..Node::default() };
                    let child = self.nodes.len();
                    self.nodes.push(leaf);
                    self.nodes[number].children.insert(*first, child);
                    number = child;
                    break;
                }
            }
        }
        let values = &mut self.nodes[number].values;
        let position = values.partition_point(|(other, _)| *other < priority);
        values.insert(position, (priority, value.to_vec()));
    }

    /// Splits a node at `at` of its prefix; the rest becomes its only child.
    fn split(&mut self, number: usize, at: usize) {
        let mut old = std::mem::take(&mut self.nodes[number]);
        let after = old.prefix.split_off(at + 1);
        let first = old.prefix.pop().unwrap_or_default();
        let child = self.nodes.len();
        let parent = Node { prefix: std::mem::replace(&mut old.prefix, after), ..Node::default() };
        self.nodes.push(old);
        self.nodes[number] = parent;
        self.nodes[number].children.insert(first, child);
    }

    /// The file; `None` if it would be too long for the format.
    pub fn write(&self, release: Release) -> Option<Vec<u8>> {
        let order = self.order(release);
        let mut locations = vec![0; self.nodes.len()];
        let mut end = u64::from(HEADER_LEN);
        for &number in &order {
            let node = &self.nodes[number];
            let offset = u32::try_from(end).ok().filter(|offset| *offset <= OFFSET)?;
            locations[number] = offset | node.flags();
            end += node.len();
        }
        let mut file = Vec::with_capacity(usize::try_from(end).ok()?);
        for word in [MAGIC, VERSION, locations[0]] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        order.iter().for_each(|number| self.nodes[*number].write(&locations, &mut file));
        Some(file)
    }

    /// Node numbers in the order of the file.
    fn order(&self, release: Release) -> Vec<usize> {
        // With the children from the last to the first, this is a pre-order or a reversed post-order.
        let is_post_order = release == Release::Kmod30;
        let (mut order, mut stack) = (Vec::with_capacity(self.nodes.len()), vec![0]);
        while let Some(number) = stack.pop() {
            order.push(number);
            let children = self.nodes[number].children.values().copied();
            if is_post_order { stack.extend(children) } else { stack.extend(children.rev()) }
        }
        if is_post_order {
            order.reverse();
        }
        order
    }
}

impl Node {
    fn flags(&self) -> u32 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(!self.prefix.is_empty(), PREFIX)
            | flag(!self.children.is_empty(), CHILDREN)
            | flag(!self.values.is_empty(), VALUES)
    }

    /// The first and the last character that leads to a child.
    fn range(&self) -> Option<(u8, u8)> {
        Some((*self.children.first_key_value()?.0, *self.children.last_key_value()?.0))
    }

    fn len(&self) -> u64 {
        let prefix = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let children = self.range().map_or(0, |(first, last)| 2 + 4 * (usize::from(last - first) + 1));
        let values: usize = self.values.iter().map(|(_, value)| 4 + value.len() + 1).sum();
        (prefix + children + if values > 0 { 4 + values } else { 0 }) as u64
    }

    fn write(&self, locations: &[u32], file: &mut Vec<u8>) {
        if !self.prefix.is_empty() {
            file.extend_from_slice(&self.prefix);
            file.push(0);
        }
        if let Some((first, last)) = self.range() {
            file.extend([first, last]);
            for character in first..=last {
                let location = self.children.get(&character).map_or(0, |child| locations[*child]);
                file.extend_from_slice(&location.to_be_bytes());
            }
        }
        if !self.values.is_empty() {
            // Fewer than the bytes of the file.
            let count = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
            file.extend_from_slice(&count.to_be_bytes());
        }
        for (priority, value) in &self.values {
            file.extend_from_slice(&priority.to_be_bytes());
            file.extend_from_slice(value);
            file.push(0);
        }
    }
}
