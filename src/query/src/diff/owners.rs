//! Maps bytes of a disk to their owners.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::image::Image;
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Kind, Tree};

use super::DiffError;
use super::cells::{CLUSTER, Cell};
use super::shares::DifferingClusters;
use vmbake_common::escape;
use vmbake_compose::origin::{Record, inside_record};
use vmbake_image::disk::{DiskImage, InspectError};
use vmbake_image::inspect::reasons;

/// Maximum number of files to list per owner.
const MAX_PATHS: usize = 5;

pub(super) struct Disk {
    path: PathBuf,
    pub(super) source: Arc<dyn ReadAt>,
    /// Ascending and disjoint; gaps belong to the partition table.
    regions: Vec<Region>,
    /// Digests of the artifacts, if the image has a record of origins.
    artifacts: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// A byte range of the disk with its owner.
struct Region {
    range: Range<u64>,
    owner: Owner,
    path: Option<Arc<str>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Table,
    Partition(u32),
    Metadata,
    Base,
    Layer(Arc<str>),
    Artifact(Arc<str>),
    File,
}

impl Disk {
    /// Opens an image. A missing root file system or record is noted; the bytes can be compared nevertheless.
    pub(super) fn open(path: &Path, root: Option<u32>) -> Result<Self, DiffError> {
        let image = |source| DiffError::Image { image: path.to_owned(), source };
        let opened = Image::open(path).map_err(|error| image(error.into()))?;
        let (format, source): (_, Arc<dyn ReadAt>) = (opened.format(), Arc::new(opened));
        let (regions, artifacts) = (Vec::new(), BTreeMap::new());
        let mut disk = Self { path: path.to_owned(), source, regions, artifacts, notes: Vec::new() };
        let found = DiskImage::of(path, format, disk.source.clone()).and_then(|image| disk.find_regions(&image, root));
        if let Err(error) = found {
            let reasons = reasons(&error, path);
            disk.notes.push(format!("{}: owners of bytes are unknown: {reasons}", path.display()));
            disk.regions.clear();
        }
        Ok(disk)
    }

    pub(super) fn unreadable(&self, source: std::io::Error) -> DiffError {
        DiffError::Message(message!("{}: cannot be read", self.path.display()).by(source))
    }

    fn find_regions(&mut self, image: &DiskImage, root: Option<u32>) -> Result<(), InspectError> {
        let root = image.root(root)?;
        let mut parts: Vec<_> = image.layout().parts().iter().filter(|part| !part.kind.is_extended()).collect();
        parts.sort_by_key(|part| part.start);
        for part in parts {
            // MBR partitions can overlap: the first one gets the bytes.
            let start = part.start.max(self.regions.last().map_or(0, |region| region.range.end));
            let range = start..part.start.saturating_add(part.len);
            if range.is_empty() {
                continue;
            }
            if part.number == root.number && start == part.start {
                let tree = image.tree(part, None)?;
                self.find_files(&tree, range);
            } else {
                self.regions.push(Region { range, owner: Owner::Partition(part.number), path: None });
            }
        }
        Ok(())
    }

    fn find_files(&mut self, tree: &Tree, partition: Range<u64>) {
        let record = match inside_record(tree) {
            Ok(found) => found.map(|(record, _)| record),
            Err(error) => {
                self.notes.push(format!("{}: its record of origins is not used: {error}", self.path.display()));
                None
            }
        };
        let mut files = Vec::new();
        let mut seen = BTreeSet::new();
        for (path, id, inode) in tree.walk() {
            let Kind::File(map) = &inode.kind else { continue };
            if !seen.insert(id) {
                continue;
            }
            let path: Arc<str> = escape::path(&path).into();
            let owner = owner(record.as_ref(), &path);
            for extent in map.extents() {
                let start = partition.start + extent.offset;
                let range = start..start + extent.len;
                files.push(Region { range, owner: owner.clone(), path: Some(path.clone()) });
            }
        }
        files.sort_by_key(|file| file.range.start);
        // Blocks without a file are metadata; a malicious file system can assign a block to two files.
        let mut at = partition.start;
        let gap = |range| Region { range, owner: Owner::Metadata, path: None };
        for file in files {
            let Range { start, end } = file.range;
            if start > at {
                self.regions.push(gap(at..start));
            }
            if end > at {
                self.regions.push(Region { range: at.max(start)..end, ..file });
                at = end;
            }
        }
        self.regions.push(gap(at..partition.end));
        let artifacts = record.map(|record| record.artifacts).unwrap_or_default().into_iter();
        self.artifacts = artifacts.map(|(name, artifact)| (name, artifact.digest.to_string())).collect();
    }

