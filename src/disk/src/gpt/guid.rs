//! GUIDs as stored in GPT: 16 bytes, the first three fields little endian, the last two in text order (UEFI 2.10,
//! appendix A).

use std::fmt;

/// A GUID in its on-disk byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// An unused entry of the table.
    pub const UNUSED: Self = Self([0; 16]);
    /// GRUB's core image on disks that boot by BIOS.
    pub const BIOS_BOOT: Self = Self::new(0x2168_6148, 0x6449, 0x6E6F, *b"tNeedEFI");
    /// EFI system partition.
    pub const ESP: Self = Self::new(0xC12A_7328, 0xF81F, 0x11D2, [0xBA, 0x4B, 0x00, 0xA0, 0xC9, 0x3E, 0xC9, 0x3B]);
    /// Root file system for x86-64 (Discoverable Partitions Specification).
    pub const ROOT_X86_64: Self =
        Self::new(0x4F68_BCE3, 0xE8CD, 0x4DB1, [0x96, 0xE7, 0xFB, 0xCA, 0xF9, 0x84, 0xB7, 0x09]);
    /// Root file system for 64-bit ARM (Discoverable Partitions Specification).
    pub const ROOT_ARM64: Self =
        Self::new(0xB921_B045, 0x1DF0, 0x41C3, [0xAF, 0x44, 0x4C, 0x6F, 0x28, 0x0D, 0x3F, 0xAE]);
    /// Any Linux file system.
    pub const LINUX: Self = Self::new(0x0FC6_3DAF, 0x8483, 0x4772, [0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4]);
    pub const LINUX_SWAP: Self =
        Self::new(0x0657_FD6D, 0xA4AB, 0x43C4, [0x84, 0xE5, 0x09, 0x33, 0xC8, 0x4B, 0x4F, 0x4F]);
    /// A separate `/boot` (Discoverable Partitions Specification).
    pub const XBOOTLDR: Self = Self::new(0xBC13_C2FF, 0x59E6, 0x4262, [0xA3, 0x52, 0xB2, 0x75, 0xFD, 0x6F, 0x71, 0x72]);
    /// Physical volume of LVM.
    pub const LINUX_LVM: Self =
        Self::new(0xE6D6_D379, 0xF507, 0x44C2, [0xA2, 0x3C, 0x23, 0x8F, 0x2A, 0x3D, 0xF9, 0x28]);
    /// Member of a software RAID.
    pub const LINUX_RAID: Self =
        Self::new(0xA19D_880F, 0x05FC, 0x4D3B, [0xA0, 0x06, 0x74, 0x3F, 0x0F, 0x84, 0x91, 0x1E]);
    /// Microsoft's type for FAT, exFAT and NTFS.
    pub const BASIC_DATA: Self =
        Self::new(0xEBD0_A0A2, 0xB9E5, 0x4433, [0x87, 0xC0, 0x68, 0xB6, 0xB7, 0x26, 0x99, 0xC7]);

    /// Creates a GUID from its fields in text order.
    pub const fn new(a: u32, b: u16, c: u16, d: [u8; 8]) -> Self {
        let (a, b, c) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
        Self([a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]])
    }

    /// The name of the type, if it is one of those above.
    pub fn type_name(self) -> Option<&'static str> {
        match self {
            Self::BIOS_BOOT => Some("BIOS boot"),
            Self::ESP => Some("EFI system"),
            Self::ROOT_X86_64 => Some("Linux root (x86-64)"),
            Self::ROOT_ARM64 => Some("Linux root (ARM64)"),
            Self::LINUX => Some("Linux filesystem"),
            Self::LINUX_SWAP => Some("Linux swap"),
            Self::XBOOTLDR => Some("Linux extended boot"),
            Self::LINUX_LVM => Some("Linux LVM"),
            Self::LINUX_RAID => Some("Linux RAID"),
            Self::BASIC_DATA => Some("Microsoft basic data"),
            _ => None,
        }
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, index) in [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].into_iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{:02X}", self.0[index])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_as_the_specifications_write_them() {
        let cases = [
            (Guid::BIOS_BOOT, "21686148-6449-6E6F-744E-656564454649"),
            (Guid::ESP, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"),
            (Guid::ROOT_X86_64, "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"),
            (Guid::ROOT_ARM64, "B921B045-1DF0-41C3-AF44-4C6F280D3FAE"),
            (Guid::LINUX, "0FC63DAF-8483-4772-8E79-3D69D8477DE4"),
            (Guid::LINUX_SWAP, "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F"),
            (Guid::XBOOTLDR, "BC13C2FF-59E6-4262-A352-B275FD6F7172"),
            (Guid::LINUX_LVM, "E6D6D379-F507-44C2-A23C-238F2A3DF928"),
            (Guid::LINUX_RAID, "A19D880F-05FC-4D3B-A006-743F0F84911E"),
            (Guid::BASIC_DATA, "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7"),
            (Guid::UNUSED, "00000000-0000-0000-0000-000000000000"),
        ];
        for (guid, text) in cases {
            assert_eq!(guid.to_string(), text);
        }
        // BIOS boot is readable text on disk, which proves the byte order.
        assert_eq!(&Guid::BIOS_BOOT.0, b"Hah!IdontNeedEFI");
    }
}
