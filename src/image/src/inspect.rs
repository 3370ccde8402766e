//! Describes a disk image in a [`Report`], and opens the file tree of any partition. Images are untrusted and never
//! modified.

mod report;
mod system;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use vmbake_common::message::FileError;
use vmbake_disk::disk::Arch;
use vmbake_disk::ext4::Want;
use vmbake_disk::layout::{LayoutError, Part, Scheme};
use vmbake_disk::tree::Tree;

use crate::disk::{DiskImage, InspectError};
use crate::filesystem::probe;

pub use report::{InstalledSystem, PartitionReport, Report};
pub use system::os_release;

/// The operating system of an image, according to its files.
pub fn installed(image: &DiskImage, chosen: Option<u32>) -> Result<InstalledSystem, InspectError> {
    Ok(system::read(image, image.root(chosen)?)?.0)
}

/// Describes the image at `path`, with the operating system of the root partition, or of the `chosen` partition.
///
/// Unreadable parts become notes: only a file that is not a disk is an error, and an invalid `chosen` partition.
pub fn inspect(path: &Path, chosen: Option<u32>) -> Result<Report, InspectError> {
    let image = DiskImage::open(path)?;
    let metadata = std::fs::metadata(path)
        .map_err(|source| InspectError::File(FileError::new(path, "read the size of the file", source)))?;
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
            notes.extend(unread.map(|error| format!("cannot read /boot: {}", reasons(&error, path))));
            Some(system)
        }
        Err(error) => {
            notes.push(format!("unknown operating system: {}", reasons(&error, path)));
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

/// As [`open_tree`], with only the paths in `wants`. Less of an ext4 file system is read.
pub fn open_some(path: &Path, chosen: Option<u32>, wants: &[Want<'_>]) -> Result<Tree, InspectError> {
    let image = DiskImage::open(path)?;
    image.tree(image.root(chosen)?, Some(wants))
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
            notes.extend(table.used_backup.as_ref().map(|why| format!("using backup partition table: {why}")));
            notes.extend(table.backup_damage.as_ref().map(|why| format!("invalid backup partition table: {why}")));
            notes.extend(table.mbr.hybrid.then(|| "hybrid MBR".to_owned()));
        }
        Scheme::Mbr(table) => notes.extend(table.damage.as_ref().map(|why| format!("partition table: {why}"))),
        Scheme::Whole(_) => {}
    }
    notes
}

/// An error with its causes in one line, without the path of the image.
pub fn reasons(error: &dyn std::error::Error, path: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let prefix = format!("{}: ", path.display());
    text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
}