    /// The regions that overlap with a range, with the number of common bytes.
    fn within(&self, range: Range<u64>) -> impl Iterator<Item = (&Region, u64)> {
        let Range { start, end } = range;
        let first = self.regions.partition_point(|region| region.range.end <= start);
        let touched = self.regions[first..].iter().take_while(move |region| region.range.start < end);
        touched.map(move |region| (region, region.range.end.min(end).saturating_sub(region.range.start.max(start))))
    }
}

fn owner(record: Option<&Record>, path: &str) -> Owner {
    let Some(record) = record else { return Owner::File };
    match record.paths.get(path) {
        None => Owner::Base,
        Some(origin) => match &origin.artifact {
            Some(artifact) => Owner::Artifact(artifact.as_str().into()),
            None => Owner::Layer(origin.layer.as_str().into()),
        },
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table => f.write_str("partition table"),
            Self::Partition(number) => write!(f, "partition {number}"),
            Self::Metadata => f.write_str("metadata"),
            Self::Base => f.write_str("base"),
            Self::Layer(name) => write!(f, "layer {name}"),
            Self::Artifact(name) => write!(f, "artifact {name}"),
            Self::File => f.write_str("files"),
        }
    }
}

pub(super) struct Owners<'a> {
    from: &'a Disk,
    to: &'a Disk,
    changed: BTreeSet<&'a str>,
}

/// Counters of one owner.
#[derive(Default)]
struct Tally {
    differ: u64,
    clusters: u64,
    paths: BTreeMap<Arc<str>, u64>,
}

impl<'a> Owners<'a> {
    pub(super) fn of(from: &'a Disk, to: &'a Disk) -> Self {
        let names = from.artifacts.keys().chain(to.artifacts.keys());
        let changed = names.filter(|name| from.artifacts.get(*name) != to.artifacts.get(*name));
        Self { from, to, changed: changed.map(String::as_str).collect() }
    }

    /// Artifacts with different digests, or in only one image.
    pub(super) fn changed(&self) -> Vec<String> {
        self.changed.iter().map(|name| (*name).to_owned()).collect()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        [&self.from.notes[..], &self.to.notes[..]].concat()
    }

    /// Whether a byte of the cluster at `at` belongs to a changed artifact, in either disk.
    pub(super) fn in_changed(&self, at: u64) -> bool {
        [self.from, self.to].into_iter().any(|disk| {
            disk.within(at..at + CLUSTER).any(|(region, _)| match &region.owner {
                Owner::Artifact(name) => self.changed.contains(&**name),
                _ => false,
            })
        })
    }

    /// Counts different clusters by the owner of most of their bytes, in the second disk or, if it has none, in the
    /// first one.
    pub(super) fn places(&self, cells: &[Cell]) -> Vec<DifferingClusters> {
        let mut tallies: BTreeMap<Owner, Tally> = BTreeMap::new();
        for cell in cells {
            let disk = if cell.to.is_some() { self.to } else { self.from };
            let at = cell.at * CLUSTER;
            let most = disk.within(at..at + CLUSTER).max_by_key(|(_, len)| *len).map(|(region, _)| region);
            let tally = tallies.entry(most.map_or(Owner::Table, |region| region.owner.clone())).or_default();
            tally.clusters += 1;
            if !cell.same() {
                tally.differ += 1;
                if let Some(path) = most.and_then(|region| region.path.as_ref()) {
                    *tally.paths.entry(path.clone()).or_default() += 1;
                }
            }
        }
        let mut places: Vec<DifferingClusters> =
            tallies.into_iter().filter_map(|(owner, tally)| tally.place(&owner)).collect();
        // Stable sort: owners with equal counts stay sorted by kind.
        places.sort_by_key(|place| std::cmp::Reverse(place.differ));
        places
    }
}

impl Tally {
    fn place(self, owner: &Owner) -> Option<DifferingClusters> {
        let Self { differ, clusters, paths } = self;
        let mut paths: Vec<(Arc<str>, u64)> = paths.into_iter().collect();
        paths.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let paths = paths.into_iter().take(MAX_PATHS).map(|(path, _)| path.to_string()).collect();
        (differ > 0).then(|| DifferingClusters { owner: owner.to_string(), differ, clusters, paths })
    }
}
