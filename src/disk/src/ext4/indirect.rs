//! Block maps of ext2 and ext3: `i_block` has the numbers of the first 12 blocks of a file, followed by a single, a
//! double and a triple indirect block (`Documentation/filesystems/ext4/blockmap.rst`). A 0 is a hole.

use super::corruption::MappingFault;
use super::mapping::{Run, Runs};
use super::{Location, ReadError, le32};

/// Number of direct blocks in `i_block`.
const DIRECT: usize = 12;
/// Length of a number.
const NUMBER: usize = 4;

/// Reads the map of an inode. The walk terminates, as each block read is taken from the budget.
pub(super) fn read(runs: &mut Runs<'_>) -> Result<(), ReadError> {
    let per_block = (runs.volume.block_len / NUMBER) as u64;
    let place = Location::Inode(runs.node.number);
    let map = &runs.node.i_block;
    let mut logical = 0;
    for (index, number) in map.chunks_exact(NUMBER).map(|number| le32(number, 0)).enumerate() {
        let depth = (index + 1).saturating_sub(DIRECT);
        below(runs, number, depth, logical, &place)?;
        logical += (0..depth).fold(1, |blocks, _| blocks * per_block);
    }
    Ok(())
}

/// Follows a number: a block of the file, or an indirect block of level `depth`.
fn below(runs: &mut Runs<'_>, number: u32, depth: usize, logical: u64, place: &Location) -> Result<(), ReadError> {
    let physical = u64::from(number);
    if physical == 0 {
        return Ok(());
    }
    if depth == 0 {
        return runs.push(Run { logical, physical, len: 1, written: true }, place);
    }
    if !runs.volume.holds(physical, 1) {
        let what = MappingFault::Map { logical, block: physical };
        return Err(ReadError::corrupt(place.clone(), what));
    }
    runs.budget.take_block(runs.node, physical)?;
    let bytes = runs.volume.read_block(physical)?;
    let place = Location::Block { inode: runs.node.number, block: physical };
    let step = (1..depth).fold(1, |blocks, _| blocks * (runs.volume.block_len / NUMBER) as u64);
    bytes.chunks_exact(NUMBER).zip(0..).try_for_each(|(number, index): (_, u64)| {
        below(runs, le32(number, 0), depth - 1, logical + index * step, &place)
    })
}
