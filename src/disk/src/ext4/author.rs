//! Lays out a tree as a volume: order of inodes, size, placement of contents.
//!
//! Placement is stable: unchanged contents keep their offsets in the next volume of the same size. Related inodes are
//! placed together, see [`groups`], with room for inodes and blocks to grow between two groups, see [`gaps`], and
//! between the directories and the contents, which start at a coarse boundary. Gaps are free space and holes in the
//! image. If there is no room, gaps are smaller or omitted.
//!
//! Another size has another geometry, and other offsets.

mod groups;
mod plan;
mod geometry;
mod gaps;
mod seal;
mod metadata;
mod release;
mod volume;

use gaps::Gaps;
use geometry::Geometry;
use plan::Plan;
use seal::Sealed;

use crate::tree::Tree;
pub use plan::Refusal;
pub use volume::{Stats, Volume};

/// The size of a volume in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Exactly this size. A remainder smaller than a block, or a last block group too small for its own metadata,
    /// becomes a hole after the file system, as with `mke2fs`.
    Exact(u64),
    /// The smallest multiple of 1 MiB that holds the tree and leaves this many bytes free, including reserved blocks.
    Smallest { margin_bytes: u64 },
}

/// The parameters of a volume.
#[derive(Clone, Debug)]
pub struct VolumeOptions {
    pub size: Size,
    /// `s_uuid`; the metadata checksums are derived from it.
    pub uuid: [u8; 16],
    /// `s_volume_name`: UTF-8, at most 16 bytes.
    pub label: Vec<u8>,
    /// `s_hash_seed`: the order of names in large directories is derived from it.
    pub hash_seed: [u8; 16],
    /// Times in the superblock and of `lost+found`: seconds since 1970, up to 2106.
    pub epoch: u32,
}

/// Why a volume could not be created.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    #[error("the ext4 volume needs at least {needed_bytes} bytes, but {given_bytes} were given")]
    TooSmall { needed_bytes: u64, given_bytes: u64 },
    #[error("{path}: unsupported by ext4: {refusal}")]
    Refused { path: String, refusal: Refusal },
    #[error("volume label {label:?}: {found} bytes, the maximum is 16 bytes of UTF-8")]
    Label { label: String, found: usize },
    #[error("cannot create an ext4 volume of {needed_bytes} bytes: the maximum is 16 TiB")]
    TooLarge { needed_bytes: u64 },
    #[error("cannot lay out the ext4 volume")]
    Layout { source: Box<dyn std::error::Error + Send + Sync> },
}

/// Lays out `tree` as an ext4 volume. Reads no contents; holds only metadata in memory.
pub fn author(tree: &Tree, options: &VolumeOptions) -> Result<Volume, AuthorError> {
    let label = std::str::from_utf8(&options.label).ok().filter(|label| label.len() <= 16).ok_or_else(|| {
        let label = String::from_utf8_lossy(&options.label).into_owned();
        AuthorError::Label { label, found: options.label.len() }
    })?;
    let plan = Plan::new(tree)?;
    let maker = seal::Maker { plan: &plan, options, label };
    let (size, sealed) = match options.size {
        Size::Exact(size) => (size, exact(&maker, size)?),
        Size::Smallest { margin_bytes } => {
            let (size, dense) = smallest(&maker, margin_bytes, true)?;
            let geometry = dense.geometry;
            // One layout is in memory at a time, as each contains all directories.
            drop(dense);
            (size, spaced(&maker, geometry).map_or_else(|| maker.seal(geometry, &Gaps::default()), Ok)?)
        }
    };
    Volume::emit(tree, &plan, &sealed, size)
}

fn exact(maker: &seal::Maker<'_>, given_bytes: u64) -> Result<Sealed, AuthorError> {
    if geometry::blocks_of(given_bytes) > geometry::MAX_BLOCKS {
        return Err(AuthorError::TooLarge { needed_bytes: given_bytes });
    }
    let geometry = Geometry::of(given_bytes, maker.plan.inodes);
    // The tree has been validated, so a layout fails only for lack of space.
    let dense = |geometry| maker.seal(geometry, &Gaps::default()).ok();
    if let Some(sealed) = geometry.and_then(|geometry| spaced(maker, geometry).or_else(|| dense(geometry))) {
        return Ok(sealed);
    }
    let (needed_bytes, _) = smallest(maker, 0, false)?;
    Err(AuthorError::TooSmall { needed_bytes, given_bytes })
}

/// Finds the size for the tree: its blocks are counted in a larger volume, then the first size is chosen that leaves
/// enough after the metadata of that size. If extents are split differently than in the large volume, a few more blocks
/// are required and the next size is tried.
fn smallest(maker: &seal::Maker<'_>, margin_bytes: u64, align: bool) -> Result<(u64, Sealed), AuthorError> {
    let ample = maker.plan.ample_bytes();
    let too_large = |needed_bytes| AuthorError::TooLarge { needed_bytes };
    let geometry = Geometry::of(ample, maker.plan.inodes).ok_or(too_large(ample))?;
    let sealed = maker.seal(geometry, &Gaps::default())?;
    let content = volume::used_blocks(&sealed)?.saturating_sub(geometry.overhead());
    drop(sealed);
    let mut need = content.saturating_add(geometry::blocks_of(margin_bytes));
    loop {
        let (size, geometry) = geometry::smallest(need, maker.plan.inodes, align).ok_or(too_large(need))?;
        match maker.seal(geometry, &Gaps::default()) {
            Ok(sealed) => return Ok((size, sealed)),
            Err(error) if need > content.saturating_mul(2).saturating_add(geometry::blocks_of(margin_bytes)) => {
                return Err(error);
            }
            Err(_) => need += 1 + need / 256,
        }
    }
}

/// Lays out with gaps; `None` if there is no room for them, or only one group.
fn spaced(maker: &seal::Maker<'_>, geometry: Geometry) -> Option<Sealed> {
    let mut gaps = Gaps::new(maker.plan, &geometry);
    if gaps.rows.is_empty() {
        return None;
    }
    // The start of contents is known from a layout without gaps of blocks.
    let start = maker.seal(geometry, &gaps).ok()?.data_start()?;
    gaps.fill(maker.plan, &geometry, start);
    maker.seal(geometry, &gaps).ok()
}
