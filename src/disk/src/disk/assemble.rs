//! A base disk and a new root file system enter; a disk of the wanted size leaves.
//!
//! Everything but the root partition and the partition table is a range of the base and never decoded: boot code of
//! the MBR, BIOS boot partition, EFI system partition, any others, each at its place. What stands in no partition
//! is not carried over: a boot loader in such a gap (U-Boot, GRUB without a BIOS boot partition) would be lost. The root
//! partition must be the last on the disk; it takes all that is left.

use std::io;
use std::sync::Arc;

use crate::disk::Disk;
use crate::gpt::{self, GptError, Guid, Partition, Table};
use crate::source::{Extent, Map, ReadAt, Sources, Window};

/// Partition ends are multiples of this, as partition tools make them.
const ALIGN: u64 = 1 << 20;

/// Why a base disk was not accepted, or no disk could be made of it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum AssembleError {
    #[error(transparent)]
    Gpt(#[from] GptError),
    #[error("no partition {number} on the disk")]
    NoPartition { number: u32 },
    #[error("cannot open partition {number}")]
    Window { number: u32, source: io::Error },
    #[error("no root partition: none has the type of a root, and {found} instead of 1 have the type Linux filesystem")]
    NoRoot { found: usize },
    #[error("refused: partitions {a} and {b} both have the type of a root file system")]
    TwoRoots { a: u32, b: u32 },
    #[error(
        "refused: partition {other} stands behind the root partition {root}, which has to be the last to be resized"
    )]
    RootNotLast { root: u32, other: u32 },
    #[error("refused: a disk of {len} bytes is too small, at least {min} are needed")]
    DiskTooSmall { len: u64, min: u64 },
    #[error("refused: a disk of {len} bytes is not made of whole sectors of 512 bytes")]
    DiskUnaligned { len: u64 },
    #[error("refused: the root file system has {len} bytes, the root partition {room}")]
    RootTooLarge { len: u64, room: u64 },
}

/// Which processor a disk was made for, as told by the type of its root partition.
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
}

/// A disk with a checked partition table on which the root partition has been found.
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

    /// The partition that holds the root file system.
    pub fn root(&self) -> &Partition {
        &self.root
    }

    /// The EFI system partition, where there is one.
    pub fn esp(&self) -> Option<&Partition> {
        self.of_type(Guid::ESP)
    }

    /// The partition with GRUB's core image, where there is one.
    pub fn bios_boot(&self) -> Option<&Partition> {
        self.of_type(Guid::BIOS_BOOT)
    }

    /// The architecture, where the root partition's type tells.
    pub fn arch(&self) -> Option<Arch> {
        self.arch
    }

    /// The bytes of one partition.
    pub fn partition_source(&self, number: u32) -> Result<Arc<dyn ReadAt>, AssembleError> {
        let partition = self.table.partition(number).ok_or(AssembleError::NoPartition { number })?;
        let window = Window::new(self.source.clone(), partition.start..partition.end());
        Ok(Arc::new(window.map_err(|source| AssembleError::Window { number, source })?))
    }

    fn of_type(&self, guid: Guid) -> Option<&Partition> {
        self.table.partitions.iter().find(|partition| partition.type_guid == guid)
    }
}

/// Reads the partition table of a disk and finds its root partition: the one with a root's type, else the only
/// one with the type Linux filesystem.
pub fn open(source: Arc<dyn ReadAt>) -> Result<BaseDisk, AssembleError> {
    let table = gpt::read(source.as_ref())?;
    let of = |wanted: &[Guid]| -> Vec<&Partition> {
        table.partitions.iter().filter(|partition| wanted.contains(&partition.type_guid)).collect()
    };
    let root = match (&of(&[Guid::ROOT_X86_64, Guid::ROOT_ARM64])[..], &of(&[Guid::LINUX])[..]) {
        ([root], _) | ([], [root]) => (*root).clone(),
        ([], others) => return Err(AssembleError::NoRoot { found: others.len() }),
        ([a, b, ..], _) => return Err(AssembleError::TwoRoots { a: a.number, b: b.number }),
    };
    let arch = match root.type_guid {
        Guid::ROOT_X86_64 => Some(Arch::Amd64),
        Guid::ROOT_ARM64 => Some(Arch::Arm64),
        _ => None,
    };
    Ok(BaseDisk { source, table, root, arch })
}

/// Length of the root partition on a disk of `disk_len` bytes: up to the backup table, its end aligned to 1 MiB.
pub fn root_len(base: &BaseDisk, disk_len: u64) -> Result<u64, AssembleError> {
    let root = &base.root;
    if let Some(other) = base.table.partitions.iter().find(|other| other.start > root.start) {
        return Err(AssembleError::RootNotLast { root: root.number, other: other.number });
    }
    let tail = gpt::reserved_tail(&base.table);
    let end = disk_len.saturating_sub(tail) / ALIGN * ALIGN;
    if end <= root.start {
        let min = (root.start + 1).next_multiple_of(ALIGN) + tail;
        return Err(AssembleError::DiskTooSmall { len: disk_len, min });
    }
    Ok(end - root.start)
}

/// Makes a disk of `disk_len` bytes: the base's with its root partition resized and filled with `root`, whose extents
/// refer to `root_sources`. Partition numbers, GUIDs, types, names and attributes stay.
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
    let mut carried: Vec<&Partition> = table.partitions.iter().filter(|p| p.number != base.root.number).collect();
    carried.sort_by_key(|partition| partition.start);
    for partition in carried {
        map.push(Extent { at: partition.start, len: partition.len, source: disk, offset: partition.start });
    }
    for extent in root.extents() {
        map.push(Extent { at: base.root.start + extent.at, ..*extent });
    }
    map.push(Extent { at: disk_len - tail_len, len: tail_len, source: metadata, offset: head_len });
    Ok(Disk::new(map, sources))
}
