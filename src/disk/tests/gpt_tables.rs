//! Partition tables: read what sgdisk made, have sgdisk verify what we write, survive damage.

use crate::tools::{have, run};
use proptest::prelude::*;
use vmbake_disk::gpt::{self, GptError, Guid, Table};
use vmbake_disk::source::ReadAt;

const MIB: u64 = 1 << 20;
const MIB_LEN: usize = 1 << 20;

/// A small disk laid out as Debian's cloud images are: p14 BIOS boot, p15 ESP, p1 root at the end.
fn debian_disk(dir: &tempfile::TempDir) -> Option<Vec<u8>> {
    if !have("sgdisk") {
        return None;
    }
    let path = dir.path().join("disk.raw");
    std::fs::File::create(&path).unwrap().set_len(64 * MIB).unwrap();
    let path_text = path.to_str().unwrap();
    run(
        "sgdisk",
        &[
            "--set-alignment=2048",
            "--disk-guid=01234567-89AB-CDEF-0123-456789ABCDEF",
            "--new=14:2048:+3M",
            "--typecode=14:EF02",
            "--partition-guid=14:00000000-0000-4000-8000-00000000000E",
            "--new=15:8192:+8M",
            "--typecode=15:EF00",
            "--partition-guid=15:00000000-0000-4000-8000-00000000000F",
            "--change-name=15:EFI ä 💾",
            "--attributes=15:set:2",
            "--new=1:32768:129023",
            "--typecode=1:8304",
            "--partition-guid=1:00000000-0000-4000-8000-000000000001",
            path_text,
        ],
    );
    let mut disk = std::fs::read(path).unwrap();
    for (at, byte) in disk[..440].iter_mut().enumerate() {
        *byte = u8::try_from(at % 251).unwrap();
    }
    Some(disk)
}

/// Has sgdisk verify a disk that consists of the two ends and zeros between.
fn sgdisk_verify(dir: &tempfile::TempDir, disk: &[u8]) -> String {
    let path = dir.path().join("verify.raw");
    std::fs::write(&path, disk).unwrap();
    run("sgdisk", &["--verify", path.to_str().unwrap()])
}

fn disk_of(head: &[u8], tail: &[u8], len: u64) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(len).unwrap()];
    disk[..head.len()].copy_from_slice(head);
    let end = disk.len() - tail.len();
    disk[end..].copy_from_slice(tail);
    disk
}

#[test]
fn reads_what_sgdisk_made() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = debian_disk(&dir) else { return };
    let table = gpt::read(&disk).unwrap();
    assert_eq!(table.disk_guid.to_string(), "01234567-89AB-CDEF-0123-456789ABCDEF");
    assert_eq!((table.first_usable, table.capacity), (34 * 512, 128));
    assert_eq!((&table.used_backup, &table.backup_damage), (&None, &None));
    assert_eq!(&table.mbr.boot_code[..], &disk[..440]);
    let found: Vec<_> = table.partitions.iter().map(|p| (p.number, p.type_guid, p.start, p.len)).collect();
    let sectors = |n: u64| n * 512;
    assert_eq!(
        found,
        [
            (1, Guid::ROOT_X86_64, sectors(32768), sectors(129024 - 32768)),
            (14, Guid::BIOS_BOOT, sectors(2048), 3 * MIB),
            (15, Guid::ESP, sectors(8192), 8 * MIB),
        ]
    );
    let esp = table.partition(15).unwrap();
    assert_eq!((esp.name.as_str(), esp.attributes), ("EFI ä 💾", 4));
    assert_eq!(esp.guid.to_string(), "00000000-0000-4000-8000-00000000000F");
    assert!(table.partition(2).is_none());
}

