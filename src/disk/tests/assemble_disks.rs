//! Disks assembled from a base disk and a new root file system, verified by sgdisk and compared byte by byte.

use std::path::Path;
use std::sync::Arc;

use crate::tools::{have, run};
use vmbake_disk::disk::{Arch, AssembleError, BaseDisk, Disk, assemble, open, root_len};
use vmbake_disk::gpt::{self, Guid};
use vmbake_disk::layout::LayoutError;
use vmbake_disk::source::{Extent, Map, ReadAt, Sources};

const MIB: u64 = 1 << 20;

/// Makes a disk with sgdisk and fills every sector with a pattern that identifies its location.
fn base(dir: &Path, len: u64, args: &[&str]) -> Vec<u8> {
    let path = dir.join("base.raw");
    let mut pattern: Vec<u8> = (0..len).map(|at| u8::try_from((at / 512 * 7 + at) % 253).unwrap()).collect();
    pattern[512..34 * 512].fill(0);
    let end = pattern.len();
    pattern[end - 33 * 512..].fill(0);
    pattern[440..512].fill(0);
    std::fs::write(&path, &pattern).unwrap();
    run("sgdisk", &[args, &["--set-alignment=2048", path.to_str().unwrap()]].concat());
    std::fs::read(path).unwrap()
}

/// p14 BIOS boot, p15 ESP, p1 root, as Debian's cloud images have them.
const DEBIAN: [&str; 8] = [
    "--new=14:2048:8191",
    "--typecode=14:EF02",
    "--new=15:8192:24575",
    "--typecode=15:EF00",
    "--new=1:24576:0",
    "--typecode=1:8304",
    "--change-name=15:esp",
    "--attributes=15:set:0",
];

/// A root file system of `len` bytes: data at both ends, a hole between.
fn root(len: u64) -> (Map, Sources) {
    let mut sources = Sources::default();
    let source = sources.add(Arc::new(vec![0xAB; 8192]));
    let mut map = Map::hole(len);
    map.push(Extent { at: 0, len: 4096, source, offset: 4096 });
    map.push(Extent { at: len - 4096, len: 4096, source, offset: 0 });
    (map, sources)
}

fn bytes_of(disk: &Disk) -> Vec<u8> {
    let mut bytes = vec![0xFF; usize::try_from(disk.len()).unwrap()];
    disk.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn opened(bytes: &[u8]) -> BaseDisk {
    open(Arc::new(bytes.to_vec()), None).unwrap()
}

#[test]
fn grown_shrunk_and_same_size() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let original = base(dir.path(), 64 * MIB, &DEBIAN);
    let base = opened(&original);
    assert_eq!((base.arch(), base.root().number), (Some(Arch::Amd64), 1));
    assert_eq!((base.esp().unwrap().number, base.bios_boot().unwrap().number), (15, 14));
    for len in [64 * MIB, 200 * MIB, 16 * MIB + 512] {
        let room = root_len(&base, len).unwrap();
        assert_eq!(room, (len - 33 * 512) / MIB * MIB - 12 * MIB);
        let (map, sources) = root(room);
        let disk = assemble(&base, len, &map, &sources).unwrap();
        let bytes = bytes_of(&disk);
        assert_eq!(bytes[..440], original[..440], "boot code");
        assert!(bytes[2048 * 512..24576 * 512] == original[2048 * 512..24576 * 512], "BIOS boot partition and ESP");
        let mut filesystem = vec![0xFF; usize::try_from(room).unwrap()];
        map.read_exact_at(&sources, &mut filesystem, 0).unwrap();
        let start = 24576 * 512;
        assert!(bytes[start..start + filesystem.len()] == filesystem, "root file system");
        let behind = bytes.len() - 33 * 512;
        assert!(bytes[start + filesystem.len()..behind].iter().all(|byte| *byte == 0), "nothing stale behind it");

        let path = dir.path().join("out.raw");
        std::fs::write(&path, &bytes).unwrap();
        let verdict = run("sgdisk", &["--verify", path.to_str().unwrap()]);
        assert!(verdict.contains("No problems found"), "{verdict}");
        let mut expected = base.table().clone();
        expected.partitions[0].len = room;
        assert_eq!(gpt::read(&bytes).unwrap(), expected);
    }
}

#[test]
fn partitions_are_opened_by_number() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let original = base(dir.path(), 32 * MIB, &DEBIAN);
    let base = opened(&original);
    let esp = base.partition_source(15).unwrap();
    let mut found = vec![0; 16384 * 512];
    assert_eq!(esp.len(), found.len() as u64);
    esp.read_exact_at(&mut found, 0).unwrap();
    assert!(found == original[8192 * 512..24576 * 512]);
    assert!(esp.read_exact_at(&mut [0], esp.len()).is_err());
    assert!(matches!(base.partition_source(2), Err(AssembleError::NoPartition { number: 2 })));
}

