//! Journals that need recovery: a volume reads as after a replay by e2fsck, and corruption is reported.
#![allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use proptest::prelude::*;
use vmbake_disk::ext4::{Corruption, JournalFault, Location, ReadError, read, read_base};
use vmbake_disk::source::FileSource;
use vmbake_disk::tree::{Origin, Tree};

/// Bytes of a block.
const BLOCK: usize = 1024;
/// How a block of the journal itself begins; in a block that was logged it is stored as zeros.
const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

/// Features of the volume, and how debugfs opens its journal.
const FORMS: &[(&str, &str)] = &[
    ("^metadata_csum,^64bit", "jo"),
    ("^metadata_csum,64bit", "jo"),
    ("^metadata_csum,^64bit", "jo -c"),
    ("metadata_csum,^64bit", "jo -c -v 2"),
    ("metadata_csum,64bit", "jo -c -v 2"),
    ("metadata_csum,^64bit", "jo -c -v 3"),
    ("metadata_csum,64bit", "jo -c -v 3"),
];

/// A volume with a file of three blocks, of which the journal has newer ones.
struct Volume {
    dir: tempfile::TempDir,
    image: PathBuf,
    /// First block of the file.
    first: usize,
}

impl Volume {
    fn new(features: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "1024", "-O", features, text(&image), "16M"]);
        let file = dir.path().join("file");
        std::fs::write(&file, vec![b'o'; 3 * BLOCK]).unwrap();
        run("debugfs", &["-w", "-R", &format!("write {} file", text(&file)), text(&image)]);
        let first = block_of(&image, "file");
        for (name, head) in [("plain", *b"new1"), ("escaped", MAGIC)] {
            let content: Vec<u8> = head.into_iter().chain((4..BLOCK).map(|at| (at % 241) as u8)).collect();
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        Self { dir, image, first }
    }

    /// Writes into the journal; `B0` to `B2` are the blocks of the file, names are those of new contents.
    fn log(&self, requests: &[&str]) {
        let path = |name: &str| text(&self.dir.path().join(name)).to_owned();
        // Word by word: the name of a temporary folder may well have `B0` in it.
        let meant = |word: &str| match word {
            "plain" | "escaped" => path(word),
            "B0" | "B1" | "B2" => (self.first + usize::from(word.as_bytes()[1] - b'0')).to_string(),
            _ => word.to_owned(),
        };
        let line = |request: &&str| request.split(' ').map(meant).collect::<Vec<_>>().join(" ");
        let commands: Vec<_> = requests.iter().map(line).collect();
        std::fs::write(self.dir.path().join("commands"), commands.join("\n") + "\njc\n").unwrap();
        run("debugfs", &["-w", "-f", &path("commands"), text(&self.image)]);
    }

    /// The file as debugfs reads it once e2fsck has replayed the journal.
    fn replayed(&self) -> Vec<u8> {
        let (copy, dumped) = (self.dir.path().join("copy"), self.dir.path().join("dumped"));
        std::fs::copy(&self.image, &copy).unwrap();
        run_any("e2fsck", &["-E", "journal_only", "-y", text(&copy)]);
        run("debugfs", &["-c", "-R", &format!("dump file {}", text(&dumped)), text(&copy)]);
        std::fs::read(&dumped).unwrap()
    }
}

/// The first block of a file.
fn block_of(image: &Path, name: &str) -> usize {
    let said = run("debugfs", &["-R", &format!("bmap {name} 0"), text(image)]);
    String::from_utf8_lossy(&said.stdout).trim().parse().unwrap()
}

fn source(image: &Path) -> Arc<FileSource> {
    Arc::new(FileSource::new(File::open(image).unwrap()).unwrap())
}

fn open_file(tree: &Tree) -> Vec<u8> {
    tree.read(b"/file", 1 << 20).unwrap()
}

#[test]
fn a_volume_is_read_as_its_journal_says() {
    if !have(&["mke2fs", "debugfs", "e2fsck"]) {
        return;
    }
    let new = |volume: &Volume, name: &str| std::fs::read(volume.dir.path().join(name)).unwrap();
    for (features, opened) in FORMS {
        let volume = Volume::new(features);
        let mut log = vec![*opened, "jw -b B0 plain", "jw -b B1 escaped"];
        // Into the oldest checksum debugfs counts revocations too, which neither the kernel nor e2fsck does.
        if *opened != "jo -c" {
            log.extend(["jw -b B2 plain", "jw -r B2"]);
        }
        volume.log(&log);
        let found = open_file(&read(source(&volume.image), Origin::default()).unwrap().1);
        assert!(found == volume.replayed(), "{features}: {opened}");
        let expected = [new(&volume, "plain"), new(&volume, "escaped"), vec![b'o'; BLOCK]].concat();
        assert!(found == expected, "{features}: {opened}");
        match read_base(source(&volume.image), Origin::default()) {
            Err(ReadError::Unsupported { feature, .. }) => assert!(feature.contains("needs_recovery"), "{feature}"),
            other => panic!("{features}: {:?}", other.map(|_| ())),
        }
    }
}