#[test]
fn writes_what_sgdisk_accepts_at_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = debian_disk(&dir) else { return };
    let base = gpt::read(&disk).unwrap();
    // Same size: every byte of both copies as sgdisk wrote them, but for the MBR's entry, whose CHS and flags differ.
    let (head, tail) = gpt::write(&base, disk.len() as u64).unwrap();
    assert_eq!(&head[..440], &disk[..440]);
    assert_eq!(&head[512..], &disk[512..head.len()]);
    assert_eq!(&tail[..], &disk[disk.len() - tail.len()..]);
    for len in [24 * MIB, 65 * MIB + 512, 128 * MIB] {
        let mut table = base.clone();
        table.partitions[0].len = len - 2 * MIB - table.partitions[0].start;
        table.partitions[0].len -= table.partitions[0].len % 512;
        let (head, tail) = gpt::write(&table, len).unwrap();
        let disk = disk_of(&head, &tail, len);
        assert_eq!(gpt::read(&disk).unwrap(), table);
        let verdict = sgdisk_verify(&dir, &disk);
        assert!(verdict.contains("No problems found"), "{verdict}");
    }
}

#[test]
fn keeps_the_first_usable_sector_and_odd_capacities() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = debian_disk(&dir) else { return };
    for (first_usable, capacity) in [(2048 * 512, 128), (34 * 512, 56), (34 * 512, 256)] {
        let table = Table { first_usable, capacity, ..gpt::read(&disk).unwrap() };
        let (head, tail) = gpt::write(&table, 64 * MIB).unwrap();
        let disk = disk_of(&head, &tail, 64 * MIB);
        let read = gpt::read(&disk).unwrap();
        assert_eq!(read.capacity, capacity);
        assert_eq!(read.first_usable, first_usable.max(head.len() as u64));
        let verdict = sgdisk_verify(&dir, &disk);
        assert!(verdict.contains("No problems found"), "{verdict}");
    }
}

#[test]
fn damage_of_one_copy_is_reported_and_survived() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = debian_disk(&dir) else { return };
    let intact = gpt::read(&disk).unwrap();
    let last = disk.len() - 512;
    for (offset, reason) in [
        (512, "signature"),
        (512 + 56, "header at sector 1 has checksum"),
        (1024 + 3, "entry array at sector 2 has checksum"),
    ] {
        let mut damaged = disk.clone();
        damaged[offset] ^= 1;
        let table = gpt::read(&damaged).unwrap();
        assert!(table.used_backup.as_ref().unwrap().contains(reason), "{table:?}");
        assert_eq!(Table { used_backup: None, ..table }, intact);
        // Both damaged: the error names both reasons.
        damaged[last + 56] ^= 1;
        let error = gpt::read(&damaged).unwrap_err();
        assert!(matches!(&error, GptError::BothUnusable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(reason) && text.contains(&format!("header at sector {}", last / 512)), "{text}");
    }
    let mut damaged = disk.clone();
    damaged[last - 32 * 512] ^= 1;
    let table = gpt::read(&damaged).unwrap();
    assert!(table.used_backup.is_none());
    assert!(table.backup_damage.as_ref().unwrap().contains("entry array"), "{table:?}");
}

#[test]
fn a_lengthened_disk_still_finds_its_backup() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut disk) = debian_disk(&dir) else { return };
    let intact = gpt::read(&disk).unwrap();
    disk.resize(disk.len() + 4096 * 512, 0);
    assert_eq!(gpt::read(&disk).unwrap(), intact);
    // Corrupt entries with an intact header, which still has the location of the backup.
    disk[1024] ^= 1;
    assert!(gpt::read(&disk).unwrap().used_backup.is_some());
}

#[test]
fn a_truncated_disk_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut disk) = debian_disk(&dir) else { return };
    disk.truncate(disk.len() / 2);
    let error = gpt::read(&disk).unwrap_err();
    let GptError::BothUnusable { primary, .. } = error else { panic!("{error}") };
    assert!(matches!(*primary, GptError::OutOfBounds { number: 1, .. }), "{primary}");
}

#[test]
fn hybrid_mbr_is_told_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = debian_disk(&dir) else { return };
    let path = dir.path().join("hybrid.raw");
    std::fs::write(&path, &disk).unwrap();
    run("sgdisk", &["--hybrid=15", path.to_str().unwrap()]);
    let table = gpt::read(&std::fs::read(&path).unwrap()).unwrap();
    assert!(table.mbr.hybrid);
    assert!(matches!(gpt::write(&table, 64 * MIB), Err(GptError::HybridMbr)));
}