#[test]
fn finds_the_root_partition() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let two = ["--new=1:2048:4095", "--new=2:4096:0"];
    let typed = |a: &str, b: &str| {
        let types = [format!("--typecode=1:{a}"), format!("--typecode=2:{b}")];
        open(Arc::new(base(dir.path(), 8 * MIB, &[&two[..], &[&types[0], &types[1]]].concat())), None)
    };
    let arm = typed("EF00", "8305").unwrap();
    assert_eq!((arm.arch(), arm.root().number, arm.root().type_guid), (Some(Arch::Arm64), 2, Guid::ROOT_ARM64));
    let plain = typed("EF00", "8300").unwrap();
    assert_eq!((plain.arch(), plain.root().number), (None, 2));
    // A root's type decides over the general one.
    assert_eq!(typed("8300", "8304").unwrap().root().number, 2);
    for (a, b) in [("8300", "8300"), ("8304", "8305")] {
        let Err(AssembleError::Layout(LayoutError::SeveralRoots { candidates })) = typed(a, b) else {
            panic!("{a} {b}")
        };
        assert_eq!(candidates, "1 (1.0 MiB, no known file system), 2 (5.9 MiB, no known file system)");
    }
    let Err(AssembleError::Layout(LayoutError::NoRoot { found })) = typed("EF00", "8200") else { panic!() };
    assert_eq!(found, "1 (1.0 MiB, no known file system), 2 (5.9 MiB, no known file system)");
}

#[test]
fn the_chosen_partition_is_the_root() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let roots = ["--new=1:2048:4095", "--typecode=1:8304", "--new=2:4096:0", "--typecode=2:8305"];
    let disk = Arc::new(base(dir.path(), 8 * MIB, &roots));
    let chosen = open(disk.clone(), Some(2)).unwrap();
    assert_eq!((chosen.root().number, chosen.arch()), (2, Some(Arch::Arm64)));
    assert!(matches!(
        open(disk, Some(3)),
        Err(AssembleError::Layout(LayoutError::NoPartition { number: 3, found })) if found == "1, 2"
    ));
}

#[test]
fn what_stands_behind_the_root_stays() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The root ends in the middle of a block, and of a MiB.
    let args = ["--new=3:2048:20476", "--typecode=3:8304", "--new=1:20480:24575", "--typecode=1:8200"];
    let original = base(dir.path(), 16 * MIB, &args);
    let base = opened(&original);
    assert_eq!((base.root().number, root_len(&base, 16 * MIB).unwrap()), (3, 18429 * 512));
    let (map, sources) = root(18429 * 512 / 4096 * 4096);
    let bytes = bytes_of(&assemble(&base, 16 * MIB, &map, &sources).unwrap());
    assert_eq!(gpt::read(&bytes).unwrap(), *base.table());
    assert!(bytes[20480 * 512..24576 * 512] == original[20480 * 512..24576 * 512], "the partition behind");
    let mut filesystem = vec![0xFF; usize::try_from(map.len()).unwrap()];
    map.read_exact_at(&sources, &mut filesystem, 0).unwrap();
    assert!(bytes[MIB.try_into().unwrap()..][..filesystem.len()] == filesystem, "root file system");
    assert!(bytes[24576 * 512..bytes.len() - 33 * 512].iter().all(|byte| *byte == 0), "nothing stale");
    for wanted in [8 * MIB, 32 * MIB] {
        let error = root_len(&base, wanted).unwrap_err();
        let text = "refused: partition 1 (Linux swap) follows the root partition 3: the disk keeps the size of the base, \
                    16.0 MiB, and cannot be resized to";
        assert_eq!(error.to_string(), format!("{text} {}.0 MiB", wanted / MIB));
    }
}

#[test]
fn only_a_disk_whose_table_can_be_written_is_a_base() {
    if !have("sgdisk") || !have("mke2fs") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let refused = |bytes: Vec<u8>| open(Arc::new(bytes), None).map(|_| ()).unwrap_err().to_string();
    base(dir.path(), 16 * MIB, &["--new=1:2048:0", "--typecode=1:8300"]);
    let path = dir.path().join("base.raw");
    run("sgdisk", &["--gpttombr=1", path.to_str().unwrap()]);
    assert!(refused(std::fs::read(&path).unwrap()).starts_with("refused: an MBR partition table"));
    let ext4 = dir.path().join("ext4");
    run("mke2fs", &["-q", "-t", "ext4", ext4.to_str().unwrap(), "4M"]);
    assert!(refused(std::fs::read(&ext4).unwrap()).starts_with("refused: ext4 without a partition table"));
    assert!(refused(vec![0; 1 << 20]).starts_with("neither a partition table nor a known file system"));
}

#[test]
fn a_base_says_what_is_wrong_with_its_table() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let intact = base(dir.path(), 32 * MIB, &DEBIAN);
    assert!(opened(&intact).notes().is_empty());
    let mut damaged = intact.clone();
    damaged[512 + 56] ^= 1;
    let notes = opened(&damaged).notes();
    assert!(matches!(&notes[..], [one] if one.starts_with("using the backup partition table: ")), "{notes:?}");
    let mut damaged = intact;
    let last = damaged.len() - 512;
    damaged[last + 56] ^= 1;
    let notes = opened(&damaged).notes();
    assert!(matches!(&notes[..], [one] if one.starts_with("the backup partition table is invalid: ")), "{notes:?}");
}

#[test]
fn refusals() {
    if !have("sgdisk") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = opened(&base(dir.path(), 32 * MIB, &DEBIAN));
    let min = 13 * MIB + 33 * 512;
    assert!(matches!(root_len(&base, min - 1), Err(AssembleError::DiskTooSmall { min: found, .. }) if found == min));
    assert_eq!(root_len(&base, min).unwrap(), MIB);
    let (map, sources) = root(2 * MIB);
    let result = assemble(&base, min, &map, &sources);
    assert!(matches!(result, Err(AssembleError::RootTooLarge { len, room: MIB }) if len == 2 * MIB));
    assert!(matches!(assemble(&base, 32 * MIB + 1, &map, &sources), Err(AssembleError::DiskUnaligned { .. })));
    assert!(matches!(assemble(&base, 0, &map, &sources), Err(AssembleError::DiskTooSmall { .. })));
}
