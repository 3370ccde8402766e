//! Partition tables.

use std::path::PathBuf;

use super::{Case, Lab, Seen};
use crate::disks::put;
use crate::origin::bakery::base_of;

pub const GPT: &[Case] = &[
    Case { name: "a sound disk", make: sound, path: "/etc/passwd", reason: "", seen: Seen::Table },
    Case {
        name: "both headers damaged",
        make: headers,
        path: "/etc/passwd",
        reason: "both copies of the partition table are invalid",
        seen: Seen::Table,
    },
    Case {
        name: "four thousand million entries",
        make: entries,
        path: "/etc/passwd",
        reason: "the number of entries is 4294967295, expected 1 to 1024",
        seen: Seen::Table,
    },
];

fn sound(lab: &Lab) -> Option<PathBuf> {
    Some(base_of(lab.0.path()))
}

/// The offsets of both headers.
fn places(disk: &[u8]) -> [usize; 2] {
    [512, disk.len() - 512]
}

fn headers(lab: &Lab) -> Option<PathBuf> {
    let disk = base_of(lab.0.path());
    for at in places(&std::fs::read(&disk).unwrap()) {
        // The GUID of the disk.
        put(&disk, at + 56, &[0xff]);
    }
    Some(disk)
}

fn entries(lab: &Lab) -> Option<PathBuf> {
    let path = base_of(lab.0.path());
    let disk = std::fs::read(&path).unwrap();
    for at in places(&disk) {
        let mut header = disk[at..at + 92].to_vec();
        header[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
        header[16..20].fill(0);
        let mut crc = flate2::Crc::new();
        crc.update(&header);
        header[16..20].copy_from_slice(&crc.sum().to_le_bytes());
        put(&path, at, &header);
    }
    Some(path)
}
