//! Which inodes of a tree belong together: those of the base, of each artifact, of all layers beside their artifacts.
//!
//! What belongs together stands together, so that a change of one group leaves the others where they are. The base comes
//! first and what only the layers make last, as it has the records of what an image is made of, which always change. Artifacts stand in
//! between by size, rounded up to a power of two, the largest first: whatever one of them grows into, nothing larger moves.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::ext4::BLOCK;
use crate::tree::{InodeId, Kind, Origin, ROOT, Tree};

/// Who brought an inode, in the order in which groups stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner<'a> {
    Base,
    Artifact { layer: &'a str, name: &'a str },
    Layers,
}

/// The number of the group of each inode that the tree reaches.
pub(super) fn of(tree: &Tree) -> BTreeMap<InodeId, usize> {
    let base = tree.origin(tree.first_origin());
    let mut owners = BTreeMap::new();
    let mut sizes: BTreeMap<Owner<'_>, u64> = BTreeMap::new();
    let mut parents = Vec::new();
    let mut dirs = BTreeMap::from([(Vec::new(), ROOT)]);
    for (path, id, inode) in tree.walk() {
        let owner = owner(base, tree.origin(inode.origin));
        if owners.insert(id, owner).is_none() {
            let blocks = if let Kind::File(map) = &inode.kind { map.data_len().div_ceil(BLOCK) } else { 0 };
            *sizes.entry(owner).or_default() += blocks;
        }
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        parents.push((id, dirs.get(&path[..end]).copied().unwrap_or(ROOT)));
        if matches!(inode.kind, Kind::Directory(_)) {
            dirs.insert(path, id);
        }
    }
    let mut order: Vec<_> = sizes.into_iter().collect();
    order.sort_by_key(|(owner, blocks)| match owner {
        Owner::Base => (0, Reverse(0), *owner),
        Owner::Artifact { .. } => (1, Reverse(blocks.next_power_of_two()), *owner),
        Owner::Layers => (2, Reverse(0), *owner),
    });
    let ranks: BTreeMap<Owner<'_>, usize> =
        order.into_iter().enumerate().map(|(rank, (owner, _))| (owner, rank)).collect();
    let mut groups: BTreeMap<InodeId, usize> = owners.into_iter().map(|(id, owner)| (id, ranks[&owner])).collect();
    // A directory is declared before what is in it, so it goes with the first of that: a layer may have changed its mode.
    for (id, parent) in parents.into_iter().rev() {
        let group = groups[&id];
        if let Some(found) = groups.get_mut(&parent) {
            *found = group.min(*found);
        }
    }
    groups
}

fn owner<'a>(base: &Origin, origin: &'a Origin) -> Owner<'a> {
    match &origin.artifact {
        _ if origin == base => Owner::Base,
        Some(name) => Owner::Artifact { layer: &origin.layer, name },
        None => Owner::Layers,
    }
}
