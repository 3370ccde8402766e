//! Assembles a disk of the requested size from a base disk and a new root file system.
//!
//! Everything but the root partition and the partition table is copied unchanged from the base: boot code of the MBR,
//! BIOS boot partition, EFI system partition, any others, at their offsets. Data outside of partitions are not copied:
//! a boot loader in such a gap (U-Boot, GRUB without a BIOS boot partition) would be lost. If the root partition is the
//! last on the disk, it is extended to the end. Otherwise it keeps its length, and the disk its size.

use std::io;
use std::sync::Arc;

use crate::disk::Disk;
use crate::gpt::{self, GptError, Guid, Partition, Table};
use crate::layout::{Layout, LayoutError, PartKind, Scheme, Size};
use crate::source::{Extent, Map, ReadAt, Sources, Window};

/// Alignment of partition ends, as in partition tools.
const ALIGN: u64 = 1 << 20;

/// Why a base disk was not accepted, or a disk could not be assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Gpt(#[from] GptError),
    #[error("no partition {number} on the disk")]
    NoPartition { number: u32 },
    #[error("cannot open partition {number}")]
    Window { number: u32, source: io::Error },
    #[error("refused: an MBR partition table; a base requires a GUID partition table")]
    Mbr,
    #[error("refused: {name} without a partition table; a base must be a whole disk")]
    NoTable { name: &'static str },
    #[error(
        "refused: partition {other} ({kind}) follows the root partition {root}: the disk keeps the size of the \
        base, {}, and cannot be resized to {}", Size(*len), Size(*wanted)
    )]
    InTheWay {
        root: u32,
        /// Number of the following partition.
        other: u32,
        kind: String,
        /// Length of the disk in bytes.
        len: u64,
        wanted: u64,
    },
    #[error("refused: a disk of {len} bytes is too small, at least {min} are required")]
    DiskTooSmall { len: u64, min: u64 },
    #[error("refused: a disk of {len} bytes is not a multiple of sectors of 512 bytes")]
    DiskUnaligned { len: u64 },
    #[error("partition {number}: {len} bytes of content, but only {room} bytes")]
    ContentTooLarge { number: u32, len: u64, room: u64 },
    #[error("refused: the root file system has {len} bytes, but the root partition only {room}")]
    RootTooLarge { len: u64, room: u64 },
}

/// The architecture of a disk, according to the type of its root partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Arch {
    /// Debian's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// The architecture of a type of root partitions.
    pub fn of(kind: PartKind) -> Option<Self> {
        match kind {
            PartKind::Gpt(Guid::ROOT_X86_64) => Some(Self::Amd64),
            PartKind::Gpt(Guid::ROOT_ARM64) => Some(Self::Arm64),
            _ => None,
        }
    }
}

/// A disk with a validated partition table and a root partition.
#[derive(Clone)]
pub struct BaseDisk {
    source: Arc<dyn ReadAt>,
    table: Table,
    root: Partition,
    arch: Option<Arch>,
}

impl BaseDisk {
    /// The partition table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn root(&self) -> &Partition {
        &self.root
    }

    /// The EFI system partition, if any.
    pub fn esp(&self) -> Option<&Partition> {
        self.of_type(Guid::ESP)
    }

    /// The partition with GRUB's core image, if any.
    pub fn bios_boot(&self) -> Option<&Partition> {
        self.of_type(Guid::BIOS_BOOT)
    }

    /// The architecture, if the root partition's type states it.
    pub fn arch(&self) -> Option<Arch> {
        self.arch
    }

    /// Problems of the partition table that are not fatal, as sentences about the disk.
    pub fn notes(&self) -> Vec<String> {
        let Table { used_backup, backup_damage, .. } = &self.table;
        let used = used_backup.as_ref().map(|why| format!("using the backup partition table: {why}"));
        let damage = backup_damage.as_ref().map(|why| format!("the backup partition table is invalid: {why}"));
        used.into_iter().chain(damage).collect()
    }

    /// The contents of one partition.
    pub fn partition_source(&self, number: u32) -> Result<Arc<dyn ReadAt>, AssembleError> {
        let partition = self.table.partition(number).ok_or(AssembleError::NoPartition { number })?;
        let window = Window::new(self.source.clone(), partition.start..partition.end());
        Ok(Arc::new(window.map_err(|source| AssembleError::Window { number, source })?))
    }

    fn of_type(&self, guid: Guid) -> Option<&Partition> {
        self.table.partitions.iter().find(|partition| partition.type_guid == guid)
    }
}

