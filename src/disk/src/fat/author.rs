//! Writes a FAT16 volume with a few files, such as an EFI system partition (Microsoft's FAT specification, sections 3 to 6).
//!
//! Directories and files have consecutive clusters. All names are short ones, whose base and extension are each of one case: there are no
//! entries for long names. All times are that of FAT's epoch, 1980.

use std::collections::BTreeMap;

const SECTOR: usize = 512;
/// As mkfs.vfat(8) chooses it for FAT16 volumes of up to 128 MiB.
const CLUSTER: usize = 2048;
const SECTORS_PER_CLUSTER: usize = CLUSTER / SECTOR;
/// Sectors before the file allocation tables.
const RESERVED: usize = 1;
const TABLES: usize = 2;
/// Entries of the root directory.
const ROOT_ENTRIES: usize = 512;
const ENTRY: usize = 32;
/// Numbers of clusters that make a volume FAT16.
const CLUSTERS: std::ops::Range<usize> = 4085..65525;
const MEDIA: u8 = 0xF8;
const DIRECTORY: u8 = 0x10;
const ARCHIVE: u8 = 0x20;
/// In byte 12 of an entry: name, extension in lower case.
const LOWER_NAME: u8 = 0x08;
const LOWER_EXTENSION: u8 = 0x10;
/// 1980-01-01.
const DATE: u16 = 1 << 5 | 1;
const END_OF_CHAIN: u16 = 0xFFFF;

/// Why a volume was not written.
#[derive(Debug, thiserror::Error)]
pub enum AuthorError {
    #[error("a FAT16 volume of {len} bytes: expected {} to {} clusters of {CLUSTER} bytes, found {clusters}", CLUSTERS.start, CLUSTERS.end - 1)]
    Len { len: u64, clusters: usize },
    #[error("{path}: expected a name of 8 and an extension of 3 letters and digits, each of one case")]
    Name { path: String },
    #[error("{path}: there is a file of this name already")]
    Twice { path: String },
    #[error("the files need {needed} clusters, but the volume has {clusters}")]
    Full { needed: usize, clusters: usize },
}

