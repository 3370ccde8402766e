//! qcow2 images. Big-endian; the L1 table's offset stands at 40, its entries name L2 tables, whose entries name clusters.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Case, Lab, Seen};
use crate::disks::{put, run};
use crate::origin::bakery::{base_of, qcow2_base};
use crate::tools::have;

const PATH: &str = "/etc/passwd";

pub const QCOW2: &[Case] = &[
    Case {
        name: "a sound image of version 2",
        make: |lab| version_2(lab, "65536"),
        path: PATH,
        reason: "",
        seen: Seen::Bytes,
    },
    Case { name: "a sound image of our own", make: own, path: PATH, reason: "", seen: Seen::Bytes },
    Case {
        name: "bit 0 in version 2",
        make: |lab| with_entry(lab, |entry| entry | 1),
        path: PATH,
        reason: "expected no zero flag in version 2",
        seen: Seen::Bytes,
    },
    Case {
        name: "a reserved bit",
        make: |lab| with_entry(lab, |entry| entry | 2),
        path: PATH,
        reason: "expected reserved bits clear",
        seen: Seen::Bytes,
    },
    Case {
        name: "a cluster outside the file",
        make: |lab| with_entry(lab, |_| 1 << 40),
        path: PATH,
        reason: "data cluster at offset 0x10000000000",
        seen: Seen::Bytes,
    },
    Case {
        name: "a table outside the file",
        make: |lab| with_table(lab, |_| 1 << 40),
        path: PATH,
        reason: "L2 table at offset 0x10000000000",
        seen: Seen::Bytes,
    },
    Case {
        name: "a table twice",
        make: |lab| with_table(lab, |tables| tables[0]),
        path: PATH,
        reason: "expected an unshared L2 table",
        seen: Seen::Bytes,
    },
    Case { name: "half of the file", make: half, path: PATH, reason: "inside the file of", seen: Seen::Bytes },
    Case {
        name: "a cluster that is not compressed data",
        make: undecodable,
        path: PATH,
        reason: "cannot decompress the cluster",
        seen: Seen::Inside,
    },
    Case { name: "40 GiB of one cluster", make: bomb, path: PATH, reason: "decompression bomb", seen: Seen::Bytes },
];

fn own(lab: &Lab) -> Option<PathBuf> {
    Some(qcow2_base(lab.0.path()))
}

/// The base as QEMU stores it, not compressed.
fn version_2(lab: &Lab, cluster: &str) -> Option<PathBuf> {
    if !have(&["qemu-img"]) {
        return None;
    }
    let (raw, image) = (base_of(lab.0.path()), lab.path("base.qcow2"));
    let options = format!("compat=0.10,cluster_size={cluster}");
    let (raw, to) = (raw.to_str().unwrap(), image.to_str().unwrap());
    run("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", "-o", &options, raw, to]);
    Some(image)
}

fn word(image: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(image[at..at + 8].try_into().unwrap())
}

/// An offset in an entry.
fn offset(entry: u64) -> usize {
    usize::try_from(entry & 0x00ff_ffff_ffff_fe00).unwrap()
}

/// Where the entry for an offset of the disk stands, of clusters of 64 KiB.
fn entry_of(image: &[u8], at: usize) -> usize {
    offset(word(image, offset(word(image, 40)))) + (at >> 16) * 8
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

/// Changes the entry of the cluster that holds the file at `PATH`.
fn with_entry(lab: &Lab, edit: fn(u64) -> u64) -> Option<PathBuf> {
    let path = version_2(lab, "65536")?;
    let image = fs::read(&path).unwrap();
    let at = entry_of(&image, find(&fs::read(lab.path("base.raw")).unwrap(), b"root:x:0:0:"));
    put(&path, at, &edit(word(&image, at)).to_be_bytes());
    Some(path)
}

/// Changes the last entry of an L1 table of several.
fn with_table(lab: &Lab, edit: fn(&[u64]) -> u64) -> Option<PathBuf> {
    let path = version_2(lab, "4096")?;
    let image = fs::read(&path).unwrap();
    let count = u32::from_be_bytes(image[36..40].try_into().unwrap());
    let places: Vec<usize> = (0..count as usize).map(|i| offset(word(&image, 40)) + i * 8).collect();
    let tables: Vec<u64> = places.iter().map(|at| word(&image, *at)).filter(|table| *table != 0).collect();
    put(&path, *places.last().unwrap(), &edit(&tables).to_be_bytes());
    Some(path)
}

fn half(lab: &Lab) -> Option<PathBuf> {
    let path = version_2(lab, "65536")?;
    let len = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(len / 2).unwrap();
    Some(path)
}

/// Puts zeros in place of the cluster with the first inodes, which every query needs.
fn undecodable(lab: &Lab) -> Option<PathBuf> {
    let path = qcow2_base(lab.0.path());
    let (image, disk) = (fs::read(&path).unwrap(), fs::read(lab.path("base.raw")).unwrap());
    let root = 4 << 20;
    let table = &disk[root + 4096 + 8..root + 4096 + 12];
    let table = usize::try_from(u32::from_le_bytes(table.try_into().unwrap())).unwrap();
    let entry = word(&image, entry_of(&image, root + table * 4096));
    assert_eq!(entry >> 62, 1, "compressed");
    put(&path, usize::try_from(entry & ((1 << 54) - 1)).unwrap(), &[0; 512]);
    Some(path)
}

fn bomb(lab: &Lab) -> Option<PathBuf> {
    let path = lab.path("bomb.qcow2");
    write_bomb(&path, 80);
    Some(path)
}

/// So many L2 tables, each of which stands for half a GiB, of one cluster of 64 KiB of the letter x.
fn write_bomb(path: &Path, tables: u64) {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &[b'x'; 65536]).unwrap();
    let first = 0x30000;
    let mut header = vec![0; 72];
    header[..8].copy_from_slice(b"QFI\xfb\0\0\0\x02");
    header[20..24].copy_from_slice(&16u32.to_be_bytes());
    header[24..32].copy_from_slice(&(tables << 29).to_be_bytes());
    header[36..40].copy_from_slice(&u32::try_from(tables).unwrap().to_be_bytes());
    header[40..48].copy_from_slice(&0x10000u64.to_be_bytes());
    let l1: Vec<u8> = (0..tables).flat_map(|table| (first + (table << 16)).to_be_bytes()).collect();
    fs::write(path, header).unwrap();
    put(path, 0x10000, &l1);
    put(path, 0x20000, &packed.finish().unwrap());
    let l2 = (0x20000u64 | 1 << 62).to_be_bytes().repeat(8192 * usize::try_from(tables).unwrap());
    put(path, usize::try_from(first).unwrap(), &l2);
}
