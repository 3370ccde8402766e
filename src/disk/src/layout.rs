//! The partitions of a disk with any partition table: its [`Layout`] finds the root partition and opens partitions.
//!
//! A GUID partition table takes precedence over an MBR; a disk that has neither but starts with a file system is that
//! file system, as partition 0.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::ext4::{self, Depth, Want};
use crate::fat;
use crate::gpt::{self, GptError, Guid};
use crate::mbr::{self, OsType};
use crate::signature::{self, Signature};
use crate::source::{ReadAt, Window};
use crate::tree::Origin;

/// The number of a file system that covers the whole disk.
pub const WHOLE: u32 = 0;

/// Maximum number of partitions to describe in a message, and to search for a system.
const MAX_LISTED: usize = 16;

/// Why the partitions of a disk, or its root partition, cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    #[error("cannot read the first sector of the disk")]
    Read { source: io::Error },
    #[error(transparent)]
    Gpt(#[from] GptError),
    #[error("neither a partition table nor a known file system")]
    Nothing,
    #[error("no partition {number} on the disk, it has {found}")]
    NoPartition { number: u32, found: String },
    #[error("partition {number} is not inside the disk")]
    Outside { number: u32 },
    #[error("no root partition: none has the type of a root or of a Linux file system; the disk has {found}")]
    NoRoot { found: String },
    #[error("several partitions can be the root file system: {candidates}")]
    SeveralRoots { candidates: String },
}

/// The partitioning of a disk.
#[derive(Clone, Debug)]
pub enum Scheme {
    /// A GUID partition table.
    Gpt(Box<gpt::Table>),
    Mbr(mbr::Table),
    /// None: a file system on the whole disk.
    Whole(Signature),
}

/// A partition. Offset and length are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number; [`WHOLE`] without a table.
    pub number: u32,
    /// Its type in the table.
    pub kind: PartKind,
    /// Its PARTUUID, empty without a table.
    pub uuid: String,
    /// Offset of the first byte.
    pub start: u64,
    pub len: u64,
    /// Label (PARTLABEL), may be empty.
    pub name: String,
}

/// The type of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Of a GUID partition table.
    Gpt(Guid),
    Mbr(OsType),
    /// Without a table.
    Whole,
}

impl PartKind {
    /// The name of the type, if known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Gpt(guid) => guid.type_name(),
            Self::Mbr(os_type) => os_type.name(),
            Self::Whole => Some("whole disk"),
        }
    }

    /// Whether it is an extended partition.
    pub fn is_extended(self) -> bool {
        matches!(self, Self::Mbr(os_type) if os_type.is_extended())
    }

    fn is_root(self) -> bool {
        matches!(self, Self::Gpt(Guid::ROOT_X86_64 | Guid::ROOT_ARM64) | Self::Whole)
    }

    fn is_linux(self) -> bool {
        matches!(self, Self::Gpt(Guid::LINUX) | Self::Mbr(OsType::LINUX))
    }
}

/// The partitions of a disk.
#[derive(Clone)]
pub struct Layout {
    source: Arc<dyn ReadAt>,
    scheme: Scheme,
    parts: Vec<Part>,
}

