//! Metadata blocks of inodes: directories, long link targets and attribute blocks, all read in ascending order.

use std::collections::BTreeMap;

use mkext4::csum;
use mkext4::spec::XattrBlockView;
use mkext4::spec::inode::FileType;

use super::directory::Directory;
use super::extents::{self, Run};
use super::inodes::Node;
use super::superblock::Super;
use super::xattrs::{self, Xattrs};
use super::{BLOCK, BLOCK_LEN, Place, ReadError};

/// Largest piece read at once, in blocks.
const MAX_READ: u64 = 256;
/// Unwanted blocks that are read along rather than starting another read.
const MAX_GAP: u64 = 16;
/// Longest link target that stands in `i_block`, and one more.
const SLOW_LINK: u64 = 60;

/// What the blocks of one inode hold.
pub(super) enum Content {
    Directory(Directory),
    File(Vec<Run>),
    Symlink(Vec<u8>),
    /// Devices, pipes and sockets have no blocks.
    Special,
}

/// The contents of all inodes, in their order, and the attributes of all attribute blocks.
pub(super) struct Contents {
    pub(super) of: Vec<Content>,
    pub(super) xattrs: BTreeMap<u64, Xattrs>,
}

/// Why a block is read.
enum Purpose {
    /// Block `logical` of the directory at this position of the node list.
    Directory { index: usize, logical: u64 },
    /// The target of the link at this position.
    Symlink { index: usize },
    /// An attribute block that so many inodes refer to.
    Xattrs { inode: u32, users: u32 },
}

/// Reads what is needed to build a tree. No more blocks are read than the volume has, whatever inodes claim.
/// What directories name is left out unless `names` is set.
pub(super) fn read(volume: &Super<'_>, nodes: &[Node], names: bool) -> Result<Contents, ReadError> {
    let mut contents = Contents { of: Vec::with_capacity(nodes.len()), xattrs: BTreeMap::new() };
    let mut wanted = Vec::new();
    let mut users: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        contents.of.push(match node.kind {
            FileType::Dir if !names => Content::Directory(Directory::default()),
            _ => content(volume, node, index, &mut wanted)?,
        });
        if node.xattr_block != 0 {
            users.entry(node.xattr_block).or_insert((node.number, 0)).1 += 1;
        }
    }
    wanted.extend(users.into_iter().map(|(block, (inode, users))| (block, Purpose::Xattrs { inode, users })));
    wanted.sort_by_key(|(block, _)| *block);
    read_each(volume, &wanted, |block, purpose, bytes| match purpose {
        Purpose::Directory { index, logical } => match &mut contents.of[*index] {
            Content::Directory(directory) => directory.add_block(volume, &nodes[*index], *logical, block, bytes),
            _ => Ok(()),
        },
        Purpose::Symlink { index } => {
            let node = &nodes[*index];
            let len = usize::try_from(node.size).unwrap_or(BLOCK_LEN);
            contents.of[*index] = Content::Symlink(target(node, &bytes[..len])?);
            Ok(())
        }
        Purpose::Xattrs { inode, users } => {
            contents.xattrs.insert(block, xattr_block(volume, *inode, *users, block, bytes)?);
            Ok(())
        }
    })?;
    Ok(contents)
}

/// What can be told from the inode and its extents alone; the rest is put on the list.
fn content(
    volume: &Super<'_>,
    node: &Node,
    index: usize,
    wanted: &mut Vec<(u64, Purpose)>,
) -> Result<Content, ReadError> {
    let place = Place::Inode(node.number);
    match node.kind {
        FileType::Dir => {
            let blocks = node.size / BLOCK;
            if !node.size.is_multiple_of(BLOCK)
                || blocks == 0
                || blocks > volume.info.blocks.saturating_sub(wanted.len() as u64)
            {
                return Err(ReadError::corrupt(place, format!("directory of {} bytes", node.size)));
            }
            let mut covered = 0;
            for run in extents::read(volume, node)?.iter().take_while(|run| run.logical < blocks) {
                if run.logical != covered || !run.written {
                    break;
                }
                let len = run.len.min(blocks - covered);
                let block = |at| (run.physical + at, Purpose::Directory { index, logical: run.logical + at });
                wanted.extend((0..len).map(block));
                covered += len;
            }
            if covered != blocks {
                return Err(ReadError::corrupt(place, format!("hole at block {covered} of the directory")));
            }
            Ok(Content::Directory(Directory::default()))
        }
        FileType::Regular => {
            if node.size > (1 << 32) * BLOCK {
                return Err(ReadError::corrupt(place, format!("file of {} bytes", node.size)));
            }
            Ok(Content::File(extents::read(volume, node)?))
        }
        FileType::Symlink if node.size < SLOW_LINK && !node.has_extents => {
            let len = usize::try_from(node.size).unwrap_or(0);
            Ok(Content::Symlink(target(node, &node.i_block[..len])?))
        }
        FileType::Symlink => {
            let runs = extents::read(volume, node)?;
            match runs.first() {
                Some(run) if run.logical == 0 && run.written && node.size < BLOCK => {
                    wanted.push((run.physical, Purpose::Symlink { index }));
                    Ok(Content::Symlink(Vec::new()))
                }
                _ => Err(ReadError::corrupt(place, format!("link target of {} bytes without block", node.size))),
            }
        }
        _ => Ok(Content::Special),
    }
}

fn target(node: &Node, bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    if bytes.is_empty() || bytes.contains(&0) {
        let what = format!("link target {:?}", String::from_utf8_lossy(bytes));
        return Err(ReadError::corrupt(Place::Inode(node.number), what));
    }
    Ok(bytes.to_vec())
}

fn xattr_block(volume: &Super<'_>, inode: u32, users: u32, block: u64, bytes: &[u8]) -> Result<Xattrs, ReadError> {
    let place = Place::Block { inode, block };
    let view = XattrBlockView::parse(bytes).map_err(|error| ReadError::library(place.clone(), error))?;
    if let Some(seed) = volume.seed {
        let expected = csum::xattr_block(seed, block, bytes);
        if view.checksum != expected {
            return Err(ReadError::checksum(place, view.checksum, expected));
        }
    }
    if view.refcount != users {
        let what = format!("attribute block counts {} users, but {users} inodes use it", view.refcount);
        return Err(ReadError::corrupt(place, what));
    }
    xattrs::decode(view.entries, &place)
}

/// Hands out the wanted blocks, which must be sorted; those that are close together are read at once.
fn read_each<P>(
    volume: &Super<'_>,
    wanted: &[(u64, P)],
    mut each: impl FnMut(u64, &P, &[u8]) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut buf = Vec::new();
    let mut rest = wanted;
    while let Some((first, _)) = rest.first() {
        let (mut count, mut last) = (0, *first);
        while let Some((block, _)) = rest.get(count) {
            if block - last > MAX_GAP || block - first >= MAX_READ {
                break;
            }
            (count, last) = (count + 1, *block);
        }
        if last >= volume.info.blocks {
            let what = format!("refers to block {last} of {}", volume.info.blocks);
            return Err(ReadError::corrupt(Place::Superblock, what));
        }
        let len = usize::try_from((last - first + 1) * BLOCK).unwrap_or(0);
        buf.resize(len, 0);
        volume.read(&mut buf, first * BLOCK)?;
        for (block, purpose) in &rest[..count] {
            let at = usize::try_from((block - first) * BLOCK).unwrap_or(0);
            each(*block, purpose, &buf[at..at + BLOCK_LEN])?;
        }
        rest = &rest[count..];
    }
    Ok(())
}
