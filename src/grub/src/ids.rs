//! The GUIDs of a new disk.

use sha2::{Digest, Sha256};
use vmbake_disk::gpt::Guid;

/// Everything that identifies a disk, its partitions and its file systems: digests of the name of the image, so that two bakes of it have
/// the same, and images with other names have others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskIds {
    pub disk: Guid,
    pub bios_boot: Guid,
    pub esp: Guid,
    pub root: Guid,
    /// `s_uuid` of the root file system.
    pub root_uuid: [u8; 16],
    /// `s_hash_seed` of the root file system.
    pub hash_seed: [u8; 16],
    /// Serial number of the file system of the ESP.
    pub esp_serial: u32,
}

impl DiskIds {
    pub fn of(name: &str) -> Self {
        let digest = |part: &str| -> [u8; 32] { Sha256::digest(format!("vmbake disk\0{name}\0{part}")).into() };
        let bytes = |part: &str| -> [u8; 16] { std::array::from_fn(|index| digest(part)[index]) };
        let [a, b, c, d, ..] = digest("esp serial");
        Self {
            disk: guid(bytes("disk")),
            bios_boot: guid(bytes("bios boot")),
            esp: guid(bytes("esp")),
            root: guid(bytes("root")),
            root_uuid: versioned(bytes("root uuid"), 6),
            hash_seed: versioned(bytes("hash seed"), 6),
            esp_serial: u32::from_be_bytes([a, b, c, d]),
        }
    }

    /// The UUID of the root file system as text.
    pub fn root_uuid_text(&self) -> String {
        let hex: Vec<String> = self.root_uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..4], &hex[4..6], &hex[6..8], &hex[8..10], &hex[10..]].map(<[String]>::concat).join("-")
    }

    /// The PARTUUID of the root partition, as Linux writes it.
    pub fn root_partuuid(&self) -> String {
        self.root.to_string().to_lowercase()
    }

    /// The PARTUUID of the ESP.
    pub fn esp_partuuid(&self) -> String {
        self.esp.to_string().to_lowercase()
    }
}

/// The third field of a GUID on a disk is little endian: its version is in the second byte.
fn guid(bytes: [u8; 16]) -> Guid {
    Guid(versioned(bytes, 7))
}

/// Marks bytes as a UUID of version 8 (RFC 9562), whose content is free.
fn versioned(mut bytes: [u8; 16], version: usize) -> [u8; 16] {
    bytes[version] = bytes[version] & 0x0F | 0x80;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::DiskIds;

    #[test]
    fn ids_depend_on_the_name_alone() {
        let ids = DiskIds::of("app.debian-13.amd64");
        assert_eq!(ids, DiskIds::of("app.debian-13.amd64"));
        let other = DiskIds::of("app.debian-13.arm64");
        assert_ne!((ids.root, ids.root_uuid, ids.esp_serial), (other.root, other.root_uuid, other.esp_serial));
        for text in [ids.root_partuuid(), ids.esp_partuuid(), ids.root_uuid_text()] {
            assert_eq!((text.len(), &text[14..15]), (36, "8"), "{text}");
            assert!("89ab".contains(&text[19..20]), "{text}");
        }
    }
}
