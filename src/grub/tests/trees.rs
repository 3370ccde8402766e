//! Trees with files of GRUB.

use std::path::Path;
use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_grub::BIOS_DIR;

pub fn empty() -> Tree {
    Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default())
}

pub fn add(tree: &mut Tree, path: &str, content: Vec<u8>) {
    for (at, _) in path.match_indices('/').skip(1) {
        if tree.resolve(&path.as_bytes()[..at]).is_err() {
            let meta = Metadata::root(0o755, Timestamp::default());
            let inode = Inode { meta, kind: Kind::directory(), origin: tree.first_origin() };
            tree.place(&path.as_bytes()[..at], inode).unwrap();
        }
    }
    let len = content.len() as u64;
    let source = tree.sources_mut().add(Arc::new(content));
    let meta = Metadata::root(0o644, Timestamp::default());
    let inode = Inode { meta, kind: Kind::File(Map::whole(source, 0, len)), origin: tree.first_origin() };
    tree.place(path.as_bytes(), inode).unwrap();
}

/// The files of `grub-pc-bin`, as installed here; none where the package is not.
pub fn with_bios() -> Option<Tree> {
    if !Path::new(BIOS_DIR).join("kernel.img").exists() {
        crate::skip::skip("grub-pc-bin is not installed");
        return None;
    }
    let mut tree = empty();
    for entry in std::fs::read_dir(BIOS_DIR).unwrap() {
        let path = entry.unwrap().path();
        let content = std::fs::read(&path).unwrap();
        add(&mut tree, path.to_str().unwrap(), content);
    }
    Some(tree)
}
