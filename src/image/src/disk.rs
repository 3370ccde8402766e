//! Opens a disk image for inspection: its partitions and their file trees.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message::FileError;
use vmbake_disk::ext4::{self, ReadError, Want};
use vmbake_disk::fat::{self, FatError};
use vmbake_disk::image::{Format, Image, ImageError, quoted};
use vmbake_disk::layout::{Layout, LayoutError, Part, WHOLE};
use vmbake_disk::signature::{self, Role, Signature};
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Origin, Tree, TreeError};

use crate::filesystem::is_not_ext4;
use vmbake_common::hint::{Hint, of_layout};

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

    /// An image whose disk is already open.
    pub fn of(path: &Path, format: Format, disk: Arc<dyn ReadAt>) -> Result<Self, InspectError> {
        let layout = Layout::read(disk).map_err(|error| InspectError::layout(path, error))?;
        Ok(Self { path: path.to_owned(), format, layout })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The root partition: that with the given number, otherwise the result of [`Layout::root`].
    pub fn root(&self, chosen: Option<u32>) -> Result<&Part, InspectError> {
        self.layout.root(chosen).map_err(|error| InspectError::layout(&self.path, error))
    }

    /// The contents of a partition.
    pub(super) fn source(&self, part: &Part) -> Result<Arc<dyn ReadAt>, InspectError> {
        self.layout.open(part).map_err(|error| InspectError::layout(&self.path, error))
    }

    /// The file tree of a partition: complete, or for an ext4 file system only the paths in `wants`.
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

/// A partition of an image, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionName {
    pub path: PathBuf,
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

/// Why an image could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{}: {error}", path.display())]
    Layout { path: PathBuf, error: LayoutError },
    #[error("{}: cannot read the disk", path.display())]
    Disk { path: PathBuf, source: LayoutError },
    #[error("{at}: cannot read the ext4 file system")]
    Ext4 { at: Box<PartitionName>, source: ReadError },
    #[error("{at}: cannot read the FAT file system")]
    Fat { at: Box<PartitionName>, source: FatError },
    #[error("{at}: {}", found.reason())]
    Unread { at: Box<PartitionName>, found: Box<Signature> },
    #[error("{at}: unknown file system")]
    NoFileSystem { at: Box<PartitionName> },
    #[error("{}: {error}", path.display())]
    Tree { path: PathBuf, error: TreeError },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for InspectError {
    fn hint(&self) -> Option<String> {
        let (at, role) = match self {
            Self::Unread { at, found } if found.name == "iso9660" => {
                let image = quoted(&at.path);
                return Some(format!(
                    "use `xorriso -osirrox on -indev {image} -extract / DIR` to unpack an installation medium"
                ));
            }
            Self::Unread { at, found } => (at, Some(found.role)),
            Self::NoFileSystem { at } => (at, None),
            Self::Layout { path, error } => return of_layout(error, &quoted(path)),
            Self::Tree { path, error } => return of_path_inside(path, error),
            _ => return None,
        };
        let image = quoted(&at.path);
        Some(match role {
            None | Some(Role::Swap | Role::Metadata) => {
                format!(
                    "use --partition N to choose another partition; `vmbake inspect {image}` lists the contents of each"
                )
            }
            Some(_) => format!("try `guestfish --ro -i -a {image}` from Debian's package guestfish"),
        })
    }

    vmbake_common::causes!(Image, File; Disk, Ext4, Fat; Layout, Tree);
}

impl InspectError {
    /// A one-line error, unless the error has a cause.
    pub(super) fn layout(path: &Path, error: LayoutError) -> Self {
        let path = path.to_owned();
        match std::error::Error::source(&error) {
            None => Self::Layout { path, error },
            Some(_) => Self::Disk { path, source: error },
        }
    }
}

/// The hint for a path inside an image.
fn of_path_inside(image: &Path, error: &TreeError) -> Option<String> {
    let inside = match error {
        TreeError::NotFile { path, found: "directory" } => path.as_str(),
        TreeError::NotFound { path } | TreeError::NotDirectory { path, .. } => path.rsplit_once('/')?.0,
        _ => return None,
    };
    let inside = if inside.is_empty() { "/" } else { inside };
    Some(format!("`vmbake ls {} {}` lists the directory", quoted(image), quoted(Path::new(inside))))
}
