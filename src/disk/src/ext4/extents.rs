//! Extent trees: the root stands in `i_block`, deeper nodes in blocks with a checksum at their end.

use mkext4::csum;
use mkext4::spec::extent::{self, Extent, ExtentHeader, ExtentIdx};

use super::error::REBUILD;
use super::inodes::Node;
use super::superblock::Super;
use super::{BLOCK, BLOCK_LEN, Place, ReadError, le32};

/// Deepest tree that the kernel makes (`EXT4_MAX_EXTENT_DEPTH`).
const MAX_DEPTH: u16 = 5;
/// Entries that fit into `i_block`.
const ROOT_ENTRIES: u16 = 4;
/// Entries that fit into a block, its checksum left out.
const BLOCK_ENTRIES: u16 = 340;

/// Blocks of a file that stand side by side on the volume. All in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Position in the file.
    pub(super) logical: u64,
    /// Position on the volume.
    pub(super) physical: u64,
    pub(super) len: u64,
    /// Whether the blocks were written; otherwise they read as zeros.
    pub(super) written: bool,
}

/// The runs of an inode, ascending and disjoint, all inside the volume.
pub(super) fn read(volume: &Super<'_>, node: &Node) -> Result<Vec<Run>, ReadError> {
    if node.maps_nothing() {
        return Ok(Vec::new());
    }
    let place = Place::Inode(node.number);
    if !node.has_extents {
        return Err(ReadError::unsupported(place, "blocks mapped without extents (ext3)", REBUILD));
    }
    let mut walk = Walk { volume, node, runs: Vec::new(), end: 0 };
    let header = header(&node.i_block, ROOT_ENTRIES).map_err(|what| ReadError::corrupt(place.clone(), what))?;
    if header.depth > MAX_DEPTH {
        return Err(ReadError::corrupt(place, format!("extent tree of depth {}", header.depth)));
    }
    walk.node(&node.i_block, header, &place)?;
    Ok(walk.runs)
}

/// State of one walk. It ends because every node below the root holds at least one entry, depths descend, and each
/// entry lies after all before it: no block is visited twice.
struct Walk<'a> {
    volume: &'a Super<'a>,
    node: &'a Node,
    runs: Vec<Run>,
    /// First block of the file that is not covered yet.
    end: u64,
}

impl Walk<'_> {
    fn node(&mut self, bytes: &[u8], header: ExtentHeader, place: &Place) -> Result<(), ReadError> {
        for index in 0..usize::from(header.entries) {
            let entry = extent::entry(bytes, index);
            if header.depth == 0 {
                self.leaf(Extent::decode(entry), place)?;
            } else {
                self.child(ExtentIdx::decode(entry), header.depth, place)?;
            }
        }
        Ok(())
    }

    fn leaf(&mut self, extent: Extent, place: &Place) -> Result<(), ReadError> {
        let run = Run {
            logical: extent.logical.into(),
            physical: extent.start,
            len: extent.len().into(),
            written: !extent.is_unwritten(),
        };
        let end = run.physical.checked_add(run.len);
        if run.len == 0 || run.physical == 0 || end.is_none_or(|end| end > self.volume.info.blocks) {
            let what = format!("extent of {} blocks at block {}", run.len, run.physical);
            return Err(ReadError::corrupt(place.clone(), what));
        }
        if run.logical < self.end {
            let what = format!("extent for block {} of the file after {}", run.logical, self.end);
            return Err(ReadError::corrupt(place.clone(), what));
        }
        self.end = run.logical + run.len;
        self.runs.push(run);
        Ok(())
    }

    fn child(&mut self, index: ExtentIdx, depth: u16, place: &Place) -> Result<(), ReadError> {
        if index.leaf == 0 || index.leaf >= self.volume.info.blocks || u64::from(index.logical) < self.end {
            let what = format!("extent index for block {} of the file at block {}", index.logical, index.leaf);
            return Err(ReadError::corrupt(place.clone(), what));
        }
        let place = Place::Block { inode: self.node.number, block: index.leaf };
        let mut bytes = vec![0; BLOCK_LEN];
        self.volume.read(&mut bytes, index.leaf * BLOCK)?;
        if let Some(seed) = self.node.seed {
            let (found, expected) = (le32(&bytes, BLOCK_LEN - 4), csum::extent_block(seed, &bytes));
            if found != expected {
                return Err(ReadError::checksum(place, found, expected));
            }
        }
        let header = header(&bytes, BLOCK_ENTRIES).map_err(|what| ReadError::corrupt(place.clone(), what))?;
        if header.depth != depth - 1 || header.entries == 0 {
            let what = format!("{} extents at depth {}, expected {}", header.entries, header.depth, depth - 1);
            return Err(ReadError::corrupt(place, what));
        }
        // As the kernel does: the first entry of a node begins where its parent says.
        if le32(&bytes, ExtentHeader::LEN) != index.logical {
            return Err(ReadError::corrupt(place, "extents do not begin where their index says"));
        }
        self.node(&bytes, header, &place)
    }
}

fn header(bytes: &[u8], capacity: u16) -> Result<ExtentHeader, String> {
    let header = ExtentHeader::decode(bytes).map_err(|error| error.to_string())?;
    if header.max != capacity || header.entries > header.max {
        return Err(format!("{} extents of {}, in a node for {capacity}", header.entries, header.max));
    }
    Ok(header)
}
