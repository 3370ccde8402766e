//! The partitions of Debian's cloud images: 14 is the BIOS boot partition (amd64 only), 15 the ESP, 1 the root to the end of the disk.

use std::sync::Arc;

use vmbake_disk::disk::{self, BaseDisk};
use vmbake_disk::gpt::{Guid, Mbr, Partition, SECTOR, Table};
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::Tree;

use crate::core_image::{CoreImage, DEFAULT_MODULES, PREFIX};
use crate::error::GrubError;
use crate::esp::{self, EfiFiles, is_bootable_by_efi};
use crate::ids::DiskIds;
use crate::system::has_bios;

/// Length of a disk in bytes if no other is wanted, as of Debian's cloud images.
pub const DEFAULT_LEN: u64 = 3 << 30;

/// Sectors of the partitions: first, number.
const BIOS_BOOT: (u64, u64) = (2048, 6144);
const ESP: (u64, u64) = (8192, 253_952);
/// The ESP without a BIOS boot partition.
const LARGE_ESP: (u64, u64) = (2048, 260_096);
const ROOT_START: u64 = 262_144;
/// The smallest root partition, which is resized later.
const ROOT_LEN: u64 = 2048;
/// First sector behind the partition table, as other partitioning tools set it.
const FIRST_USABLE: u64 = 34;
const CAPACITY: u32 = 128;
const BIOS_BOOT_NUMBER: u32 = 14;
const ESP_NUMBER: u32 = 15;
const ROOT_NUMBER: u32 = 1;
const BOOT_CODE_LEN: usize = 440;

/// A disk with an empty root partition for the system in `tree`, which must have passed [`check`](crate::check). It boots by BIOS if the tree
/// has the files of `grub-pc-bin`, and by UEFI if it has the signed programs.
pub fn new_disk(tree: &Tree, arch: &str, ids: &DiskIds) -> Result<BaseDisk, GrubError> {
    let efi = EfiFiles::of(arch).ok_or_else(|| GrubError::Arch { arch: arch.to_owned() })?;
    let by_bios = arch == "amd64";
    let (esp_start, esp_sectors) = if by_bios { ESP } else { LARGE_ESP };
    let mut boot_code = [0; BOOT_CODE_LEN];
    let mut contents: Vec<(u32, Arc<dyn ReadAt>)> = Vec::new();
    if has_bios(tree, arch) {
        let (start, sectors) = BIOS_BOOT;
        let image = CoreImage::build(tree, &DEFAULT_MODULES, PREFIX, start, sectors * SECTOR)?;
        boot_code = image.boot_code;
        contents.push((BIOS_BOOT_NUMBER, Arc::new(image.core)));
    }
    if is_bootable_by_efi(tree, efi) {
        contents.push((ESP_NUMBER, Arc::new(esp::build(tree, efi, ids, esp_sectors * SECTOR)?)));
    }
    let root_type = if by_bios { Guid::ROOT_X86_64 } else { Guid::ROOT_ARM64 };
    let all = [
        partition(ROOT_NUMBER, root_type, ids.root, (ROOT_START, ROOT_LEN)),
        partition(BIOS_BOOT_NUMBER, Guid::BIOS_BOOT, ids.bios_boot, BIOS_BOOT),
        partition(ESP_NUMBER, Guid::ESP, ids.esp, (esp_start, esp_sectors)),
    ];
    let is_there = |number: u32| number == ROOT_NUMBER || contents.iter().any(|(filled, _)| *filled == number);
    let partitions = all.into_iter().filter(|partition| is_there(partition.number)).collect();
    let table = Table {
        disk_guid: ids.disk,
        partitions,
        first_usable: FIRST_USABLE * SECTOR,
        capacity: CAPACITY,
        sector: SECTOR,
        mbr: Mbr { boot_code, hybrid: false },
        used_backup: None,
        backup_damage: None,
    };
    // Room for the backup of the table behind the root, which is resized to the wanted length.
    let len = (ROOT_START + ROOT_LEN + 2048) * SECTOR;
    let disk = disk::create(&table, contents, len)?;
    Ok(disk::open(Arc::new(disk), Some(ROOT_NUMBER))?)
}

fn partition(number: u32, type_guid: Guid, guid: Guid, (start, sectors): (u64, u64)) -> Partition {
    Partition {
        number,
        type_guid,
        guid,
        start: start * SECTOR,
        len: sectors * SECTOR,
        attributes: 0,
        name: String::new(),
    }
}
