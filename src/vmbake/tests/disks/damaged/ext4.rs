//! Hand-made ext4 volumes without checksums, so that every structure can be invalid. Little-endian; blocks of 4096 bytes.
//!
//! Each is the root partition of a disk that is sparse, and becomes a small qcow2 image.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{Case, Lab, Seen};
use crate::disks::run;
use crate::origin::image::convert;

pub const EXT4: &[Case] = &[
    Case { name: "a volume with a file", make: sound, path: "/f0", reason: "", seen: Seen::Whole },
    Case {
        name: "2,000 files share 462,400 runs",
        make: shared_map,
        path: "/f1",
        reason: "maps blocks twice",
        seen: Seen::Whole,
    },
    Case {
        name: "two files share their blocks",
        make: shared_blocks,
        path: "/f1",
        reason: "inode 13: block 4104 is used by inode 12, too",
        seen: Seen::Whole,
    },
    Case {
        name: "2,000 directories of 448 MiB of holes",
        make: giant_directories,
        path: "/f1/x",
        reason: "directory entry of 0 bytes at byte 0",
        seen: Seen::Whole,
    },
    Case {
        name: "256 groups with one inode table",
        make: shared_table,
        path: "/f0",
        reason: "overlaps that of block group 0",
        seen: Seen::Inside,
    },
    Case {
        name: "100,000 files with one block of attributes",
        make: shared_attributes,
        path: "/f0",
        reason: "more than 134217728 bytes of shared attributes",
        seen: Seen::Whole,
    },
    Case {
        name: "a value of an attribute in 1,360 runs",
        make: giant_value,
        path: "/f0",
        reason: "attribute user.a of inode 12: more blocks are mapped in total than possible",
        seen: Seen::Whole,
    },
    Case {
        name: "37,500 names far down",
        make: far_names,
        path: "/f0",
        reason: "names whose paths have more than 134217728 bytes",
        seen: Seen::Whole,
    },
    Case {
        name: "two million names",
        make: many_names,
        path: "/f0",
        reason: "more than 2000000 names",
        seen: Seen::Whole,
    },
];

const BLOCK: u64 = 4096;
/// Where the root directory begins.
const ROOT_AT: u64 = 256;
/// Blocks of a group. Its inode table begins at this block of it, and what a test adds at that.
const GROUP: u64 = 32768;
const TABLE: u64 = 2048;
const FREE: u64 = 4096;
/// Inodes of a group: as many as fit between these places.
const INODES: u64 = 32768;
const INODE: u64 = INODE_LEN as u64;
const INODE_LEN: usize = 256;
/// Where the partition starts.
const START: u64 = 1 << 20;

const ROOT: u64 = 2;
/// The first inode of the files.
const FIRST: u64 = 12;
const FILE: u16 = 0o100_644;
const DIRECTORY: u16 = 0o040_755;
const PIPE: u16 = 0o010_644;

const EXTENTS: u32 = 0x8_0000;
const EA_INODE: u32 = 0x20_0000;
/// Extents that fit into a block.
const PER_BLOCK: u64 = 340;