/// A disk with sectors of 4096 bytes, made by another implementation: a root of 1 MiB from sector 16 on.
pub fn large_sectors() -> Vec<u8> {
    let mut disk = std::io::Cursor::new(vec![0; 4 * MIB_LEN]);
    let mut table = gptman::GPT::new_from(&mut disk, 4096, [7; 16]).unwrap();
    table[1] = gptman::GPTPartitionEntry {
        partition_type_guid: Guid::ROOT_X86_64.0,
        unique_partition_guid: [1; 16],
        starting_lba: 16,
        ending_lba: 271,
        attribute_bits: 0,
        partition_name: "root".into(),
    };
    table.write_into(&mut disk).unwrap();
    gptman::GPT::write_protective_mbr_into(&mut disk, 4096).unwrap();
    disk.into_inner()
}

#[test]
fn sectors_of_4096_bytes_are_read_and_not_written() {
    let mut disk = large_sectors();
    let table = gpt::read(&disk).unwrap();
    assert_eq!((table.sector, &table.used_backup, &table.backup_damage), (4096, &None, &None));
    let root = table.partition(1).unwrap();
    assert_eq!((root.start, root.len, root.name.as_str()), (16 * 4096, MIB, "root"));
    assert!(matches!(gpt::write(&table, 4 * MIB), Err(GptError::SectorSize { found: 4096 })));
    // Only the backup is left, in the last sector of that length.
    disk[4096..8192].fill(0);
    let table = gpt::read(&disk).unwrap();
    assert!(table.sector == 4096 && table.used_backup.is_some(), "{table:?}");
    disk.truncate(disk.len() - 4096);
    assert!(matches!(gpt::read(&disk), Err(GptError::BothUnusable { .. })));
}

#[test]
fn bad_layouts_are_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = debian_disk(&dir) else { return };
    let table = gpt::read(&disk).unwrap();
    let write = |change: &dyn Fn(&mut Table)| {
        let mut table = table.clone();
        change(&mut table);
        gpt::write(&table, 64 * MIB).unwrap_err()
    };
    assert!(matches!(write(&|t| t.partitions[1].len = 100 * 512 + 3 * MIB), GptError::Overlap { a: 14, b: 15 }));
    assert!(matches!(write(&|t| t.partitions[0].len = 48 * MIB), GptError::OutOfBounds { number: 1, .. }));
    assert!(matches!(write(&|t| t.partitions[1].start = 512), GptError::OutOfBounds { number: 14, .. }));
    assert!(matches!(
        write(&|t| t.partitions[1].guid = t.partitions[0].guid),
        GptError::DuplicateGuid { a: 1, b: 14, .. }
    ));
    assert!(matches!(write(&|t| t.partitions[1].number = 15), GptError::Unwritable { number: 15, .. }));
    assert!(matches!(write(&|t| t.partitions[1].number = 129), GptError::Unwritable { number: 129, .. }));
    assert!(matches!(write(&|t| t.partitions[1].number = 0), GptError::Unwritable { number: 0, .. }));
    assert!(matches!(write(&|t| t.partitions[1].name = "x".repeat(37)), GptError::Unwritable { number: 14, .. }));
    assert!(matches!(write(&|t| t.partitions[1].len -= 1), GptError::Unwritable { number: 14, .. }));
    assert!(matches!(gpt::write(&table, 64 * MIB + 1), Err(GptError::DiskLen { .. })));
    assert!(matches!(gpt::write(&table, 67 * 512), Err(GptError::DiskLen { min, .. }) if min == 68 * 512));
}

#[test]
fn what_is_no_gpt_disk_is_told_apart() {
    assert!(matches!(gpt::read(&Vec::new()), Err(GptError::Read { lba: 0, .. })));
    assert!(matches!(gpt::read(&vec![0; 4096]), Err(GptError::NoProtectiveMbr)));
    let mut only_mbr = vec![0; 4096];
    (only_mbr[510], only_mbr[511], only_mbr[446 + 4]) = (0x55, 0xAA, 0xEE);
    let error = gpt::read(&only_mbr).unwrap_err();
    assert!(matches!(error, GptError::BothUnusable { .. }), "{error}");
}

