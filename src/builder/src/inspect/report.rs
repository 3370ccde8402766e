//! The report: what `--json` prints as it stands, and its rendering for people.

use std::fmt;

use serde::Serialize;
use vmbake_disk::ext4::FileSystem;
use vmbake_disk::fat::FatInfo;
use vmbake_disk::gpt::Partition;

/// What an image is. Sizes and places are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `raw` or `qcow2`.
    pub format: String,
    /// Length of the disk.
    pub virtual_size: u64,
    /// Length of the file.
    pub file_size: u64,
    /// What the file takes on the host, without its holes.
    pub allocated: u64,
    /// GUID of the disk.
    pub disk_guid: String,
    /// What is wrong with the disk and did not stop the inspection.
    pub notes: Vec<String>,
    /// Architecture, where the root partition's type tells.
    pub arch: Option<&'static str>,
    /// Number of the root partition.
    pub root: Option<u32>,
    /// What the root file system holds.
    pub system: Option<System>,
    /// All partitions by number.
    pub partitions: Vec<PartitionReport>,
}

/// The operating system on an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct System {
    /// `PRETTY_NAME` of os-release.
    pub pretty_name: Option<String>,
    /// `IMAGE_ID` of os-release.
    pub image_id: Option<String>,
    /// `IMAGE_VERSION` of os-release.
    pub image_version: Option<String>,
    /// Versions of the kernels in `/boot`.
    pub kernels: Vec<String>,
    /// Kernel command line of GRUB's first menu entry.
    pub command_line: Option<String>,
}

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionReport {
    /// Its number.
    pub number: u32,
    /// Its label (PARTLABEL).
    pub name: String,
    /// What its type is called, where that is known.
    pub type_name: Option<&'static str>,
    /// Its type.
    pub type_guid: String,
    /// Its own GUID (PARTUUID).
    pub guid: String,
    /// First byte.
    pub start: u64,
    /// Length.
    pub size: u64,
    /// What it holds, where that is a file system we know.
    pub filesystem: Option<FileSystemReport>,
    /// Why its file system cannot be read, where it looks like one.
    pub damage: Option<String>,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSystemReport {
    /// `ext4`, `FAT12`, `FAT16` or `FAT32`.
    pub kind: &'static str,
    /// Label, empty where there is none.
    pub label: String,
    /// UUID, or serial number of FAT.
    pub uuid: String,
    /// Bytes of a block or cluster.
    pub block_size: u64,
    /// Blocks or clusters.
    pub blocks: u64,
    /// Those that hold nothing.
    pub free_blocks: u64,
    /// Inodes, where the file system has such.
    pub inodes: Option<Inodes>,
}

/// Inodes of a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inodes {
    /// All there are.
    pub total: u32,
    /// Those that hold nothing.
    pub free: u32,
}

impl PartitionReport {
    pub(super) fn new(partition: &Partition, filesystem: Option<FileSystemReport>, damage: Option<String>) -> Self {
        Self {
            number: partition.number,
            name: partition.name.clone(),
            type_name: partition.type_guid.type_name(),
            type_guid: partition.type_guid.to_string(),
            guid: partition.guid.to_string(),
            start: partition.start,
            size: partition.len,
            filesystem,
            damage,
        }
    }
}

impl FileSystemReport {
    pub(super) fn of_ext4(found: &FileSystem) -> Self {
        Self {
            kind: "ext4",
            label: String::from_utf8_lossy(&found.label).into_owned(),
            uuid: uuid(&found.uuid),
            block_size: found.block_size,
            blocks: found.blocks,
            free_blocks: found.free_blocks,
            inodes: Some(Inodes { total: found.inodes, free: found.free_inodes }),
        }
    }

    pub(super) fn of_fat(found: &FatInfo) -> Self {
        Self {
            kind: found.kind,
            label: found.label.clone(),
            uuid: format!("{:04X}-{:04X}", found.volume_id >> 16, found.volume_id & 0xFFFF),
            block_size: found.cluster_size.into(),
            blocks: found.clusters.into(),
            free_blocks: found.free_clusters.into(),
            inodes: None,
        }
    }
}

/// The 16 bytes in the order and grouping in which `blkid` shows them.
fn uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "format        {}", self.format)?;
        writeln!(f, "virtual size  {} ({} bytes)", Size(self.virtual_size), self.virtual_size)?;
        writeln!(f, "file size     {} ({} on disk)", Size(self.file_size), Size(self.allocated))?;
        writeln!(f, "architecture  {}", self.arch.unwrap_or("unknown"))?;
        if let Some(system) = &self.system {
            write!(f, "{system}")?;
        }
        for note in &self.notes {
            writeln!(f, "note          {note}")?;
        }
        writeln!(f, "disk GUID     {}", self.disk_guid)?;
        self.partitions.iter().try_for_each(|partition| write!(f, "{partition}"))
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = || "none".to_owned();
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(none);
        writeln!(f, "system        {}", or_none(&self.pretty_name))?;
        writeln!(f, "image id      {}", or_none(&self.image_id))?;
        writeln!(f, "image version {}", or_none(&self.image_version))?;
        let kernels = (!self.kernels.is_empty()).then(|| self.kernels.join(", "));
        writeln!(f, "kernel        {}", kernels.unwrap_or_else(none))?;
        writeln!(f, "command line  {}", or_none(&self.command_line))
    }
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.type_name.unwrap_or(&self.type_guid);
        write!(f, "partition {:<3} {kind}, {} at {}", self.number, Size(self.size), Size(self.start))?;
        if !self.name.is_empty() {
            write!(f, ", name {:?}", self.name)?;
        }
        writeln!(f, ", GUID {}", self.guid)?;
        if let Some(damage) = &self.damage {
            writeln!(f, "              unreadable: {damage}")?;
        }
        let Some(filesystem) = &self.filesystem else { return Ok(()) };
        let used = filesystem.blocks.saturating_sub(filesystem.free_blocks);
        let bytes = |blocks: u64| Size(blocks.saturating_mul(filesystem.block_size));
        write!(f, "              {}, {} of {} used", filesystem.kind, bytes(used), bytes(filesystem.blocks))?;
        if let Some(inodes) = &filesystem.inodes {
            write!(f, ", {} of {} inodes", inodes.total.saturating_sub(inodes.free), inodes.total)?;
        }
        if !filesystem.label.is_empty() {
            write!(f, ", label {:?}", filesystem.label)?;
        }
        writeln!(f, ", UUID {}", filesystem.uuid)
    }
}

/// Bytes in the largest binary unit that leaves at least one, with one decimal.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => {
                let tenth = (self.0 % unit) * 10 / unit;
                write!(f, "{}.{tenth} {name}", self.0 / unit)
            }
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_uuids_are_shown() {
        let shown = [0, 1023, 1024, 1536, 3 << 30, u64::MAX].map(|len| Size(len).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "3.0 GiB", "16777215.9 TiB"]);
        assert_eq!(uuid(&[0xAB; 16]), "abababab-abab-abab-abab-abababababab");
    }
}
