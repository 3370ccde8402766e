//! The report: serialized for `--json`, and formatted as text.

use std::fmt;

use vmbake_common::escape;

use serde::Serialize;
use vmbake_disk::layout::{Part, PartKind, Size};

use crate::filesystem::FileSystemReport;

/// The description of an image. Sizes and offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `raw` or `qcow2`.
    pub format: String,
    pub virtual_size: u64,
    pub file_size: u64,
    /// Bytes allocated on the host, without holes.
    pub allocated: u64,
    /// `gpt`, `mbr`, or `none` if one file system covers the whole disk.
    pub table: &'static str,
    /// Sector size of the partition table.
    pub sector_size: u64,
    pub disk_guid: Option<String>,
    /// Disk signature in an MBR.
    pub disk_signature: Option<String>,
    /// Problems that did not stop the inspection.
    pub notes: Vec<String>,
    /// Architecture, if the root partition's type states it.
    pub arch: Option<&'static str>,
    /// Number of the root partition.
    pub root: Option<u32>,
    /// The operating system in the root file system.
    pub system: Option<InstalledSystem>,
    /// All partitions by number.
    pub partitions: Vec<PartitionReport>,
}

/// The operating system in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InstalledSystem {
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartitionReport {
    /// Its number; 0 without a partition table.
    pub number: u32,
    /// Its label (PARTLABEL).
    pub name: String,
    /// The name of its type, if known.
    pub type_name: Option<&'static str>,
    /// Its type in a GUID partition table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_guid: Option<String>,
    /// Its type in an MBR.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_id: Option<String>,
    /// Its GUID, or the equivalent on a disk with an MBR (PARTUUID); empty without a partition table.
    pub guid: String,
    /// Offset of the first byte.
    pub start: u64,
    pub size: u64,
    /// Its content, if known.
    pub filesystem: Option<FileSystemReport>,
    /// Why its content was not read.
    pub unread: Option<String>,
}

impl PartitionReport {
    pub(super) fn new(part: &Part, filesystem: Option<FileSystemReport>, unread: Option<String>) -> Self {
        let (type_guid, type_id) = match part.kind {
            PartKind::Gpt(guid) => (Some(guid.to_string()), None),
            PartKind::Mbr(os_type) => (None, Some(format!("{:02x}", os_type.0))),
            PartKind::Whole => (None, None),
        };
        Self {
            number: part.number,
            name: part.name.clone(),
            type_name: part.kind.name(),
            type_guid,
            type_id,
            guid: part.uuid.clone(),
            start: part.start,
            size: part.len,
            filesystem,
            unread,
        }
    }
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
            writeln!(f, "note          {}", escape::line(note))?;
        }
        match (&self.disk_guid, &self.disk_signature) {
            (Some(guid), _) => writeln!(f, "disk GUID     {guid}")?,
            (None, Some(signature)) => writeln!(f, "disk id       {signature}, MBR partition table")?,
            (None, None) => writeln!(f, "partitions    none: one file system on the whole disk")?,
        }
        if self.sector_size != 512 {
            writeln!(f, "sectors       of {} bytes", self.sector_size)?;
        }
        self.partitions.iter().try_for_each(|partition| write!(f, "{partition}"))
    }
}

impl fmt::Display for InstalledSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = || "none".to_owned();
        let or_none = |value: &Option<String>| value.as_ref().map_or_else(none, escape::line);
        writeln!(f, "system        {}", or_none(&self.pretty_name))?;
        writeln!(f, "image id      {}", or_none(&self.image_id))?;
        writeln!(f, "image version {}", or_none(&self.image_version))?;
        let kernels = (!self.kernels.is_empty()).then(|| escape::line(self.kernels.join(", ")));
        writeln!(f, "kernel        {}", kernels.unwrap_or_else(none))?;
        writeln!(f, "command line  {}", or_none(&self.command_line))
    }
}

impl fmt::Display for PartitionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.type_guid.as_deref().or(self.type_id.as_deref()).unwrap_or_default();
        let kind = self.type_name.unwrap_or(id);
        write!(f, "partition {:<3} {kind}, {} at {}", self.number, Size(self.size), Size(self.start))?;
        if !self.name.is_empty() {
            write!(f, ", name {:?}", self.name)?;
        }
        match (self.guid.is_empty(), self.type_id.is_some()) {
            (true, _) => writeln!(f)?,
            (false, false) => writeln!(f, ", GUID {}", self.guid)?,
            (false, true) => writeln!(f, ", id {}", self.guid)?,
        }
        if let Some(filesystem) = &self.filesystem {
            writeln!(f, "              {filesystem}")?;
        }
        if let Some(reason) = &self.unread {
            writeln!(f, "              not read: {}", escape::line(reason))?;
        }
        Ok(())
    }
}
