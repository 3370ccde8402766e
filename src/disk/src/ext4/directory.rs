//! Directory blocks: lists of entries with a checksum at their end, and the index nodes of large directories.

use mkext4::csum;
use mkext4::spec::htree::{NODE_COUNT_OFFSET, ROOT_COUNT_OFFSET};
use mkext4::spec::{DirentIter, DxNodeView, DxRootView, dirent};

use super::inodes::Node;
use super::superblock::Super;
use super::{BLOCK_LEN, Place, ReadError, le16, le32};

/// One name of a directory.
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) inode: u32,
    /// Type as the entry has it; it must agree with the inode's.
    pub(super) file_type: u8,
}

/// What the blocks of one directory hold.
#[derive(Default)]
pub(super) struct Directory {
    /// The inode that `..` names.
    pub(super) parent: u32,
    /// All entries but `.` and `..`, in no order.
    pub(super) entries: Vec<Entry>,
}

impl Directory {
    /// Adds what block `logical` of the directory holds, which stands at `block` of the volume.
    pub(super) fn add_block(
        &mut self,
        volume: &Super<'_>,
        node: &Node,
        logical: u64,
        block: u64,
        bytes: &[u8],
    ) -> Result<(), ReadError> {
        let place = || Place::Block { inode: node.number, block };
        check_sum(node, logical, bytes, &place())?;
        for (index, entry) in DirentIter::new(bytes).enumerate() {
            let entry = entry.map_err(|error| ReadError::library(place(), error))?;
            if entry.inode > volume.info.inodes {
                let what = format!("entry for inode {} of {}", entry.inode, volume.info.inodes);
                return Err(ReadError::corrupt(place(), what));
            }
            match (logical, index) {
                (0, 0) if entry.name == b"." && entry.inode == node.number => {}
                (0, 1) if entry.name == b".." => self.parent = entry.inode,
                (0, 0 | 1) => return Err(ReadError::corrupt(place(), "does not begin with entries . and ..")),
                _ => self.entries.push(Entry {
                    name: entry.name.to_vec(),
                    inode: entry.inode,
                    file_type: entry.file_type,
                }),
            }
        }
        Ok(())
    }
}

/// Checks the checksum, if any, of a list of entries or of an index node. Index nodes look like blocks without entries to who
/// does not know them, so the entries are found without the index.
fn check_sum(node: &Node, logical: u64, bytes: &[u8], place: &Place) -> Result<(), ReadError> {
    let Some(seed) = node.seed else { return Ok(()) };
    let library = |error| ReadError::library(place.clone(), error);
    let is_node = le32(bytes, 0) == 0 && usize::from(le16(bytes, 4)) == BLOCK_LEN;
    let index = if node.has_index && logical == 0 {
        let root = DxRootView::parse(bytes).map_err(library)?;
        Some((root.checksum, ROOT_COUNT_OFFSET, root.count, root.limit))
    } else if node.has_index && is_node {
        let inner = DxNodeView::parse(bytes).map_err(library)?;
        Some((inner.checksum, NODE_COUNT_OFFSET, inner.count, inner.limit))
    } else {
        None
    };
    let (found, expected) = match index {
        Some((found, offset, count, limit)) => (found, csum::dx_block(seed, bytes, offset, count, limit)),
        None => match dirent::tail_checksum(bytes) {
            Some(found) => (found, csum::dirent_block(seed, bytes)),
            None => return Err(ReadError::corrupt(place.clone(), "directory block without checksum")),
        },
    };
    if found != expected {
        return Err(ReadError::checksum(place.clone(), found, expected));
    }
    Ok(())
}
