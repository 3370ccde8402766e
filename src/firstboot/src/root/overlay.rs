//! Changes of a dry run, by path.

use super::{Found, Kind, Owner};

/// Planned state of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Planned {
    /// Removed.
    Absent,
    /// A written file or created directory.
    Node(Found),
    /// The existing path with another owner or mode.
    Owned(Owner),
}

/// A list: dry runs have some hundred changes, and a map would add kilobytes to the program.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    path: String,
    planned: Planned,
    /// Content of a written file.
    content: Option<Vec<u8>>,
}

impl Overlay {
    pub(super) fn find(&self, path: &str) -> Option<Planned> {
        self.entry(path).map(|entry| entry.planned)
    }

    /// Planned content of `path`, `Some(None)` if removed; `None` if it must be read from disk, which refuses
    /// it as usual.
    pub(super) fn content(&self, path: &str) -> Option<Option<Vec<u8>>> {
        let entry = self.entry(path)?;
        match entry.planned {
            Planned::Absent => Some(None),
            Planned::Node(_) => entry.content.clone().map(Some),
            Planned::Owned(_) => None,
        }
    }

    /// Names and paths of planned entries directly in `path`.
    pub(super) fn below(&self, path: &str) -> Vec<(String, String)> {
        let mut below = Vec::new();
        for entry in &self.entries {
            let name = entry.path.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
            if let Some(name) = name.filter(|name| !name.contains('/')) {
                below.push((name.to_owned(), entry.path.clone()));
            }
        }
        below
    }

    pub(super) fn write(&mut self, path: &str, content: &[u8], owner: &Owner) {
        let planned = node(Kind::File, owner, content.len() as u64);
        self.set(path, planned, Some(content.to_vec()));
    }

    pub(super) fn make(&mut self, path: &str, owner: &Owner) {
        self.set(path, node(Kind::Directory, owner, 0), None);
    }

    pub(super) fn own(&mut self, path: &str, owner: &Owner) {
        match self.entries.iter_mut().find(|entry| entry.path == path) {
            Some(Entry { planned: Planned::Node(found), .. }) => *found = found.owned(owner),
            _ => self.set(path, Planned::Owned(*owner), None),
        }
    }

    pub(super) fn remove(&mut self, path: &str) -> bool {
        self.set(path, Planned::Absent, None);
        true
    }

    fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    fn set(&mut self, path: &str, planned: Planned, content: Option<Vec<u8>>) {
        self.entries.retain(|entry| entry.path != path);
        self.entries.push(Entry { path: path.to_owned(), planned, content });
    }
}

fn node(kind: Kind, owner: &Owner, size: u64) -> Planned {
    let &Owner { mode, uid, gid } = owner;
    Planned::Node(Found { kind, mode, uid, gid, size, modified: (i64::MAX, 0), links: 1 })
}