#[test]
fn what_was_not_committed_never_was() {
    if !have(&["mke2fs", "debugfs", "e2fsck"]) {
        return;
    }
    for (features, opened) in FORMS {
        let volume = Volume::new(features);
        volume.log(&[opened, "jw -b B0 plain", "jw -c -b B1 plain"]);
        let found = open_file(&read(source(&volume.image), Origin::default()).unwrap().1);
        assert!(found == volume.replayed(), "{features}: {opened}");
        assert_eq!(found[BLOCK..], [b'o'; 2 * BLOCK], "{features}: {opened}");
    }
}

#[test]
fn damage_and_what_is_not_replayed_are_told() {
    if !have(&["mke2fs", "debugfs"]) {
        return;
    }
    let volume = Volume::new("metadata_csum,64bit");
    volume.log(&["jo -c -v 3", "jw -b B0 plain", "jw -b B1 plain"]);
    let good = std::fs::read(&volume.image).unwrap();
    let journal = block_of(&volume.image, "<8>") * BLOCK;
    // The superblock of the journal, a descriptor, what it describes, and a commit that another follows.
    for (block, at) in [(0, 0x10), (1, 20), (2, 100), (3, 0x30)] {
        let mut image = good.clone();
        image[journal + block * BLOCK + at] ^= 4;
        match read(Arc::new(image), Origin::default()) {
            Err(ReadError::Corrupt {
                place: Location::Journal(_),
                what: Corruption::Checksum { .. } | Corruption::Journal(JournalFault::Transaction),
            }) => {}
            other => panic!("block {block}: {:?}", other.map(|_| ())),
        }
    }
    let unsupported = |image: Vec<u8>, word: &str| match read(Arc::new(image), Origin::default()) {
        Err(ReadError::Unsupported { feature, .. }) => assert!(feature.contains(word), "{feature}"),
        other => panic!("{word}: {:?}", other.map(|_| ())),
    };
    let plain = Volume::new("^metadata_csum,64bit");
    plain.log(&["jo", "jw -b B0 plain"]);
    let journal = block_of(&plain.image, "<8>") * BLOCK;
    let mut image = std::fs::read(&plain.image).unwrap();
    image[journal + 0x2b] |= 0x40;
    unsupported(image.clone(), "journal features 0x40");
    // Fast commits, 256 blocks of them of which Linux leaves the first unused, of the transaction after the only one.
    image[journal + 0x2b] ^= 0x60;
    let fast = journal + (u32_at(&image, journal + 0x10) as usize - 255) * BLOCK;
    let next = (u32_at(&image, journal + 0x18) + 1).to_le_bytes();
    image[fast..fast + 12].copy_from_slice(&[&[9, 0, 8, 0, 0, 0, 0, 0], &next[..]].concat());
    unsupported(image.clone(), "fast commits");
    // Those of an earlier transaction are left over.
    image[fast + 8..fast + 12].fill(0);
    assert!(read(Arc::new(image.clone()), Origin::default()).is_ok());
    // The journal is said to be on another device.
    image[1024 + 0xe0..1024 + 0xe4].fill(0);
    unsupported(image, "external journal");
}

fn u32_at(image: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(image[at..at + 4].try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 21, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_journals_never_panic(form in 0..FORMS.len(), flips in prop::collection::vec((0..12 * BLOCK, 0u8..8), 12)) {
        if !have(&["mke2fs", "debugfs"]) {
            return Ok(());
        }
        let volume = Volume::new(FORMS[form].0);
        volume.log(&[FORMS[form].1, "jw -b B0 plain", "jw -b B1 escaped", "jw -r B2"]);
        let good = std::fs::read(&volume.image).unwrap();
        let journal = block_of(&volume.image, "<8>") * BLOCK;
        for (at, bit) in flips {
            // Most of a block are zeros or content: half of the flips go to where numbers are.
            let at = if bit % 2 == 0 { at / BLOCK * BLOCK + at % 96 } else { at };
            let mut image = good.clone();
            image[journal + at] ^= 1 << bit;
            drop(read(Arc::new(image), Origin::default()));
        }
    }
}
