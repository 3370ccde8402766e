//! What an image is: a disk image enters, a [`Report`] for people and programs leaves. Also opens the file tree of any
//! partition. Nothing is written, no image is trusted.

mod report;
mod system;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_disk::disk::{self, AssembleError};
use vmbake_disk::ext4::{self, ReadError, Want};
use vmbake_disk::fat::{self, FatError};
use vmbake_disk::gpt::{self, GptError, Partition, Table};
use vmbake_disk::image::{Image, ImageError};
use vmbake_disk::source::{ReadAt, Window};
use vmbake_disk::tree::{Origin, Tree, TreeError};

pub use report::{FileSystemReport, Inodes, PartitionReport, Report, System};
pub(crate) use system::os_release;

/// Why an image could not be inspected.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum InspectError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{}: cannot read the size of the file", path.display())]
    Size { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Gpt(#[from] GptError),
    #[error(transparent)]
    Disk(#[from] AssembleError),
    #[error("no partition {number} on the disk, it has {found}")]
    NoPartition { number: u32, found: String },
    #[error("cannot open partition {number}")]
    Window { number: u32, source: std::io::Error },
    #[error("partition {number}: cannot read the ext4 file system")]
    Ext4 { number: u32, source: ReadError },
    #[error("partition {number}: cannot read the FAT file system")]
    Fat { number: u32, source: FatError },
    #[error("partition {number}: neither ext4 nor FAT")]
    NoFileSystem { number: u32 },
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// Describes the image at `path`.
pub fn inspect(path: &Path) -> Result<Report, InspectError> {
    let image = Image::open(path)?;
    let metadata = std::fs::metadata(path).map_err(|source| InspectError::Size { path: path.to_owned(), source })?;
    let format = image.format().to_string();
    let source: Arc<dyn ReadAt> = Arc::new(image);
    let table = gpt::read(source.as_ref())?;
    let mut partitions = Vec::new();
    for partition in &table.partitions {
        let window = window(&source, partition)?;
        let (filesystem, damage) = match probe(window.as_ref()) {
            Ok(filesystem) => (filesystem, None),
            Err(damage) => (None, Some(damage)),
        };
        partitions.push(PartitionReport::new(partition, filesystem, damage));
    }
    // An image without a root partition is still an image; the report says why there is no system on it.
    let (root, arch, no_root) = match disk::open(source.clone()) {
        Ok(base) => (Some(base.root().clone()), base.arch().map(disk::Arch::name), None),
        Err(error) => (None, None, Some(error.to_string())),
    };
    let system = match &root {
        Some(root) => Some(system::read(&read_partition(&source, root, Some(&system::WANTS))?)?),
        None => None,
    };
    Ok(Report {
        format,
        virtual_size: source.len(),
        file_size: metadata.len(),
        allocated: metadata.blocks() * 512,
        disk_guid: table.disk_guid.to_string(),
        notes: notes(&table, no_root),
        arch,
        root: root.map(|root| root.number),
        system,
        partitions,
    })
}

/// Opens the root file system of the image at `path`; tells the number of its partition too.
pub fn open_root(path: &Path) -> Result<(Tree, u32), InspectError> {
    let source: Arc<dyn ReadAt> = Arc::new(Image::open(path)?);
    let root = disk::open(source.clone())?.root().clone();
    Ok((read_partition(&source, &root, None)?, root.number))
}

/// Opens the file tree of a partition of the image at `path`, by default that of the root file system.
pub fn open_tree(path: &Path, partition: Option<u32>) -> Result<Tree, InspectError> {
    open_part(path, partition, None)
}

/// As [`open_tree`], but only what `wants` lead to is in the tree. An ext4 file system is read no further.
pub fn open_some(path: &Path, partition: Option<u32>, wants: &[Want<'_>]) -> Result<Tree, InspectError> {
    open_part(path, partition, Some(wants))
}

fn open_part(path: &Path, number: Option<u32>, wants: Option<&[Want<'_>]>) -> Result<Tree, InspectError> {
    let source: Arc<dyn ReadAt> = Arc::new(Image::open(path)?);
    let partition = match number {
        None => disk::open(source.clone())?.root().clone(),
        Some(number) => {
            let table = gpt::read(source.as_ref())?;
            let missing = || InspectError::NoPartition { number, found: numbers(&table) };
            table.partition(number).cloned().ok_or_else(missing)?
        }
    };
    read_partition(&source, &partition, wants)
}

/// Opens the file tree of a partition: all of it, or of an ext4 file system what `wants` lead to.
pub(crate) fn read_partition(
    source: &Arc<dyn ReadAt>,
    partition: &Partition,
    wants: Option<&[Want<'_>]>,
) -> Result<Tree, InspectError> {
    let number = partition.number;
    let window = window(source, partition)?;
    let origin = Origin { layer: "base".to_owned(), ..Origin::default() };
    let found = match wants {
        None => ext4::read(window.clone(), origin.clone()),
        Some(wants) => ext4::read_some(window.clone(), origin.clone(), wants),
    };
    match found {
        Ok((_, tree)) => return Ok(tree),
        Err(ReadError::NotExt4 { .. }) => {}
        Err(source) => return Err(InspectError::Ext4 { number, source }),
    }
    match fat::read(window, origin) {
        Err(FatError::NotFat { .. }) => Err(InspectError::NoFileSystem { number }),
        other => other.map_err(|source| InspectError::Fat { number, source }),
    }
}

fn window(source: &Arc<dyn ReadAt>, partition: &Partition) -> Result<Arc<dyn ReadAt>, InspectError> {
    let window = Window::new(source.clone(), partition.start..partition.end());
    let window = window.map_err(|source| InspectError::Window { number: partition.number, source })?;
    Ok(Arc::new(window))
}

/// The file system of a partition, if it has one; an error is the reason why it cannot be read.
fn probe(window: &dyn ReadAt) -> Result<Option<FileSystemReport>, String> {
    match ext4::probe(window) {
        Ok(found) => return Ok(Some(FileSystemReport::of_ext4(&found))),
        Err(ReadError::NotExt4 { .. }) => {}
        Err(error) => return Err(error.to_string()),
    }
    match fat::probe(window) {
        Ok(found) => Ok(Some(FileSystemReport::of_fat(&found))),
        Err(FatError::NotFat { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn notes(table: &Table, no_root: Option<String>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(table.used_backup.as_ref().map(|why| format!("backup partition table used: {why}")));
    notes.extend(table.backup_damage.as_ref().map(|why| format!("backup partition table unusable: {why}")));
    notes.extend(table.mbr.hybrid.then(|| "hybrid MBR".to_owned()));
    notes.extend(no_root);
    notes
}

fn numbers(table: &Table) -> String {
    let numbers: Vec<String> = table.partitions.iter().map(|partition| partition.number.to_string()).collect();
    if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") }
}
