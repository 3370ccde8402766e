//! Sector 0 of a GPT disk: boot code and the protective MBR (UEFI 2.10, 5.2.3). Little endian, offsets in bytes.

use super::{GptError, SECTOR_LEN, Sector};

/// Bytes of boot code at the start of the sector.
pub const BOOT_CODE_LEN: usize = 440;
/// Four entries of 16 bytes.
const ENTRIES: usize = 446;
/// Offset of the partition type in an entry.
const OS_TYPE: usize = 4;
/// Type of the entry that covers a GPT disk.
const GPT_PROTECTIVE: u8 = 0xEE;
const SIGNATURE: [u8; 2] = [0x55, 0xAA];

/// The contents of sector 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mbr {
    /// The code that a BIOS executes.
    pub boot_code: [u8; BOOT_CODE_LEN],
    /// Whether it lists partitions in addition to the protective one.
    pub hybrid: bool,
}

impl Mbr {
    /// As in Linux, a disk without protective entry has no GPT.
    pub(super) fn parse(sector: &Sector) -> Result<Self, GptError> {
        let types = sector[ENTRIES..510].chunks_exact(16).map(|entry| entry[OS_TYPE]);
        if sector[510..] != SIGNATURE || !types.clone().any(|os_type| os_type == GPT_PROTECTIVE) {
            return Err(GptError::NoProtectiveMbr);
        }
        let hybrid = types.filter(|os_type| *os_type != 0).count() > 1;
        let mut boot_code = [0; BOOT_CODE_LEN];
        boot_code.copy_from_slice(&sector[..BOOT_CODE_LEN]);
        Ok(Self { boot_code, hybrid })
    }

    /// The sector for a disk of `sectors`.
    pub(super) fn to_sector(&self, sectors: u64) -> Sector {
        let mut sector = [0; SECTOR_LEN];
        sector[..BOOT_CODE_LEN].copy_from_slice(&self.boot_code);
        let size = u32::try_from(sectors - 1).unwrap_or(u32::MAX);
        // Cylinder, head and sector of LBA 1, and the maximum for the end, as in 5.2.3.
        let entry = &mut sector[ENTRIES..ENTRIES + 16];
        entry[..8].copy_from_slice(&[0, 0x00, 0x02, 0x00, GPT_PROTECTIVE, 0xFF, 0xFF, 0xFF]);
        entry[8..12].copy_from_slice(&1u32.to_le_bytes());
        entry[12..].copy_from_slice(&size.to_le_bytes());
        sector[510..].copy_from_slice(&SIGNATURE);
        sector
    }
}