/// A disk of 1 MiB with three partitions, made by our writer, so that random damage needs no tool.
fn small_disk() -> Vec<u8> {
    let partition = |number: u32, start: u64| gpt::Partition {
        number,
        type_guid: Guid::LINUX,
        guid: Guid([u8::try_from(number).unwrap(); 16]),
        start,
        len: 64 * 1024,
        attributes: 0,
        name: format!("p{number}"),
    };
    let table = Table {
        disk_guid: Guid([7; 16]),
        partitions: vec![partition(1, 512 * 1024), partition(14, 64 * 1024), partition(15, 128 * 1024)],
        first_usable: 34 * 512,
        capacity: 128,
        sector: 512,
        mbr: gpt::Mbr { boot_code: [0x90; 440], hybrid: false },
        used_backup: None,
        backup_damage: None,
    };
    let (head, tail) = gpt::write(&table, MIB).unwrap();
    disk_of(&head, &tail, MIB)
}

/// Sets the checksums of the primary copy right, so that damage reaches the checks behind them.
fn fix_primary(disk: &mut [u8]) {
    let count = u32::from_le_bytes(disk[512 + 80..512 + 84].try_into().unwrap()).min(128) as usize;
    let entries = crc32(&disk[1024..1024 + count * 128]);
    disk[512 + 88..512 + 92].copy_from_slice(&entries.to_le_bytes());
    disk[512 + 16..512 + 20].fill(0);
    let header = crc32(&disk[512..512 + 92]);
    disk[512 + 16..512 + 20].copy_from_slice(&header.to_le_bytes());
}

fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

#[test]
fn hostile_headers_are_refused_by_their_reason() {
    let cases: [(usize, &[u8], &str); 9] = [
        (512 + 8, &2u32.to_le_bytes(), "the revision"),
        (512 + 12, &512u32.to_le_bytes(), "the header size"),
        (512 + 24, &9u64.to_le_bytes(), "the sector that the header claims"),
        (512 + 72, &u64::MAX.to_le_bytes(), "the sector number"),
        (512 + 80, &u32::MAX.to_le_bytes(), "the number of entries"),
        (512 + 84, &u32::MAX.to_le_bytes(), "the entry size"),
        (1024 + 40, &0u64.to_le_bytes(), "before its first"),
        (1024 + 40, &u64::MAX.to_le_bytes(), "the last sector of a partition"),
        (1024 + 32, &40u64.to_le_bytes(), "overlap"),
    ];
    for (offset, bytes, reason) in cases {
        let mut disk = small_disk();
        disk[offset..offset + bytes.len()].copy_from_slice(bytes);
        fix_primary(&mut disk);
        let table = gpt::read(&disk).unwrap();
        let found = table.used_backup.unwrap();
        assert!(found.contains(reason), "{reason}: {found}");
    }
}

proptest! {
    /// Damage anywhere in the metadata: an error or a table whose partitions are inside the disk, never a panic.
    #[test]
    fn random_damage_never_panics(
        flips in prop::collection::vec((prop_oneof![0usize..1024 + 15 * 128, (MIB_LEN - 33 * 512)..MIB_LEN], 0u8..8), 0..6),
        fix in any::<bool>(),
        cut in prop::option::of(0usize..MIB_LEN),
    ) {
        let mut disk = small_disk();
        for (at, bit) in flips {
            disk[at] ^= 1 << bit;
        }
        if fix {
            fix_primary(&mut disk);
        }
        disk.truncate(cut.unwrap_or(disk.len()));
        if let Ok(table) = gpt::read(&disk) {
            for partition in &table.partitions {
                prop_assert!(partition.len > 0 && partition.end() <= ReadAt::len(&disk));
            }
            let _ = gpt::write(&table, MIB);
        }
    }
}
