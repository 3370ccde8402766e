//! Compares two trees path by path, except contents of files.

use std::collections::BTreeMap;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, InodeId, Kind, Tree};

use super::report::{PathChange, Property};
use vmbake_common::digest::Digest;
use vmbake_common::escape;

/// Maximum length of an extended attribute to show in full; a file capability has 20 or 24 bytes.
const MAX_SHOWN: usize = 32;

pub(super) struct Pair<'a> {
    path: Vec<u8>,
    from: Option<Node<'a>>,
    to: Option<Node<'a>>,
    properties: Vec<Property>,
}

/// A node with its link count.
#[derive(Clone, Copy)]
struct Node<'a> {
    id: InodeId,
    inode: &'a Inode,
    names: usize,
}

/// Pairs the sorted paths of both trees, and compares everything but contents.
pub(super) fn compare<'a>(from: &'a Tree, to: &'a Tree, times: bool) -> Vec<Pair<'a>> {
    let mut pairs: BTreeMap<Vec<u8>, (Option<Node<'a>>, Option<Node<'a>>)> = BTreeMap::new();
    for (path, node) in nodes(from) {
        pairs.entry(path).or_default().0 = Some(node);
    }
    for (path, node) in nodes(to) {
        pairs.entry(path).or_default().1 = Some(node);
    }
    let mut groups = BTreeMap::new();
    let pair = |(path, (from, to)): (Vec<u8>, (Option<Node<'a>>, Option<Node<'a>>))| {
        let properties = match (from, to) {
            (Some(from), Some(to)) => {
                let mut found = properties(from, to, times);
                found.extend(regrouped(&mut groups, &path, from, to));
                found
            }
            _ => Vec::new(),
        };
        Pair { path, from, to, properties }
    };
    pairs.into_iter().map(pair).collect()
}

/// Detects paths with equal link counts but different hard links. `groups` has the first path of each file of the first
/// tree with several names, and its counterpart in the second.
fn regrouped(
    groups: &mut BTreeMap<InodeId, (Vec<u8>, InodeId)>,
    path: &[u8],
    from: Node<'_>,
    to: Node<'_>,
) -> Option<Property> {
    if from.names < 2 || from.names != to.names {
        return None;
    }
    let (first, id) = groups.entry(from.id).or_insert_with(|| (path.to_vec(), to.id));
    let (with, without) = (format!("with {}", escape::path(first)), format!("without {}", escape::path(first)));
    (*id != to.id).then_some(Property { name: "names", from: Some(with), to: Some(without) })
}

fn nodes(tree: &Tree) -> Vec<(Vec<u8>, Node<'_>)> {
    let mut names: BTreeMap<InodeId, usize> = BTreeMap::new();
    tree.walk().for_each(|(_, id, _)| *names.entry(id).or_default() += 1);
    tree.walk().map(|(path, id, inode)| (path, Node { id, inode, names: names[&id] })).collect()
}

impl<'a> Pair<'a> {
    /// The maps of two regular files of the same length, whose contents are to be compared.
    pub(super) fn contents(&self) -> Option<(&'a Map, &'a Map)> {
        match (&self.from?.inode.kind, &self.to?.inode.kind) {
            (Kind::File(from), Kind::File(to)) if from.len() == to.len() && !from.is_empty() => Some((from, to)),
            _ => None,
        }
    }

    /// The path, for messages.
    pub(super) fn text(&self) -> String {
        escape::path(&self.path)
    }

    /// Notes that the contents differ, from byte `at` on.
    pub(super) fn differs_at(&mut self, at: u64) {
        let text = format!("differs from byte {at} on");
        self.properties.push(Property { name: "content", from: None, to: Some(text) });
    }

    /// The differences of the path, if any.
    pub(super) fn into_change(self) -> Option<PathChange> {
        let kind = |node: Option<Node<'_>>| node.map(|node| node.inode.kind.name());
        let change = match (&self.from, &self.to) {
            (None, _) => "added",
            (_, None) => "removed",
            _ if self.properties.is_empty() => return None,
            _ => "changed",
        };
        let path = self.text();
        Some(PathChange {
            path,
            change,
            kind: kind(self.to).or(kind(self.from)).unwrap_or(""),
            properties: self.properties,
        })
    }
}

fn properties(from: Node<'_>, to: Node<'_>, times: bool) -> Vec<Property> {
    let mut found = Vec::new();
    let mut compare = |name, from: String, to: String| {
        if from != to {
            found.push(Property { name, from: Some(from), to: Some(to) });
        }
    };
    let (old, new) = (&from.inode.meta, &to.inode.meta);
    compare("type", from.inode.kind.name().to_owned(), to.inode.kind.name().to_owned());
    compare("mode", format!("{:04o}", old.mode), format!("{:04o}", new.mode));
    compare("owner", format!("{}:{}", old.uid, old.gid), format!("{}:{}", new.uid, new.gid));
    match (&from.inode.kind, &to.inode.kind) {
        (Kind::File(from), Kind::File(to)) => compare("size", from.len().to_string(), to.len().to_string()),
        (Kind::Symlink(from), Kind::Symlink(to)) => compare("target", escape::path(from), escape::path(to)),
        (Kind::CharDevice { major: a, minor: b }, Kind::CharDevice { major: c, minor: d })
        | (Kind::BlockDevice { major: a, minor: b }, Kind::BlockDevice { major: c, minor: d }) => {
            compare("device", format!("{a}:{b}"), format!("{c}:{d}"));
        }
        _ => {}
    }
    compare("names", from.names.to_string(), to.names.to_string());
    if times {
        let time = |meta: &vmbake_disk::tree::Metadata| format!("{}.{:09}", meta.mtime.secs, meta.mtime.nanos);
        compare("mtime", time(old), time(new));
    }
    found.extend(xattrs(&old.xattrs, &new.xattrs));
    found
}

fn xattrs<'a>(
    from: &'a BTreeMap<Vec<u8>, Vec<u8>>,
    to: &'a BTreeMap<Vec<u8>, Vec<u8>>,
) -> impl Iterator<Item = Property> + 'a {
    let mut names: Vec<&Vec<u8>> = from.keys().chain(to.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter(|name| from.get(*name) != to.get(*name)).map(|name| {
        let shown = |value: &Vec<u8>| format!("{}={}", escape::path(name), value_text(value));
        Property { name: "xattr", from: from.get(name).map(shown), to: to.get(name).map(shown) }
    })
}

fn value_text(value: &[u8]) -> String {
    if value.len() > MAX_SHOWN {
        return format!("{} bytes, {}", value.len(), Digest::of(value));
    }
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}")
}