/// A directory by its names, in upper case; or a file by its content.
enum Node<'a> {
    Directory(BTreeMap<[u8; 11], (u8, Node<'a>)>),
    File(&'a [u8]),
}

/// A volume of `len` bytes with `files` by path, such as `EFI/BOOT/BOOTX64.EFI`, without the zeros at its end.
pub fn author(len: u64, volume_id: u32, files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, AuthorError> {
    let mut root = BTreeMap::new();
    for (path, content) in files {
        add(&mut root, path, path, content)?;
    }
    let sectors = usize::try_from(len).unwrap_or(usize::MAX) / SECTOR;
    let geometry = Geometry::of(sectors).ok_or(AuthorError::Len { len, clusters: sectors / SECTORS_PER_CLUSTER })?;
    if root.len() > ROOT_ENTRIES {
        return Err(AuthorError::Full { needed: root.len(), clusters: ROOT_ENTRIES });
    }
    let mut clusters = Clusters::default();
    let entries = clusters.write(root, None);
    let used = clusters.table.len();
    if used > geometry.clusters {
        return Err(AuthorError::Full { needed: used, clusters: geometry.clusters });
    }
    let mut volume = boot_sector(&geometry, sectors, volume_id);
    for _ in 0..TABLES {
        let start = volume.len();
        let first = [0xFF00 | u16::from(MEDIA), END_OF_CHAIN];
        volume.extend(first.iter().chain(&clusters.table).flat_map(|entry| entry.to_le_bytes()));
        volume.resize(start + geometry.table_sectors * SECTOR, 0);
    }
    let start = volume.len();
    volume.extend(entries);
    volume.resize(start + ROOT_ENTRIES * ENTRY, 0);
    volume.extend(clusters.data);
    Ok(volume)
}

/// Adds a file below a directory; `rest` is the part of `path` from there.
fn add<'a>(
    directory: &mut BTreeMap<[u8; 11], (u8, Node<'a>)>,
    path: &str,
    rest: &str,
    content: &'a [u8],
) -> Result<(), AuthorError> {
    let invalid = || AuthorError::Name { path: path.to_owned() };
    let twice = || AuthorError::Twice { path: path.to_owned() };
    let (name, below) = rest.split_once('/').map_or((rest, None), |(name, below)| (name, Some(below)));
    let (short, case) = short_name(name).ok_or_else(invalid)?;
    let Some(below) = below else {
        let before = directory.insert(short, (case, Node::File(content)));
        return before.map_or(Ok(()), |_| Err(twice()));
    };
    match directory.entry(short).or_insert_with(|| (case, Node::Directory(BTreeMap::new()))) {
        (_, Node::Directory(entries)) => add(entries, path, below, content),
        (_, Node::File(_)) => Err(twice()),
    }
}

/// The padded name in upper case, and the bits for lower case.
fn short_name(name: &str) -> Option<([u8; 11], u8)> {
    let (base, extension) = name.split_once('.').unwrap_or((name, ""));
    let mut short = [b' '; 11];
    let mut case = 0;
    for (part, start, len, lower) in [(base, 0, 8, LOWER_NAME), (extension, 8, 3, LOWER_EXTENSION)] {
        let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let [has_lower, has_upper] =
            [u8::is_ascii_lowercase, u8::is_ascii_uppercase].map(|is| part.as_bytes().iter().any(is));
        if part.len() > len || !is_plain || has_lower && has_upper {
            return None;
        }
        if has_lower {
            case |= lower;
        }
        short[start..start + part.len()].copy_from_slice(part.to_ascii_uppercase().as_bytes());
    }
    let is_whole = !base.is_empty() && (extension.is_empty() != name.contains('.'));
    is_whole.then_some((short, case))
}

/// Where the parts of a volume are.
struct Geometry {
    table_sectors: usize,
    clusters: usize,
}

impl Geometry {
    /// The smallest tables that describe all clusters behind them.
    fn of(sectors: usize) -> Option<Self> {
        let before = RESERVED + ROOT_ENTRIES * ENTRY / SECTOR;
        let fits = |table_sectors: usize| {
            let data = sectors.checked_sub(before + TABLES * table_sectors)?;
            let clusters = data / SECTORS_PER_CLUSTER;
            ((clusters + 2) * 2 <= table_sectors * SECTOR).then_some(Self { table_sectors, clusters })
        };
        let found = (1..=256).find_map(fits)?;
        CLUSTERS.contains(&found.clusters).then_some(found)
    }
}

/// The clusters that are in use, from cluster 2 on: their entries in the table, and their content.
#[derive(Default)]
struct Clusters {
    table: Vec<u16>,
    data: Vec<u8>,
}

impl Clusters {
    /// Writes what is below a directory, and returns its entries. `own` is its first cluster and that of its parent, unless it is the root.
    fn write(&mut self, nodes: BTreeMap<[u8; 11], (u8, Node<'_>)>, own: Option<(u16, u16)>) -> Vec<u8> {
        let mut entries = Vec::new();
        if let Some((own, parent)) = own {
            entries.extend(entry(*b".          ", 0, DIRECTORY, own, 0));
            entries.extend(entry(*b"..         ", 0, DIRECTORY, parent, 0));
        }
        for (name, (case, node)) in nodes {
            match node {
                Node::File(content) => {
                    let first = self.allocate(content.len());
                    self.fill(first, content);
                    let len = u32::try_from(content.len()).unwrap_or(u32::MAX);
                    entries.extend(entry(name, case, ARCHIVE, first, len));
                }
                Node::Directory(below) => {
                    let first = self.allocate((below.len() + 2) * ENTRY);
                    let parent = own.map_or(0, |(own, _)| own);
                    let content = self.write(below, Some((first, parent)));
                    self.fill(first, &content);
                    entries.extend(entry(name, case, DIRECTORY, first, 0));
                }
            }
        }
        entries
    }

    /// The first of the clusters for `len` bytes; 0 for none.
    fn allocate(&mut self, len: usize) -> u16 {
        let count = len.div_ceil(CLUSTER);
        let first = self.table.len() + 2;
        let number = |index: usize| u16::try_from(first + index).unwrap_or(END_OF_CHAIN);
        self.table.extend((1..=count).map(|index| if index == count { END_OF_CHAIN } else { number(index) }));
        self.data.resize(self.table.len() * CLUSTER, 0);
        if count == 0 { 0 } else { number(0) }
    }

    fn fill(&mut self, first: u16, content: &[u8]) {
        let start = usize::from(first).saturating_sub(2) * CLUSTER;
        if let Some(slot) = self.data.get_mut(start..start + content.len()) {
            slot.copy_from_slice(content);
        }
    }
}

fn entry(name: [u8; 11], case: u8, attributes: u8, first: u16, len: u32) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    entry[..11].copy_from_slice(&name);
    (entry[11], entry[12]) = (attributes, case);
    for date in [16, 18, 24] {
        entry[date..date + 2].copy_from_slice(&DATE.to_le_bytes());
    }
    entry[26..28].copy_from_slice(&first.to_le_bytes());
    entry[28..].copy_from_slice(&len.to_le_bytes());
    entry
}

fn boot_sector(geometry: &Geometry, sectors: usize, volume_id: u32) -> Vec<u8> {
    let word = |number: usize| u16::try_from(number).unwrap_or_default().to_le_bytes();
    let (short, long) = (word(sectors), u32::try_from(sectors).unwrap_or(u32::MAX).to_le_bytes());
    let long = if short == [0, 0] { long } else { [0; 4] };
    let parts: [&[u8]; 20] = [
        &[0xEB, 0x3C, 0x90],
        b"vmbake  ",
        &word(SECTOR),
        &[u8::try_from(SECTORS_PER_CLUSTER).unwrap_or_default()],
        &word(RESERVED),
        &[u8::try_from(TABLES).unwrap_or_default()],
        &word(ROOT_ENTRIES),
        &short,
        &[MEDIA],
        &word(geometry.table_sectors),
        // Sectors of a track and heads, which have no meaning any more, and sectors before the volume.
        &word(63),
        &word(255),
        &[0; 4],
        &long,
        // Drive, and the mark of the next three fields.
        &[0x80, 0, 0x29],
        &volume_id.to_le_bytes(),
        b"NO NAME    ",
        b"FAT16   ",
        &[0; 448],
        &[0x55, 0xAA],
    ];
    parts.concat()
}