/// Changes to an inode: the offset of a field, and its bytes.
type Fields<'a> = &'a [(usize, &'a [u8])];

struct Volume<'a> {
    lab: &'a Lab,
    file: File,
}

impl<'a> Volume<'a> {
    fn new(lab: &'a Lab, groups: u64) -> Self {
        let path = lab.path("volume.raw");
        let file = File::create_new(&path).unwrap();
        file.set_len(START * 2 + groups * GROUP * BLOCK).unwrap();
        let last = START / 512 + groups * GROUP * (BLOCK / 512) - 1;
        run("sgdisk", &[&format!("--new=1:2048:{last}"), "--typecode=1:8304", path.to_str().unwrap()]);
        let volume = Self { lab, file };
        volume.write(1024, &superblock(groups));
        for group in 0..groups {
            volume.describe(group, group * GROUP + TABLE);
        }
        volume
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, START + at).unwrap();
    }

    fn block(&self, block: u64, bytes: &[u8]) {
        self.write(block * BLOCK, bytes);
    }

    /// Says where the inode table of a group is.
    fn describe(&self, group: u64, table: u64) {
        self.write(BLOCK + group * 32 + 8, &low(table));
    }

    fn inode(&self, number: u64, mode: u16, links: u64, size: u64, map: &[u8], fields: Fields<'_>) {
        let mut inode = [0; INODE_LEN];
        let mut put = |at: usize, bytes: &[u8]| inode[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x00, &mode.to_le_bytes());
        put(0x04, &low(size));
        put(0x1a, &u16::try_from(links).unwrap().to_le_bytes());
        put(0x20, &if map.is_empty() { 0 } else { EXTENTS }.to_le_bytes());
        put(0x28, map);
        put(0x80, &[32]);
        fields.iter().for_each(|(at, bytes)| put(*at, bytes));
        let (group, index) = ((number - 1) / INODES, (number - 1) % INODES);
        self.write((group * GROUP + TABLE) * BLOCK + index * INODE, &inode);
    }

    /// A directory in the blocks from `at` on. Returns how many.
    fn directory(&self, number: u64, parent: u64, subdirs: u64, at: u64, names: &[(u64, String)]) -> u64 {
        let dots = [(number, ".".to_owned()), (parent, "..".to_owned())];
        let blocks = entries(dots.iter().chain(names));
        let len = blocks.len() as u64 / BLOCK;
        self.block(at, &blocks);
        self.inode(number, DIRECTORY, subdirs + 2, len * BLOCK, &extents(&[(0, len, at)]), &[]);
        len
    }

    /// The root directory, with `count` names of inodes from the first on.
    fn root(&self, count: u64, subdirs: u64) {
        let names: Vec<_> = (0..count).map(|index| (FIRST + index, format!("f{index}"))).collect();
        assert!(self.directory(ROOT, ROOT, subdirs, ROOT_AT, &names) <= TABLE - ROOT_AT);
    }

    fn finish(self) -> Option<PathBuf> {
        let (raw, image) = (self.lab.path("volume.raw"), self.lab.path("volume.qcow2"));
        convert(&raw, &image);
        std::fs::remove_file(raw).unwrap();
        Some(image)
    }
}

fn superblock(groups: u64) -> [u8; 1024] {
    let mut bytes = [0; 1024];
    let mut put = |at: usize, value: u64| bytes[at..at + 4].copy_from_slice(&low(value));
    let numbers = [(0x00, groups * INODES), (0x04, groups * GROUP), (0x20, GROUP), (0x28, INODES)];
    numbers.into_iter().for_each(|(at, value)| put(at, value));
    // Blocks and clusters of 1024 << 2; magic and clean; revision 1; the first inode and its length.
    [(0x18, 2), (0x1c, 2), (0x38, 1 << 16 | 0xef53), (0x4c, 1), (0x54, 11), (0x58, INODE)]
        .into_iter()
        .for_each(|(at, value)| put(at, value));
    // filetype, extent, flex_bg, ea_inode; sparse_super, large_file.
    [(0x60, 0x2 | 0x40 | 0x200 | 0x400), (0x64, 0x3)].into_iter().for_each(|(at, value)| put(at, value));
    bytes
}

fn low(value: u64) -> [u8; 4] {
    u32::try_from(value).unwrap().to_le_bytes()
}

/// An extent tree's root of depth 0: logical block, length and block of each extent.
fn extents(all: &[(u64, u64, u64)]) -> Vec<u8> {
    let extent = |(logical, len, block): &(u64, u64, u64)| [low(*logical), low(*len), low(*block)].concat();
    node(0, 4, &all.iter().flat_map(extent).collect::<Vec<_>>())
}

