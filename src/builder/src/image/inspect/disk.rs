//! An image that is opened to look into it: its partitions, and the file tree of any.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_disk::ext4::{self, ReadError, Want};
use vmbake_disk::fat::{self, FatError};
use vmbake_disk::image::{Format, Image};
use vmbake_disk::layout::{Layout, Part, WHOLE};
use vmbake_disk::signature;
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Origin, Tree};

use super::InspectError;

/// A disk image with its partitions.
pub struct DiskImage {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    layout: Layout,
}

impl DiskImage {
    /// Opens the image at `path` and reads its partition table.
    pub fn open(path: &Path) -> Result<Self, InspectError> {
        let image = Image::open(path)?;
        let format = image.format();
        Self::of(path, format, Arc::new(image))
    }

    /// An image whose disk is opened already.
    pub(crate) fn of(path: &Path, format: Format, disk: Arc<dyn ReadAt>) -> Result<Self, InspectError> {
        let layout = Layout::read(disk).map_err(|error| InspectError::layout(path, error))?;
        Ok(Self { path: path.to_owned(), format, layout })
    }

    /// Where the image is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its partitions.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The partition of the root file system: the one of that number, else what [`Layout::root`] finds.
    pub fn root(&self, chosen: Option<u32>) -> Result<&Part, InspectError> {
        self.layout.root(chosen).map_err(|error| InspectError::layout(&self.path, error))
    }

    /// The bytes of a partition.
    pub(super) fn source(&self, part: &Part) -> Result<Arc<dyn ReadAt>, InspectError> {
        self.layout.open(part).map_err(|error| InspectError::layout(&self.path, error))
    }

    /// The file tree of a partition: all of it, or of an ext4 file system what `wants` lead to.
    pub fn tree(&self, part: &Part, wants: Option<&[Want<'_>]>) -> Result<Tree, InspectError> {
        let at = || Box::new(PartitionName { path: self.path.clone(), number: part.number });
        let source = self.source(part)?;
        let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
        let found = match wants {
            None => ext4::read(source.clone(), origin.clone()),
            Some(wants) => ext4::read_some(source.clone(), origin.clone(), wants),
        };
        match found {
            Ok((_, tree)) => return Ok(tree),
            Err(error) if is_not_ext4(&error, &*source) => {}
            Err(source) => return Err(InspectError::Ext4 { at: at(), source }),
        }
        match fat::read(source.clone(), origin) {
            Ok(tree) => Ok(tree),
            Err(error) => match (signature::probe(&*source), error) {
                (Some(found), FatError::NotFat { .. }) => {
                    Err(InspectError::Unread { at: at(), found: Box::new(found) })
                }
                (None, FatError::NotFat { .. }) => Err(InspectError::NoFileSystem { at: at() }),
                (_, source) => Err(InspectError::Fat { at: at(), source }),
            },
        }
    }
}

/// Whether the error says that there is no ext4 file system, and not that it is damaged.
pub(super) fn is_not_ext4(error: &ReadError, source: &dyn ReadAt) -> bool {
    match error {
        ReadError::NotExt4 { .. } => true,
        // The end of a superblock.
        ReadError::Io { .. } => source.len() < 2048,
        _ => false,
    }
}

/// A partition of an image, in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionName {
    /// The image.
    pub path: PathBuf,
    /// Number of the partition.
    pub number: u32,
}

impl fmt::Display for PartitionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            WHOLE => write!(f, "{}", self.path.display()),
            number => write!(f, "{}: partition {number}", self.path.display()),
        }
    }
}
