//! Declares the plan to the library, which places every block.

use mkext4::{FsBuilder, InodeCount, InodeHandle, Layout, Meta, Options, SparseSeg};

use super::gaps::Gaps;
use super::geometry::Geometry;
use super::plan::{Content, Item, Plan};
use super::{AuthorError, VolumeOptions};
use crate::ext4::BLOCK;

/// Number of the first inode that the library assigns.
const FIRST_INODE: usize = 12;

/// The state shared by all attempts to lay out a volume.
pub(super) struct Maker<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) options: &'a VolumeOptions,
    pub(super) label: &'a str,
}

/// A volume with every block placed.
pub(super) struct Sealed {
    pub(super) layout: Layout,
    pub(super) geometry: Geometry,
    /// The library's handles for the items of the plan, the root first.
    pub(super) handles: Vec<InodeHandle>,
    pub(super) placeholders: Placeholders,
}

/// Inode numbers to release.
#[derive(Default)]
pub(super) struct Placeholders {
    pub(super) inodes: Vec<u32>,
    /// The directory of the placeholders in the root directory; `None` if there are none.
    pub(super) folder: Option<u32>,
}

impl Sealed {
    /// The first block of contents.
    pub(super) fn data_start(&self) -> Option<u64> {
        let starts = self.handles.iter().filter_map(|handle| self.layout.extents(*handle).first().copied());
        starts.map(|(offset, _)| offset / BLOCK).min()
    }
}

/// Wraps an error of the library, whose type is private.
pub(super) fn library(error: mkext4::Error) -> AuthorError {
    AuthorError::Layout { source: Box::new(error) }
}

impl Maker<'_> {
    /// Declares everything in a volume of this geometry, with placeholders for gaps. Fails if there is no room.
    pub(super) fn seal(&self, geometry: Geometry, gaps: &Gaps) -> Result<Sealed, AuthorError> {
        self.try_seal(geometry, gaps).map_err(library)
    }

    fn try_seal(&self, geometry: Geometry, gaps: &Gaps) -> mkext4::Result<Sealed> {
        let mut options = Options::new(geometry.blocks * BLOCK, self.options.uuid, self.options.epoch.into());
        options.hash_seed = mkext4::dirhash::seed_from_uuid(&self.options.hash_seed);
        options.label = (!self.label.is_empty()).then(|| self.label.to_owned());
        options.inodes = InodeCount::Exact(geometry.inodes);
        options.journal_blocks = Some(geometry.journal_blocks);
        let mut builder = FsBuilder::new(options)?;
        builder.set_meta(mkext4::ROOT, self.plan.root.meta)?;
        set_xattrs(&mut builder, mkext4::ROOT, &self.plan.root)?;
        let mut handles = vec![mkext4::ROOT];
        let mut holders = Holders::new(self);
        let mut rows = gaps.rows.iter().peekable();
        for (position, item) in self.plan.items.iter().enumerate() {
            while let Some((_, row)) = rows.next_if(|(before, _)| *before <= position) {
                holders.declare(&mut builder, row, handles.len())?;
            }
            let handle = declare(&mut builder, handles[item.parent], item)?;
            set_xattrs(&mut builder, handle, item)?;
            handles.push(handle);
        }
        for link in &self.plan.links {
            builder.hardlink(handles[link.parent], &link.name, handles[link.target])?;
        }
        let placeholders = holders.put_away(&mut builder, handles.len())?;
        Ok(Sealed { layout: builder.seal()?, geometry, handles, placeholders })
    }
}

/// Placeholders being declared.
struct Holders {
    /// A unique name in the root directory, which is not a prefix of another one.
    name: String,
    meta: Meta,
    handles: Vec<InodeHandle>,
    inodes: Vec<u32>,
}

impl Holders {
    fn new(maker: &Maker<'_>) -> Self {
        let top = || maker.plan.items.iter().filter(|item| item.parent == 0).map(|item| &item.name);
        let links = || maker.plan.links.iter().filter(|link| link.parent == 0).map(|link| &link.name);
        let mut name = String::from("placeholder");
        while top().chain(links()).any(|taken| taken.starts_with(&name)) {
            name.push('-');
        }
        let meta = Meta::new(0, 0, 0, (maker.options.epoch.into(), 0));
        Self { name, meta, handles: Vec::new(), inodes: Vec::new() }
    }

    /// Number of the next inode, given the number of declared inodes of the tree including the root. The library counts
    /// in the order of declaration, from the first unreserved inode.
    fn next_inode(&self, declared: usize) -> mkext4::Result<u32> {
        let number = FIRST_INODE + declared - 1 + self.inodes.len();
        u32::try_from(number).map_err(|_| mkext4::Error::Invalid("too many inodes".into()))
    }

    fn declare(&mut self, builder: &mut FsBuilder, row: &[u64], declared: usize) -> mkext4::Result<()> {
        for blocks in row {
            let inode = self.next_inode(declared)?;
            let name = format!("{}{}", self.name, self.inodes.len());
            self.handles.push(builder.file(mkext4::ROOT, &name, self.meta, blocks * BLOCK)?);
            self.inodes.push(inode);
        }
        Ok(())
    }

    /// Moves them into a separate directory. It is declared last, so that its blocks follow those of all other
    /// directories and its entry all others of the root directory.
    fn put_away(self, builder: &mut FsBuilder, declared: usize) -> mkext4::Result<Placeholders> {
        if self.handles.is_empty() {
            return Ok(Placeholders::default());
        }
        let number = self.next_inode(declared)?;
        let folder = builder.mkdir(mkext4::ROOT, &self.name, self.meta)?;
        for (index, handle) in self.handles.iter().enumerate() {
            builder.hardlink(folder, &index.to_string(), *handle)?;
            builder.remove(mkext4::ROOT, &format!("{}{index}", self.name))?;
        }
        Ok(Placeholders { inodes: self.inodes, folder: Some(number) })
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
