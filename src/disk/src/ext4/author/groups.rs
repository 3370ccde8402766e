//! Groups the inodes of a tree: those of the base, of each artifact, and of layers except for their artifacts.
//!
//! Each group is placed contiguously, so that a change of one leaves the others in place. The base comes first. Files
//! of layers come last, as they include the records of an image, which always change. Artifacts are placed between them
//! by size, rounded up to a power of two, the largest first: when one grows, nothing larger moves.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::ext4::BLOCK;
use crate::tree::{InodeId, Kind, Origin, ROOT, Tree};

/// The origin of an inode, in the order of groups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner<'a> {
    Base,
    Artifact { layer: &'a str, name: &'a str },
    Layers,
}

/// The group number of each inode reachable in the tree.
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
    // A directory is declared before its entries, so it belongs to the group of the first one: a layer may have changed
    // its mode.
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