/// A node that leads to others: logical block and block of each.
fn index(depth: u8, room: u8, all: &[(u64, u64)]) -> Vec<u8> {
    let entry = |(logical, block): &(u64, u64)| [low(*logical), low(*block), [0; 4]].concat();
    node(depth, room.into(), &all.iter().flat_map(entry).collect::<Vec<_>>())
}

fn node(depth: u8, room: u16, entries: &[u8]) -> Vec<u8> {
    let count = u16::try_from(entries.len() / 12).unwrap();
    let head = [0xf30au16, count, room.max(count), depth.into(), 0, 0];
    [head.map(u16::to_le_bytes).concat(), entries.to_vec()].concat()
}

/// Directory blocks with these entries.
fn entries<'a>(names: impl IntoIterator<Item = &'a (u64, String)>) -> Vec<u8> {
    let (mut all, mut last) = (Vec::new(), None);
    let end = |all: &mut Vec<u8>, last: Option<usize>| {
        let Some(last) = last else { return };
        all.resize(all.len().next_multiple_of(4096), 0);
        let len = u16::try_from(all.len() - last).unwrap();
        all[last + 4..last + 6].copy_from_slice(&len.to_le_bytes());
    };
    for (inode, name) in names {
        let len = (8 + name.len()).next_multiple_of(4);
        if all.len() % 4096 + len > 4096 {
            end(&mut all, last);
        }
        last = Some(all.len());
        all.extend(low(*inode));
        // Type 0 tells nothing.
        all.extend([u8::try_from(len & 0xff).unwrap(), u8::try_from(len >> 8).unwrap()]);
        all.extend([u8::try_from(name.len()).unwrap(), 0]);
        all.extend(name.as_bytes());
        all.resize(last.unwrap_or(0) + len, 0);
    }
    end(&mut all, last);
    all
}

fn sound(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 1);
    volume.root(2, 0);
    volume.block(FREE, b"hello");
    volume.inode(FIRST, FILE, 1, 5, &extents(&[(0, 1, FREE)]), &[]);
    volume.inode(FIRST + 1, PIPE, 1, 0, &[], &[]);
    volume.finish()
}

/// Four index blocks at `at`, the leaves behind them; each leaf has as many extents as fit, of one block each, with gaps.
fn tree(volume: &Volume<'_>, at: u64, leaves: u64, data: u64) -> Vec<u8> {
    let first = |leaf: u64| leaf * PER_BLOCK;
    let per_index = leaves.div_ceil(4);
    for leaf in 0..leaves {
        let run = |index: u64| [low(index), low(1), low(data + index * 2)].concat();
        let runs: Vec<u8> = (first(leaf)..first(leaf + 1)).flat_map(run).collect();
        volume.block(at + 4 + leaf, &node(0, 340, &runs));
    }
    let below = |i: u64| (i * per_index..leaves.min((i + 1) * per_index)).map(|leaf| (first(leaf), at + 4 + leaf));
    for i in 0..4 {
        volume.block(at + i, &index(1, 0, &below(i).collect::<Vec<_>>()));
    }
    index(2, 4, &[0, 1, 2, 3].map(|i| (first(i * per_index), at + i)))
}

fn shared_map(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 32);
    let map = tree(&volume, FREE, 4 * PER_BLOCK, GROUP);
    volume.root(2000, 0);
    let len = 4 * PER_BLOCK * PER_BLOCK * BLOCK;
    (0..2000).for_each(|index| volume.inode(FIRST + index, FILE, 1, len, &map, &[]));
    volume.finish()
}

fn shared_blocks(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 1);
    volume.root(2, 0);
    volume.inode(FIRST, FILE, 1, 16 * BLOCK, &extents(&[(0, 16, FREE)]), &[]);
    volume.inode(FIRST + 1, FILE, 1, 4 * BLOCK, &extents(&[(0, 4, FREE + 8)]), &[]);
    volume.finish()
}

