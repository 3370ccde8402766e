//! From a tree to a volume: what is declared, how large it becomes, where contents are placed.
//!
//! Placement follows the order of declaration, see [`plan`]: directories, links and devices by path, then regular files
//! by the place of their content in the tree's sources. So contents of one layer stay together, those of the base keep
//! the base's physical order, and what a later layer adds comes behind.
//!
//! Directories stand before contents, so one more directory block would shift everything. The journal takes up the
//! slack: it is enlarged until contents begin at a coarse boundary, which small changes of the metadata leave alone.
//! Positions are thus stable between volumes of one size; another size has another geometry.

mod plan;
mod geometry;
mod seal;
mod volume;

use geometry::Geometry;
use plan::Plan;
use seal::Sealed;

use crate::tree::Tree;
pub use plan::Refusal;
pub use volume::{Stats, Volume};

/// How large a volume becomes. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// This large. What is left over below a whole block, or as a last block group too small for its own metadata, is
    /// a hole behind the file system, as `mke2fs` leaves it.
    Exact(u64),
    /// The smallest multiple of 1 MiB that holds the tree and leaves so many bytes free, reserved blocks included.
    Smallest {
        /// Bytes to leave free.
        margin_bytes: u64,
    },
}

/// What a volume is besides its tree.
#[derive(Clone, Debug)]
pub struct VolumeOptions {
    /// Size of the volume.
    pub size: Size,
    /// `s_uuid`; the metadata checksums derive from it.
    pub uuid: [u8; 16],
    /// `s_volume_name`: UTF-8, at most 16 bytes.
    pub label: Vec<u8>,
    /// `s_hash_seed`: the order of names in large directories derives from it.
    pub hash_seed: [u8; 16],
    /// Times in the superblock and of `lost+found`: seconds since 1970, up to 2106.
    pub epoch: u32,
}

/// Why a volume could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum AuthorError {
    #[error("the ext4 volume needs at least {needed_bytes} bytes, but {given_bytes} were given")]
    TooSmall { needed_bytes: u64, given_bytes: u64 },
    #[error("{path}: ext4 cannot hold it: {refusal}")]
    Refused { path: String, refusal: Refusal },
    #[error("volume label {label:?}: {found} bytes, at most 16 of UTF-8 fit")]
    Label { label: String, found: usize },
    #[error("an ext4 volume of {needed_bytes} bytes cannot be made: at most 16 TiB")]
    TooLarge { needed_bytes: u64 },
    #[error("cannot lay out the ext4 volume")]
    Layout { source: Box<dyn std::error::Error + Send + Sync> },
}

/// Lays out `tree` as an ext4 volume. Reads no content; holds only metadata in memory.
pub fn author(tree: &Tree, options: &VolumeOptions) -> Result<Volume, AuthorError> {
    let label = std::str::from_utf8(&options.label).ok().filter(|label| label.len() <= 16).ok_or_else(|| {
        let label = String::from_utf8_lossy(&options.label).into_owned();
        AuthorError::Label { label, found: options.label.len() }
    })?;
    let plan = Plan::new(tree)?;
    let maker = seal::Maker { plan: &plan, options, label };
    let (size, sealed) = match options.size {
        Size::Exact(size) => (size, exact(&maker, size)?),
        Size::Smallest { margin_bytes } => smallest(&maker, margin_bytes, true)?,
    };
    let sealed = aligned(&maker, sealed)?;
    Volume::emit(tree, &plan, &sealed, size)
}

fn exact(maker: &seal::Maker<'_>, given_bytes: u64) -> Result<Sealed, AuthorError> {
    if geometry::blocks_of(given_bytes) > geometry::MAX_BLOCKS {
        return Err(AuthorError::TooLarge { needed_bytes: given_bytes });
    }
    let geometry = Geometry::of(given_bytes, maker.plan.inodes);
    // What the tree holds was checked, so a layout that fails failed for want of room.
    if let Some(sealed) = geometry.and_then(|geometry| maker.seal(geometry, geometry.journal_blocks).ok()) {
        return Ok(sealed);
    }
    let (needed_bytes, _) = smallest(maker, 0, false)?;
    Err(AuthorError::TooSmall { needed_bytes, given_bytes })
}

/// Finds the size that the tree needs: its blocks are counted in a volume with room to spare, then the first size is
/// taken that leaves enough beside the metadata of that size. Where extents are split in another way than in the large
/// volume, a few blocks more are needed and the next size is tried.
fn smallest(maker: &seal::Maker<'_>, margin_bytes: u64, align: bool) -> Result<(u64, Sealed), AuthorError> {
    let ample = maker.plan.ample_bytes();
    let too_large = |needed_bytes| AuthorError::TooLarge { needed_bytes };
    let geometry = Geometry::of(ample, maker.plan.inodes).ok_or(too_large(ample))?;
    let sealed = maker.seal(geometry, geometry.journal_blocks)?;
    let content = volume::used_blocks(&sealed)?.saturating_sub(geometry.overhead());
    drop(sealed);
    let mut need = content.saturating_add(geometry::blocks_of(margin_bytes));
    loop {
        let (size, geometry) = geometry::smallest(need, maker.plan.inodes, align).ok_or(too_large(need))?;
        match maker.seal(geometry, geometry.journal_blocks) {
            Ok(sealed) => return Ok((size, sealed)),
            Err(error) if need > content.saturating_mul(2).saturating_add(geometry::blocks_of(margin_bytes)) => {
                return Err(error);
            }
            Err(_) => need += 1 + need / 256,
        }
    }
}

/// Enlarges the journal until contents begin at the boundary, if there is room; otherwise the layout stays. One layout
/// is held at a time, as each holds all directories.
fn aligned(maker: &seal::Maker<'_>, natural: Sealed) -> Result<Sealed, AuthorError> {
    let Some(start) = natural.data_start() else { return Ok(natural) };
    let geometry = natural.geometry;
    let target = start.next_multiple_of(geometry.alignment());
    if start == target {
        return Ok(natural);
    }
    drop(natural);
    let grown = |by: u64| {
        let journal = u32::try_from(u64::from(geometry.journal_blocks) + by).ok()?;
        maker.seal(geometry, journal).ok().filter(|sealed| sealed.data_start() >= Some(target))
    };
    let by = target - start;
    let first = grown(by);
    // A backup superblock on the way is jumped over: then a smaller journal may reach the boundary itself.
    let over = first.as_ref().and_then(Sealed::data_start).map_or(0, |found| found - target);
    if over == 0 || over > by {
        return first.map_or_else(|| maker.seal(geometry, geometry.journal_blocks), Ok);
    }
    drop(first);
    match grown(by - over).or_else(|| grown(by)) {
        Some(sealed) => Ok(sealed),
        None => maker.seal(geometry, geometry.journal_blocks),
    }
}