/// Reads the partition table of a disk and finds its root partition as [`Layout::root`] does. Only tables that can be
/// written again are accepted.
pub fn open(source: Arc<dyn ReadAt>, chosen: Option<u32>) -> Result<BaseDisk, AssembleError> {
    let layout = Layout::read(source.clone())?;
    let table = match layout.scheme() {
        Scheme::Gpt(table) if table.sector != gpt::SECTOR => {
            return Err(GptError::SectorSize { found: table.sector }.into());
        }
        Scheme::Gpt(table) => Table::clone(table),
        Scheme::Mbr(_) => return Err(AssembleError::Mbr),
        Scheme::Whole(found) => return Err(AssembleError::NoTable { name: found.name }),
    };
    let number = layout.root(chosen)?.number;
    let root = table.partition(number).cloned().ok_or(AssembleError::NoPartition { number })?;
    let arch = Arch::of(PartKind::Gpt(root.type_guid));
    Ok(BaseDisk { source, table, root, arch })
}

/// Length of the root partition on a disk of `disk_len` bytes: up to the backup table, with its end aligned to 1 MiB;
/// unchanged if another partition follows.
pub fn root_len(base: &BaseDisk, disk_len: u64) -> Result<u64, AssembleError> {
    let root = &base.root;
    if let Some(other) = base.table.partitions.iter().find(|other| other.start > root.start) {
        let len = base.source.len();
        if disk_len == len {
            return Ok(root.len);
        }
        let kind = other.type_guid.type_name().map_or_else(|| other.type_guid.to_string(), str::to_owned);
        let (root, other) = (root.number, other.number);
        return Err(AssembleError::InTheWay { root, other, kind, len, wanted: disk_len });
    }
    let tail = gpt::reserved_tail(&base.table);
    let end = disk_len.saturating_sub(tail) / ALIGN * ALIGN;
    if end <= root.start {
        let min = (root.start + 1).next_multiple_of(ALIGN) + tail;
        return Err(AssembleError::DiskTooSmall { len: disk_len, min });
    }
    Ok(end - root.start)
}

/// Assembles a disk of `disk_len` bytes: the base with its root partition resized and filled with `root`, whose extents
/// refer to `root_sources`. Partition numbers, GUIDs, types, names and attributes are unchanged.
pub fn assemble(base: &BaseDisk, disk_len: u64, root: &Map, root_sources: &Sources) -> Result<Disk, AssembleError> {
    if !disk_len.is_multiple_of(gpt::SECTOR) {
        return Err(AssembleError::DiskUnaligned { len: disk_len });
    }
    let room = root_len(base, disk_len)?;
    if root.len() > room {
        return Err(AssembleError::RootTooLarge { len: root.len(), room });
    }
    let mut table = base.table.clone();
    for partition in table.partitions.iter_mut().filter(|partition| partition.number == base.root.number) {
        partition.len = room;
    }
    let (head, tail) = gpt::write(&table, disk_len)?;
    let (head_len, tail_len) = (head.len() as u64, tail.len() as u64);

    let mut sources = root_sources.clone();
    let disk = sources.add(base.source.clone());
    let metadata = sources.add(Arc::new([head, tail].concat()));
    let mut map = Map::hole(disk_len);
    map.push(Extent { at: 0, len: head_len, source: metadata, offset: 0 });
    let mut partitions: Vec<&Partition> = table.partitions.iter().collect();
    partitions.sort_by_key(|partition| partition.start);
    for Partition { number, start, len, .. } in partitions {
        if *number != base.root.number {
            map.push(Extent { at: *start, len: *len, source: disk, offset: *start });
            continue;
        }
        for extent in root.extents() {
            map.push(Extent { at: start + extent.at, ..*extent });
        }
    }
    map.push(Extent { at: disk_len - tail_len, len: tail_len, source: metadata, offset: head_len });
    Ok(Disk::new(map, sources))
}
