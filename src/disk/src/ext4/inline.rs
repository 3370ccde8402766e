//! Inline data: a small file, directory or link stored in its inode, in `i_block` and then in the attribute
//! `system.data` (`Documentation/filesystems/ext4/inlinedata.rst`).

use super::corruption::InodeFault;
use super::inodes::{I_BLOCK_LEN, Node};
use super::superblock::Super;
use super::{Location, ReadError};

/// A part of a content stored in an inode. All in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Position in the content.
    pub(super) at: u64,
    /// Position on the volume.
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// The location of an inode's content, up to its size.
pub(super) fn pieces(node: &Node) -> Result<[Piece; 2], ReadError> {
    let (first, second) = (I_BLOCK_LEN as u64, node.body.data.len() as u64);
    let held = first + second;
    if node.size > held {
        let what = InodeFault::InlineLen { len: node.size, held };
        return Err(ReadError::corrupt(Location::Inode(node.number), what));
    }
    Ok([
        Piece { at: 0, offset: node.i_block_at(), len: node.size.min(first) },
        Piece { at: first, offset: node.at(node.body.data.start), len: node.size.saturating_sub(first) },
    ])
}

/// The two pieces as bytes.
pub(super) fn bytes(volume: &Super<'_>, node: &Node) -> Result<[Vec<u8>; 2], ReadError> {
    let read = |piece: Piece| {
        // Limited by the size of an inode.
        let mut bytes = vec![0; usize::try_from(piece.len).unwrap_or(0)];
        volume.read(&mut bytes, piece.offset).map(|()| bytes)
    };
    let [first, second] = pieces(node)?;
    Ok([read(first)?, read(second)?])
}
