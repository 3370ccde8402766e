//! Hand-made FAT16 with clusters of 512 bytes; each directory has one cluster by default.

use std::path::PathBuf;

use super::{Case, Lab, Seen};

pub const FAT: &[Case] = &[
    Case { name: "a FAT volume with a file", make: sound, path: "/FILE", reason: "", seen: Seen::Inside },
    Case {
        name: "60,000 directories in each other",
        make: |lab| deep(lab, 60_000, 0),
        path: "/D/D/D",
        reason: "the length of a path is 4096, the maximum is 4095",
        seen: Seen::Inside,
    },
    Case {
        name: "5,000 files far down",
        make: |lab| deep(lab, 2_000, 5_000),
        path: "/D/D/D",
        reason: "the length of all paths is",
        seen: Seen::Inside,
    },
];

const SECTOR: usize = 512;
const CLUSTERS: usize = 65_000;
/// Sectors of the one FAT, and those of the root directory.
const FAT_SECTORS: usize = ((CLUSTERS + 2) * 2).div_ceil(SECTOR);
const ROOT_SECTORS: usize = 32;
const END: u16 = 0xffff;

struct Volume(Vec<u8>);

impl Volume {
    fn new() -> Self {
        let sectors = 1 + FAT_SECTORS + ROOT_SECTORS + CLUSTERS;
        let mut bytes = vec![0; sectors * SECTOR];
        let number = |value: usize| u16::try_from(value).unwrap().to_le_bytes();
        bytes[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
        bytes[11..13].copy_from_slice(&number(SECTOR));
        (bytes[13], bytes[14], bytes[16], bytes[21]) = (1, 1, 1, 0xf8);
        bytes[17..19].copy_from_slice(&number(ROOT_SECTORS * 16));
        bytes[22..24].copy_from_slice(&number(FAT_SECTORS));
        bytes[32..36].copy_from_slice(&u32::try_from(sectors).unwrap().to_le_bytes());
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        Self(bytes)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn link(&mut self, cluster: usize, next: u16) {
        self.put(SECTOR + cluster * 2, &next.to_le_bytes());
    }

    /// Where a cluster stands; the root directory stands where cluster 0 would.
    fn at(cluster: usize) -> usize {
        let root = SECTOR * (1 + FAT_SECTORS);
        if cluster == 0 { root } else { root + SECTOR * (ROOT_SECTORS + cluster - 2) }
    }

    /// Writes entry `index` of the directory in `cluster`.
    fn entry(&mut self, cluster: usize, index: usize, name: &str, directory: bool, first: usize) {
        let mut entry = [0; 32];
        entry[..11].copy_from_slice(format!("{name:<11}").as_bytes());
        entry[11] = if directory { 0x10 } else { 0 };
        entry[26..28].copy_from_slice(&u16::try_from(first).unwrap().to_le_bytes());
        self.put(Self::at(cluster) + index * 32, &entry);
    }

    fn disk(self, lab: &Lab) -> PathBuf {
        lab.gpt("fat.raw", &[("8304", &self.0)])
    }
}

fn sound(lab: &Lab) -> Option<PathBuf> {
    let mut volume = Volume::new();
    volume.entry(0, 0, "FILE", false, 0);
    Some(volume.disk(lab))
}

/// So many directories within each other, and files in the last.
fn deep(lab: &Lab, levels: usize, files: usize) -> Option<PathBuf> {
    let mut volume = Volume::new();
    let mut parent = 0;
    for cluster in 2..2 + levels {
        volume.entry(parent, 0, "D", true, cluster);
        volume.link(cluster, END);
        parent = cluster;
    }
    let more = (files * 32).div_ceil(SECTOR);
    (parent..parent + more).for_each(|cluster| volume.link(cluster, u16::try_from(cluster + 1).unwrap()));
    volume.link(parent + more, END);
    (0..files).for_each(|file| volume.entry(parent, file, &format!("F{file}"), false, 0));
    Some(volume.disk(lab))
}