impl Layout {
    /// Reads the partition table of a disk, if it has one.
    pub fn read(source: Arc<dyn ReadAt>) -> Result<Self, LayoutError> {
        let scheme = match gpt::read(&*source) {
            Ok(table) => Scheme::Gpt(Box::new(table)),
            // A file that is shorter than a sector.
            Err(GptError::NoProtectiveMbr | GptError::Read { lba: 0, .. }) => without_gpt(&*source)?,
            Err(error) => return Err(error.into()),
        };
        let parts = match &scheme {
            Scheme::Gpt(table) => table.partitions.iter().map(Part::of_gpt).collect(),
            Scheme::Mbr(table) => table.partitions.iter().map(|found| Part::of_mbr(table.signature, found)).collect(),
            Scheme::Whole(_) => vec![Part::whole(source.len())],
        };
        Ok(Self { source, scheme, parts })
    }

    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// All partitions by number.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn source(&self) -> &Arc<dyn ReadAt> {
        &self.source
    }

    pub fn part(&self, number: u32) -> Result<&Part, LayoutError> {
        let missing = || LayoutError::NoPartition { number, found: self.numbers() };
        self.parts.iter().find(|part| part.number == number).ok_or_else(missing)
    }

    /// The contents of a partition.
    pub fn open(&self, part: &Part) -> Result<Arc<dyn ReadAt>, LayoutError> {
        let end = part.start.saturating_add(part.len);
        let window = Window::new(self.source.clone(), part.start..end);
        Ok(Arc::new(window.map_err(|_| LayoutError::Outside { number: part.number })?))
    }

    /// The partition of the root file system: the `chosen` number; otherwise the one with a root's type; otherwise the
    /// one with the type of any Linux file system; among several, at most 16, the only one with an operating system.
    pub fn root(&self, chosen: Option<u32>) -> Result<&Part, LayoutError> {
        if let Some(number) = chosen {
            return self.part(number);
        }
        let with_type = |wanted: fn(PartKind) -> bool| -> Vec<&Part> {
            self.parts.iter().filter(|part| wanted(part.kind)).collect()
        };
        let mut found = with_type(PartKind::is_root);
        if found.is_empty() {
            found = with_type(PartKind::is_linux);
        }
        match &found[..] {
            [] => return Err(LayoutError::NoRoot { found: self.list(&self.parts.iter().collect::<Vec<_>>()) }),
            [one] => return Ok(one),
            _ => {}
        }
        // Partitions of an MBR may overlap: a hostile disk may list one file system a hundred times.
        let looked_at = if found.len() > MAX_LISTED { &[] } else { &found[..] };
        let systems: Vec<&Part> = looked_at.iter().copied().filter(|part| self.has_system(part)).collect();
        match &systems[..] {
            [one] => Ok(one),
            _ => Err(LayoutError::SeveralRoots { candidates: self.list(&found) }),
        }
    }

    /// Whether an ext4 file system contains an operating system (os-release(5)).
    fn has_system(&self, part: &Part) -> bool {
        let paths: [&[u8]; 2] = [b"/etc/os-release", b"/usr/lib/os-release"];
        let Ok(source) = self.open(part) else { return false };
        let wants = paths.map(|path| Want { path, depth: Depth::Node });
        let read = ext4::read_some(source, Origin::default(), &wants);
        read.is_ok_and(|(_, tree)| paths.iter().any(|path| tree.resolve(path).is_ok()))
    }

    fn numbers(&self) -> String {
        let numbers: Vec<String> = self.parts.iter().map(|part| part.number.to_string()).collect();
        if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") }
    }

    /// A list of partitions for messages: number, label, length and content.
    fn list(&self, parts: &[&Part]) -> String {
        let one = |part: &&Part| {
            let found = self.open(part).ok().and_then(|source| signature::probe(&*source));
            let holds = found.as_ref().map_or("no known file system", |found| found.name);
            let label = found.as_ref().map(|found| found.label.as_str()).filter(|label| !label.is_empty());
            let label = label.map(|label| format!(" labelled {label:?}")).unwrap_or_default();
            let name = if part.name.is_empty() { String::new() } else { format!("{:?}, ", part.name) };
            format!("{} ({name}{}, {holds}{label})", part.number, Size(part.len))
        };
        let mut shown: Vec<String> = parts.iter().take(MAX_LISTED).map(one).collect();
        if parts.len() > MAX_LISTED {
            shown.push(format!("and {} more", parts.len() - MAX_LISTED));
        }
        if shown.is_empty() { "no partition".to_owned() } else { shown.join(", ") }
    }
}

/// A disk without a GUID partition table.
fn without_gpt(source: &dyn ReadAt) -> Result<Scheme, LayoutError> {
    // The boot sector of a FAT file system may look like an MBR, and need not identify itself as FAT.
    let fat = fat::probe(source).ok();
    if fat.is_none() && source.len() >= gpt::SECTOR {
        let table = mbr::read(source).map_err(|source| LayoutError::Read { source })?;
        if let Some(table) = table {
            return Ok(Scheme::Mbr(table));
        }
    }
    let found = signature::probe(source).or_else(|| Some(Signature::of_fat(fat?.kind)));
    found.map(Scheme::Whole).ok_or(LayoutError::Nothing)
}

impl Part {
    fn of_gpt(found: &gpt::Partition) -> Self {
        Self {
            number: found.number,
            kind: PartKind::Gpt(found.type_guid),
            uuid: found.guid.to_string(),
            start: found.start,
            len: found.len,
            name: found.name.clone(),
        }
    }

    fn of_mbr(signature: u32, found: &mbr::Partition) -> Self {
        Self {
            number: found.number,
            kind: PartKind::Mbr(found.os_type),
            uuid: format!("{signature:08x}-{:02x}", found.number),
            start: found.start,
            len: found.len,
            name: String::new(),
        }
    }

    fn whole(len: u64) -> Self {
        Self { number: WHOLE, kind: PartKind::Whole, uuid: String::new(), start: 0, len, name: String::new() }
    }
}

/// Bytes in the largest binary unit with a value of at least one, with one decimal.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub u64);

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
    use super::Size;

    #[test]
    fn sizes_are_shown() {
        let shown = [0, 1023, 1024, 1536, 3 << 30, u64::MAX].map(|len| Size(len).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "3.0 GiB", "16777215.9 TiB"]);
    }
}
