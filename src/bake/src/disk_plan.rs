//! The disk of an image: that of the base with another root, or a new one with Debian's boot loaders.

use vmbake_disk::disk::{self, BaseDisk, Disk};
use vmbake_disk::ext4::{self, VolumeOptions};
use vmbake_disk::image::Format;
use vmbake_disk::tree::{Timestamp, Tree};
use vmbake_grub::DiskIds;
use vmbake_manifest::Manifest;

use super::combine::BaseImage;
use super::{BakeError, BakeRequest};

/// A disk without its root file system.
pub(super) struct DiskPlan {
    disk: BaseDisk,
    /// Its length in bytes if no other is wanted.
    len: u64,
    /// `s_uuid`, `s_volume_name` and `s_hash_seed` of the root file system.
    uuid: [u8; 16],
    label: Vec<u8>,
    hash_seed: [u8; 16],
}

impl DiskPlan {
    /// The disk of a base image.
    pub(super) fn of_base(base: &BaseImage) -> Self {
        let BaseImage { disk, len, file_system, .. } = base;
        Self {
            disk: disk.clone(),
            len: *len,
            uuid: file_system.uuid,
            label: file_system.label.clone(),
            // The base's: another manifest must not change the order of entries in large directories.
            hash_seed: file_system.hash_seed,
        }
    }

    /// A new disk for the system in `tree`, which has no base image.
    pub(super) fn new(request: &BakeRequest, manifest: &Manifest, tree: &Tree) -> Result<Self, BakeError> {
        let name = manifest.name();
        let ids = DiskIds::of(&name);
        let system = request.system_of(manifest);
        let format = request.formats.iter().copied().find(|format| format.disk().is_some());
        let format = format.unwrap_or(Format::Raw.into());
        let made = vmbake_grub::check(tree, &request.arch, &ids)
            .and_then(|()| vmbake_grub::new_disk(tree, &request.arch, &ids));
        let disk = made.map_err(|source| BakeError::NoDisk { name, format, system, source: source.into() })?;
        let DiskIds { root_uuid: uuid, hash_seed, .. } = ids;
        let len = vmbake_grub::DEFAULT_LEN;
        if let Some(size) = request.size {
            disk::root_len(&disk, size).map_err(BakeError::Assemble)?;
        }
        Ok(Self { disk, len, uuid, label: Vec::new(), hash_seed })
    }

    /// Lays out the root file system and the disk.
    pub(super) fn author(&self, request: &BakeRequest, tree: &Tree, epoch: Timestamp) -> Result<Disk, BakeError> {
        let disk_len = request.size.unwrap_or(self.len);
        let options = VolumeOptions {
            size: ext4::Size::Exact(disk::root_len(&self.disk, disk_len).map_err(BakeError::Assemble)?),
            uuid: self.uuid,
            label: self.label.clone(),
            hash_seed: self.hash_seed,
            epoch: u32::try_from(epoch.secs).unwrap_or(u32::MAX),
        };
        let volume = ext4::author(tree, &options)?;
        disk::assemble(&self.disk, disk_len, volume.map(), volume.sources()).map_err(BakeError::Assemble)
    }
}
