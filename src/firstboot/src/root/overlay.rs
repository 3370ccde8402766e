//! What a dry run would have changed, by path.

use std::collections::BTreeMap;

use super::{Found, Kind, Owner};

/// What would be at a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Planned {
    /// Nothing any more.
    Absent,
    /// A file that was written or a directory that was made.
    Node(Found),
    /// What is on the disk, with another owner or mode.
    Owned(Owner),
}

#[derive(Debug, Default)]
pub(super) struct Overlay {
    planned: BTreeMap<String, Planned>,
    contents: BTreeMap<String, Vec<u8>>,
}

impl Overlay {
    pub(super) fn find(&self, path: &str) -> Option<Planned> {
        self.planned.get(path).copied()
    }

    /// The content that would be at `path`, `Some(None)` if nothing; `None` where the disk has to be asked, which refuses
    /// what it would refuse anyway.
    pub(super) fn content(&self, path: &str) -> Option<Option<Vec<u8>>> {
        match self.planned.get(path)? {
            Planned::Absent => Some(None),
            Planned::Node(_) => self.contents.get(path).cloned().map(Some),
            Planned::Owned(_) => None,
        }
    }

    /// Names and paths of what is planned right below the directory `path`.
    pub(super) fn below(&self, path: &str) -> Vec<(String, String)> {
        let name = |below: &String| {
            let name = below.strip_prefix(path)?.strip_prefix('/')?;
            (!name.contains('/')).then(|| (name.to_owned(), below.clone()))
        };
        self.planned.keys().filter_map(name).collect()
    }

    pub(super) fn write(&mut self, path: &str, content: &[u8], owner: &Owner) {
        self.node(path, Kind::File, owner, content.len() as u64);
        self.contents.insert(path.to_owned(), content.to_vec());
    }

    pub(super) fn make(&mut self, path: &str, owner: &Owner) {
        self.node(path, Kind::Directory, owner, 0);
    }

    pub(super) fn own(&mut self, path: &str, owner: &Owner) {
        let planned = match self.find(path) {
            Some(Planned::Node(found)) => Planned::Node(found.owned(owner)),
            _ => Planned::Owned(*owner),
        };
        self.planned.insert(path.to_owned(), planned);
    }

    pub(super) fn remove(&mut self, path: &str) -> bool {
        self.contents.remove(path);
        self.planned.insert(path.to_owned(), Planned::Absent);
        true
    }

    fn node(&mut self, path: &str, kind: Kind, owner: &Owner, size: u64) {
        let &Owner { mode, uid, gid } = owner;
        let found = Found { kind, mode, uid, gid, size, modified: (i64::MAX, 0), links: 1 };
        self.planned.insert(path.to_owned(), Planned::Node(found));
    }
}
