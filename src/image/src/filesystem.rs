//! Identifies the file system of a partition by its superblock, without reading it.

use std::fmt;

use serde::Serialize;
use vmbake_disk::ext4::{self, FileSystem, ReadError};
use vmbake_disk::fat::{self, FatError, FatInfo};
use vmbake_disk::layout::Size;
use vmbake_disk::signature::{self, Role, Signature};
use vmbake_disk::source::ReadAt;

/// A file system or other content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileSystemReport {
    /// `ext2`, `ext3`, `ext4`, `FAT12`, `FAT16`, `FAT32`, or the name of an unsupported one.
    pub kind: &'static str,
    /// May be empty.
    pub label: String,
    /// UUID, or serial number of FAT; empty if unknown.
    pub uuid: String,
    /// Its usage, if known.
    #[serde(flatten)]
    pub usage: Option<Usage>,
}

/// Usage of a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Block or cluster size in bytes.
    pub block_size: u64,
    /// Number of blocks or clusters.
    pub blocks: u64,
    pub free_blocks: u64,
    /// Inodes, if the file system has them.
    pub inodes: Option<Inodes>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inodes {
    pub total: u32,
    pub free: u32,
}

/// The file system of a partition, if known, and the reason if it cannot be read.
pub(crate) fn probe(source: &dyn ReadAt) -> (Option<FileSystemReport>, Option<String>) {
    let known = |reason: String| (signature::probe(source).as_ref().map(FileSystemReport::of_signature), Some(reason));
    match ext4::probe(source) {
        Ok(found) => return (Some(FileSystemReport::of_ext4(&found)), None),
        Err(error) if is_not_ext4(&error, source) => {}
        Err(error) => return known(error.to_string()),
    }
    match fat::probe(source) {
        Ok(found) => (Some(FileSystemReport::of_fat(&found)), None),
        Err(error @ FatError::NotFat { .. }) => match signature::probe(source) {
            // A FAT boot sector with invalid values.
            Some(found) if found.role == Role::Known => known(error.to_string()),
            Some(found) => (Some(FileSystemReport::of_signature(&found)), Some(found.reason())),
            None => (None, None),
        },
        // Too short for a boot sector.
        Err(FatError::Read { .. }) if source.len() < 512 => (None, None),
        Err(error) => known(error.to_string()),
    }
}

/// Whether the error means that there is no ext4 file system, rather than a corrupt one.
pub(super) fn is_not_ext4(error: &ReadError, source: &dyn ReadAt) -> bool {
    match error {
        ReadError::NotExt4 { .. } => true,
        // The end of a superblock.
        ReadError::Io { .. } => source.len() < 2048,
        _ => false,
    }
}

impl FileSystemReport {
    pub(super) fn of_ext4(found: &FileSystem) -> Self {
        Self {
            kind: ext_kind(&found.features),
            label: String::from_utf8_lossy(&found.label).into_owned(),
            uuid: signature::hyphenated(&found.uuid),
            usage: Some(Usage {
                block_size: found.block_size,
                blocks: found.blocks,
                free_blocks: found.free_blocks,
                inodes: Some(Inodes { total: found.inodes, free: found.free_inodes }),
            }),
        }
    }

    pub(super) fn of_fat(found: &FatInfo) -> Self {
        Self {
            kind: found.kind,
            label: found.label.clone(),
            uuid: format!("{:04X}-{:04X}", found.volume_id >> 16, found.volume_id & 0xFFFF),
            usage: Some(Usage {
                block_size: found.cluster_size.into(),
                blocks: found.clusters.into(),
                free_blocks: found.free_clusters.into(),
                inodes: None,
            }),
        }
    }

    pub(super) fn of_signature(found: &Signature) -> Self {
        Self { kind: found.name, label: found.label.clone(), uuid: found.uuid.clone(), usage: None }
    }
}

/// The name that `blkid` gives a file system with these features: ext3 has a journal, and ext4 has features unknown to
/// ext3.
fn ext_kind(features: &[&str]) -> &'static str {
    const EXT3: [&str; 12] = [
        "dir_prealloc",
        "imagic_inodes",
        "has_journal",
        "ext_attr",
        "resize_inode",
        "dir_index",
        "filetype",
        "needs_recovery",
        "meta_bg",
        "sparse_super",
        "large_file",
        "btree_dir",
    ];
    // Compatible features, which ext3 may have.
    const COMPATIBLE: [&str; 4] = ["sparse_super2", "fast_commit", "stable_inodes", "orphan_file"];
    if features.iter().any(|feature| !EXT3.contains(feature) && !COMPATIBLE.contains(feature)) {
        "ext4"
    } else if features.contains(&"has_journal") {
        "ext3"
    } else {
        "ext2"
    }
}

impl fmt::Display for FileSystemReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if let Some(Usage { block_size, blocks, free_blocks, inodes }) = &self.usage {
            let bytes = |blocks: u64| Size(blocks.saturating_mul(*block_size));
            write!(f, ", {} of {} used", bytes(blocks.saturating_sub(*free_blocks)), bytes(*blocks))?;
            if let Some(inodes) = inodes {
                write!(f, ", {} of {} inodes", inodes.total.saturating_sub(inodes.free), inodes.total)?;
            }
        }
        if !self.label.is_empty() {
            write!(f, ", label {:?}", self.label)?;
        }
        if !self.uuid.is_empty() {
            write!(f, ", UUID {}", self.uuid)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_file_systems_are_called_as_blkid_calls_them() {
        let ext2 = ["ext_attr", "resize_inode", "dir_index", "filetype", "sparse_super", "large_file"];
        assert_eq!(ext_kind(&ext2), "ext2");
        assert_eq!(ext_kind(&[&ext2[..], &["has_journal"]].concat()), "ext3");
        assert_eq!(ext_kind(&[&ext2[..], &["has_journal", "extent"]].concat()), "ext4");
        assert_eq!(ext_kind(&[&ext2[..], &["metadata_csum"]].concat()), "ext4");
    }
}
