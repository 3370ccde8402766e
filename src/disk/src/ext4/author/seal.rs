//! Hands the plan to the library, which decides the place of every block.

use mkext4::{FsBuilder, InodeCount, InodeHandle, Layout, Options, SparseSeg};

use super::geometry::Geometry;
use super::plan::{Content, Item, Plan};
use super::{AuthorError, VolumeOptions};
use crate::ext4::BLOCK;

/// What all attempts to lay out a volume share.
pub(super) struct Maker<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) options: &'a VolumeOptions,
    pub(super) label: &'a str,
}

/// A volume with every block placed.
pub(super) struct Sealed {
    pub(super) layout: Layout,
    pub(super) geometry: Geometry,
    pub(super) journal_blocks: u32,
    /// The library's names for the items of the plan, the root first.
    pub(super) handles: Vec<InodeHandle>,
}

impl Sealed {
    /// The first block of contents.
    pub(super) fn data_start(&self) -> Option<u64> {
        let starts = self.handles.iter().filter_map(|handle| self.layout.extents(*handle).first().copied());
        starts.map(|(offset, _)| offset / BLOCK).min()
    }
}

/// An error of the library, whose type stays inside.
pub(super) fn library(error: mkext4::Error) -> AuthorError {
    AuthorError::Layout { source: Box::new(error) }
}

impl Maker<'_> {
    /// Declares everything in a volume of this geometry. Fails when there is no room.
    pub(super) fn seal(&self, geometry: Geometry, journal_blocks: u32) -> Result<Sealed, AuthorError> {
        self.try_seal(geometry, journal_blocks).map_err(library)
    }

    fn try_seal(&self, geometry: Geometry, journal_blocks: u32) -> mkext4::Result<Sealed> {
        let mut options = Options::new(geometry.blocks * BLOCK, self.options.uuid, self.options.epoch.into());
        options.hash_seed = mkext4::dirhash::seed_from_uuid(&self.options.hash_seed);
        options.label = (!self.label.is_empty()).then(|| self.label.to_owned());
        options.inodes = InodeCount::Exact(geometry.inodes);
        options.journal_blocks = Some(journal_blocks);
        let mut builder = FsBuilder::new(options)?;
        builder.set_meta(mkext4::ROOT, self.plan.root.meta)?;
        set_xattrs(&mut builder, mkext4::ROOT, &self.plan.root)?;
        let mut handles = vec![mkext4::ROOT];
        for item in &self.plan.items {
            let handle = declare(&mut builder, handles[item.parent], item)?;
            set_xattrs(&mut builder, handle, item)?;
            handles.push(handle);
        }
        for link in &self.plan.links {
            builder.hardlink(handles[link.parent], &link.name, handles[link.target])?;
        }
        Ok(Sealed { layout: builder.seal()?, geometry, journal_blocks, handles })
    }
}

fn declare(builder: &mut FsBuilder, parent: InodeHandle, item: &Item<'_>) -> mkext4::Result<InodeHandle> {
    let (name, meta) = (item.name.as_str(), item.meta);
    match &item.content {
        Content::Directory => builder.mkdir(parent, name, meta),
        Content::Symlink(target) => builder.symlink(parent, name, target, meta),
        Content::Special(kind) => builder.mknod(parent, name, meta, *kind),
        Content::File { map, data } => {
            let (mut parts, mut at) = (Vec::new(), 0);
            for range in data {
                if range.start > at {
                    parts.push(SparseSeg::Hole(range.start - at));
                }
                parts.push(SparseSeg::Data(range.end - range.start));
                at = range.end;
            }
            match (parts.as_slice(), map.len() - at) {
                ([] | [SparseSeg::Data(_)], 0) => builder.file(parent, name, meta, map.len()),
                (_, 0) => builder.file_sparse(parent, name, meta, &parts),
                (_, rest) => {
                    parts.push(SparseSeg::Hole(rest));
                    builder.file_sparse(parent, name, meta, &parts)
                }
            }
        }
    }
}

fn set_xattrs(builder: &mut FsBuilder, handle: InodeHandle, item: &Item<'_>) -> mkext4::Result<()> {
    item.xattrs.iter().try_for_each(|(name, value)| builder.set_xattr(handle, name, value))
}