fn giant_directories(lab: &Lab) -> Option<PathBuf> {
    let len = GROUP - FREE;
    let volume = Volume::new(lab, 8001);
    volume.root(2000, 2000);
    for index in 0..2000 {
        let extent = |part: u64| (part * len, len, (1 + index * 4 + part) * GROUP + FREE);
        let map = extents(&[0, 1, 2, 3].map(extent));
        volume.inode(FIRST + index, DIRECTORY, 2, 4 * len * BLOCK, &map, &[]);
    }
    volume.finish()
}

fn shared_table(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 256);
    volume.root(1, 0);
    (FIRST..=INODES).for_each(|number| volume.inode(number, PIPE, 1, 0, &[], &[]));
    (0..256).for_each(|group| volume.describe(group, TABLE));
    volume.finish()
}

fn shared_attributes(lab: &Lab) -> Option<PathBuf> {
    const FILES: u64 = 100_000;
    let volume = Volume::new(lab, 4);
    volume.root(FILES, 0);
    // ext4_xattr_header, and one entry: length of the name, user., place and length of the value, the name.
    let mut block = vec![0; 4096];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[low(0xea02_0000), low(FILES), low(1)].concat());
    put(0x20, &[&[1, 1, 64, 0][..], &[0; 4], &low(4032), &[0; 4], b"a"].concat());
    volume.block(ROOT_AT - 1, &block);
    (FIRST..FIRST + FILES).for_each(|number| volume.inode(number, FILE, 1, 0, &[], &[(0x68, &low(ROOT_AT - 1))]));
    volume.finish()
}

fn giant_value(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 1);
    volume.root(1, 0);
    let map = tree(&volume, FREE, 4, FREE + 1024);
    let flags = (EXTENTS | EA_INODE).to_le_bytes();
    volume.inode(FIRST + 1, FILE, 1, BLOCK, &map, &[(0x20, &flags)]);
    // The list in the inode, behind 32 bytes of fields.
    let entry = [&low(0xea02_0000)[..], &[1, 1, 0, 0], &low(FIRST + 1), &low(BLOCK), &[0; 4], b"a"].concat();
    volume.inode(FIRST, FILE, 1, 0, &extents(&[]), &[(160, &entry)]);
    volume.finish()
}

fn far_names(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 1);
    volume.inode(FIRST, FILE, 18_750, 0, &[], &[]);
    volume.inode(FIRST + 1, FILE, 18_750, 0, &[], &[]);
    volume.inode(FIRST + 2, FILE, 1, 0, &[], &[]);
    let name = "n".repeat(250);
    for level in 0..15 {
        let (number, parent) = if level == 0 { (ROOT, ROOT) } else { (99 + level, 98 + level) };
        let parent = if level == 1 { ROOT } else { parent };
        let mut names = vec![(100 + level, name.clone())];
        names.extend((level == 0).then(|| (FIRST + 2, "f0".to_owned())));
        volume.directory(number, parent, 1, FREE + level, &names);
    }
    let names: Vec<_> = (0..37_500).map(|index| (FIRST + index % 2, format!("{index:08}"))).collect();
    volume.directory(114, 113, 0, FREE + 100, &names);
    volume.finish()
}

fn many_names(lab: &Lab) -> Option<PathBuf> {
    let volume = Volume::new(lab, 2);
    let one = vec![(FIRST, "n".to_owned()); 341];
    let block = entries(&one);
    let blocks = 2_000_000 / 341 + 2;
    volume.block(GROUP + FREE, &entries(&[(ROOT, ".".to_owned()), (ROOT, "..".to_owned())]));
    (1..blocks).for_each(|index| volume.block(GROUP + FREE + index, &block));
    volume.inode(ROOT, DIRECTORY, 2, blocks * BLOCK, &extents(&[(0, blocks, GROUP + FREE)]), &[]);
    volume.inode(FIRST, FILE, 1, 0, &[], &[]);
    volume.finish()
}
