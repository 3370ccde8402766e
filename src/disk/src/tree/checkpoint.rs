//! Rollback: a tree records the previous state of nodes that change after a checkpoint.

use std::collections::BTreeMap;

use super::{Inode, InodeId, Tree};

/// The state of a tree at a checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    /// The number of inodes; later ones are new.
    len: usize,
    /// Previous states of changed inodes.
    changed: BTreeMap<InodeId, Inode>,
}

impl Tree {
    /// Sets a checkpoint for rollbacks. There is one at a time: an earlier one is discarded.
    pub fn begin(&mut self) {
        self.checkpoint = Some(Checkpoint { len: self.inodes.len(), changed: BTreeMap::new() });
    }

    /// Keeps the changes since [`Tree::begin`].
    pub fn commit(&mut self) {
        self.checkpoint = None;
    }

    /// Restores the state at [`Tree::begin`]; without one, nothing changes. New origins and sources are kept, unused.
    pub fn rollback(&mut self) {
        let Some(Checkpoint { len, changed }) = self.checkpoint.take() else { return };
        self.inodes.truncate(len);
        for (id, inode) in changed {
            self.inodes[id.0 as usize] = inode;
        }
    }

    /// The inode with that ID, to change it; every change of an inode uses this function.
    pub(super) fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        let inode = &mut self.inodes[id.0 as usize];
        if let Some(checkpoint) = self.checkpoint.as_mut().filter(|checkpoint| (id.0 as usize) < checkpoint.len) {
            checkpoint.changed.entry(id).or_insert_with(|| inode.clone());
        }
        inode
    }
}

#[cfg(test)]
mod tests {
    use crate::source::Map;
    use crate::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

    #[test]
    fn what_changed_since_a_point_is_taken_back() {
        let meta = |mode| Metadata::root(mode, Timestamp::default());
        let node = |mode, kind, tree: &Tree| Inode { meta: meta(mode), kind, origin: tree.first_origin() };
        let mut tree = Tree::new(meta(0o755), Origin::default());
        let source = tree.sources_mut().add(std::sync::Arc::new(b"text".to_vec()));
        let file = || Kind::File(Map::whole(source, 0, 4));
        for (path, kind) in [("/a", Kind::directory()), ("/a/x", file()), ("/b", Kind::directory())] {
            let inode = node(0o644, kind, &tree);
            tree.place(path.as_bytes(), inode).unwrap();
        }
        let all = |tree: &Tree| tree.walk().map(|(path, id, inode)| (path, id, inode.clone())).collect::<Vec<_>>();
        let before = all(&tree);

        tree.rollback();
        assert_eq!(all(&tree), before, "without a checkpoint");
        tree.begin();
        let id = tree.lookup(b"/a/x").unwrap();
        tree.meta_mut(id).mode = 0o600;
        tree.meta_mut(id).uid = 5;
        tree.set_content(id, Map::whole(source, 1, 2)).unwrap();
        let origin = tree.add_origin(Origin { layer: "l".to_owned(), ..Origin::default() });
        tree.set_origin(id, origin);
        let inode = node(0o700, file(), &tree);
        tree.place(b"/b/new", inode).unwrap();
        let dir = tree.lookup(b"/b").unwrap();
        tree.link(dir, b"hard", id).unwrap();
        tree.rename(b"/b/new", b"/a/y").unwrap();
        tree.remove(b"/a/x").unwrap();
        tree.make_dirs(b"/a/deep/er", &meta(0o711), origin).unwrap();
        let root = node(0o700, Kind::directory(), &tree);
        tree.place(b"/", root).unwrap();
        assert_ne!(all(&tree), before);
        tree.rollback();
        assert_eq!(all(&tree), before);

        tree.begin();
        tree.remove(b"/a").unwrap();
        tree.commit();
        tree.rollback();
        assert!(tree.lookup(b"/a").is_none(), "what is kept stays");
    }
}
