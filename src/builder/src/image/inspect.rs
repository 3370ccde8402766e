//! What an image is: a disk image enters, a [`Report`] for people and programs leaves. Also opens the file tree of any
//! partition. Nothing is written, no image is trusted.

mod disk;
mod report;
mod system;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::hint::{Hint, of_layout};

use vmbake_disk::disk::Arch;
use vmbake_disk::ext4::{self, ReadError, Want};
use vmbake_disk::fat::{self, FatError};
use vmbake_disk::image::{ImageError, quoted};
use vmbake_disk::layout::{LayoutError, Part, Scheme};
use vmbake_disk::signature::{self, Role, Signature};
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Tree, TreeError};

pub use disk::{DiskImage, PartitionName};
pub use report::{FileSystemReport, Inodes, InstalledSystem, PartitionReport, Report, Usage};
pub(crate) use system::os_release;

/// Why an image could not be inspected.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum InspectError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{}: cannot read the size of the file", path.display())]
    Size { path: PathBuf, source: std::io::Error },
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
    #[error("{at}: no file system that is known")]
    NoFileSystem { at: Box<PartitionName> },
    #[error("{}: {error}", path.display())]
    Tree { path: PathBuf, error: TreeError },
}

impl Hint for InspectError {
    fn hint(&self) -> Option<String> {
        let (at, role) = match self {
            Self::Unread { at, found } if found.name == "iso9660" => {
                let image = quoted(&at.path);
                return Some(format!(
                    "`xorriso -osirrox on -indev {image} -extract / DIR` unpacks an installation medium"
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
                format!("--partition N chooses another partition; `vmbake inspect {image}` says what is on each")
            }
            Some(_) => format!("`guestfish --ro -i -a {image}`, of Debian's package guestfish, may open it"),
        })
    }

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Image(error) => Some(error),
            Self::Layout { error, .. } => Some(error),
            Self::Tree { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl InspectError {
    /// One sentence, unless the error has a cause of its own.
    fn layout(path: &Path, error: LayoutError) -> Self {
        let path = path.to_owned();
        match std::error::Error::source(&error) {
            None => Self::Layout { path, error },
            Some(_) => Self::Disk { path, source: error },
        }
    }
}

/// What to do about a path inside an image.
fn of_path_inside(image: &Path, error: &TreeError) -> Option<String> {
    let inside = match error {
        TreeError::NotFile { path, found: "directory" } => path.as_str(),
        TreeError::NotFound { path } | TreeError::NotDirectory { path, .. } => path.rsplit_once('/')?.0,
        _ => return None,
    };
    let inside = if inside.is_empty() { "/" } else { inside };
    Some(format!("`vmbake ls {} {}` lists what is there", quoted(image), quoted(Path::new(inside))))
}

/// Describes the image at `path`, with the operating system of the root partition, or of that which was `chosen`.
///
/// What cannot be read is noted: only a file that is not a disk is an error, and a partition that was chosen in vain.
pub fn inspect(path: &Path, chosen: Option<u32>) -> Result<Report, InspectError> {
    let image = DiskImage::open(path)?;
    let metadata = std::fs::metadata(path).map_err(|source| InspectError::Size { path: path.to_owned(), source })?;
    let layout = image.layout();
    let mut notes = notes(layout.scheme());
    let root = match layout.root(chosen) {
        Ok(root) => Some(root),
        Err(error @ LayoutError::NoPartition { .. }) => return Err(InspectError::layout(path, error)),
        Err(error) => {
            notes.push(error.to_string());
            None
        }
    };
    let system = root.and_then(|root| match system::read(&image, root) {
        Ok((system, unread)) => {
            notes.extend(unread.map(|error| format!("/boot is not read: {}", reasons(&error, path))));
            Some(system)
        }
        Err(error) => {
            notes.push(format!("the operating system is not known: {}", reasons(&error, path)));
            None
        }
    });
    let (disk_guid, disk_signature, sector_size) = match layout.scheme() {
        Scheme::Gpt(table) => (Some(table.disk_guid.to_string()), None, table.sector),
        Scheme::Mbr(table) => (None, Some(format!("{:08x}", table.signature)), 512),
        Scheme::Whole(_) => (None, None, 512),
    };
    Ok(Report {
        format: image.format.to_string(),
        virtual_size: layout.source().len(),
        file_size: metadata.len(),
        allocated: metadata.blocks() * 512,
        table: scheme_name(layout.scheme()),
        sector_size,
        disk_guid,
        disk_signature,
        notes,
        arch: root.and_then(|root| Arch::of(root.kind)).map(Arch::name),
        root: root.map(|root| root.number),
        system,
        partitions: layout.parts().iter().map(|part| partition(&image, part)).collect(),
    })
}

fn partition(image: &DiskImage, part: &Part) -> PartitionReport {
    if part.kind.is_extended() {
        return PartitionReport::new(part, None, None);
    }
    match image.layout().open(part) {
        Ok(source) => {
            let (filesystem, unread) = probe(&*source);
            PartitionReport::new(part, filesystem, unread)
        }
        Err(error) => PartitionReport::new(part, None, Some(error.to_string())),
    }
}

/// Opens the root file system of the image at `path`, or that of the partition `chosen`.
pub fn open_tree(path: &Path, chosen: Option<u32>) -> Result<Tree, InspectError> {
    let image = DiskImage::open(path)?;
    image.tree(image.root(chosen)?, None)
}

/// As [`open_tree`], but only what `wants` lead to is in the tree. An ext4 file system is read no further.
pub fn open_some(path: &Path, chosen: Option<u32>, wants: &[Want<'_>]) -> Result<Tree, InspectError> {
    let image = DiskImage::open(path)?;
    image.tree(image.root(chosen)?, Some(wants))
}

/// The file system of a partition, if it is known, and why it is not read, if it is not.
pub(crate) fn probe(source: &dyn ReadAt) -> (Option<FileSystemReport>, Option<String>) {
    let known = |reason: String| (signature::probe(source).as_ref().map(FileSystemReport::of_signature), Some(reason));
    match ext4::probe(source) {
        Ok(found) => return (Some(FileSystemReport::of_ext4(&found)), None),
        Err(error) if disk::is_not_ext4(&error, source) => {}
        Err(error) => return known(error.to_string()),
    }
    match fat::probe(source) {
        Ok(found) => (Some(FileSystemReport::of_fat(&found)), None),
        Err(error @ FatError::NotFat { .. }) => match signature::probe(source) {
            // A boot sector of FAT whose numbers are not possible.
            Some(found) if found.role == signature::Role::Known => known(error.to_string()),
            Some(found) => (Some(FileSystemReport::of_signature(&found)), Some(found.reason())),
            None => (None, None),
        },
        // Too short for a boot sector.
        Err(FatError::Read { .. }) if source.len() < 512 => (None, None),
        Err(error) => known(error.to_string()),
    }
}

fn scheme_name(scheme: &Scheme) -> &'static str {
    match scheme {
        Scheme::Gpt(_) => "gpt",
        Scheme::Mbr(_) => "mbr",
        Scheme::Whole(_) => "none",
    }
}

fn notes(scheme: &Scheme) -> Vec<String> {
    let mut notes = Vec::new();
    match scheme {
        Scheme::Gpt(table) => {
            notes.extend(table.used_backup.as_ref().map(|why| format!("backup partition table used: {why}")));
            notes.extend(table.backup_damage.as_ref().map(|why| format!("backup partition table unusable: {why}")));
            notes.extend(table.mbr.hybrid.then(|| "hybrid MBR".to_owned()));
        }
        Scheme::Mbr(table) => notes.extend(table.damage.as_ref().map(|why| format!("partition table: {why}"))),
        Scheme::Whole(_) => {}
    }
    notes
}

/// An error with its causes in one line, without the name of the image that all of it is about.
pub(crate) fn reasons(error: &dyn std::error::Error, path: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let prefix = format!("{}: ", path.display());
    text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
}
