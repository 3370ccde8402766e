//! MBR partition tables: those that sfdisk makes, and hostile ones.

use proptest::prelude::*;
use vmbake_disk::mbr::{self, OsType, Table};

use crate::tools::{have, run};

const SECTOR: usize = 512;

/// A disk that sfdisk divides as `script` says.
fn made(script: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (disk, rules) = (dir.path().join("disk.raw"), dir.path().join("script"));
    std::fs::File::create(&disk).unwrap().set_len(64 << 20).unwrap();
    std::fs::write(&rules, format!("label: dos\nlabel-id: 0x1234abcd\n{script}")).unwrap();
    run("sh", &["-c", &format!("sfdisk --quiet {} < {}", disk.display(), rules.display())]);
    std::fs::read(&disk).unwrap()
}

#[test]
fn reads_what_sfdisk_made() {
    if !have("sfdisk") {
        return;
    }
    let disk = made(
        "start=2048,size=40960,type=83,bootable\nstart=43008,size=2048,type=ef\nstart=45056,size=80000,type=5\n\
         start=126976,size=2048,type=c\nstart=47104,size=20480,type=83\nstart=69632,size=20480,type=82\n",
    );
    let table = mbr::read(&disk).unwrap().unwrap();
    assert_eq!((table.signature, &table.damage), (0x1234_ABCD, &None));
    let sectors = |n: u64| n * 512;
    let found: Vec<_> = table.partitions.iter().map(|p| (p.number, p.os_type, p.start, p.len)).collect();
    let expected = [
        (1, OsType::LINUX, sectors(2048), sectors(40960)),
        (2, OsType(0xEF), sectors(43008), sectors(2048)),
        (3, OsType(5), sectors(45056), sectors(80000)),
        (4, OsType(0x0C), sectors(126_976), sectors(2048)),
        (5, OsType::LINUX, sectors(47104), sectors(20480)),
        (6, OsType(0x82), sectors(69632), sectors(20480)),
    ];
    assert_eq!(found, expected);
}

fn entry(disk: &mut [u8], sector: usize, index: usize, os_type: u8, start: u32, sectors: u32) {
    let at = sector * SECTOR + 446 + index * 16;
    disk[at + 4] = os_type;
    disk[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
    disk[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    disk[sector * SECTOR + 510..][..2].copy_from_slice(&[0x55, 0xAA]);
}

/// One extended partition from sector 8 on.
fn extended() -> Vec<u8> {
    let mut disk = vec![0; 1 << 20];
    entry(&mut disk, 0, 0, 0x05, 8, 1000);
    disk
}

fn read(disk: &Vec<u8>) -> Table {
    mbr::read(disk).unwrap().unwrap()
}

#[test]
fn chains_that_do_not_end_are_cut() {
    // Comes back to its first sector.
    let mut disk = extended();
    entry(&mut disk, 8, 0, 0x83, 1, 1);
    entry(&mut disk, 8, 1, 0x05, 2, 10);
    entry(&mut disk, 10, 0, 0x83, 1, 1);
    entry(&mut disk, 10, 1, 0x05, 0, 10);
    let table = read(&disk);
    assert_eq!(table.partitions.len(), 3);
    assert_eq!(table.damage.unwrap(), "loop in the chain of logical partitions at sector 8");
    // Longer than Linux follows it.
    let mut disk = extended();
    for step in 0..200 {
        entry(&mut disk, 8 + step * 2, 0, 0x83, 1, 1);
        entry(&mut disk, 8 + step * 2, 1, 0x05, u32::try_from(step * 2 + 2).unwrap(), 2);
    }
    let table = read(&disk);
    assert_eq!(table.partitions.last().unwrap().number, 104);
    assert_eq!(table.damage.unwrap(), "more than 100 logical partitions");
}

#[test]
fn chains_that_lead_nowhere_are_told() {
    let mut disk = extended();
    assert_eq!(read(&disk).damage.unwrap(), "sector 8 is not a table of logical partitions");
    entry(&mut disk, 8, 0, 0x83, 1, 1);
    entry(&mut disk, 8, 1, 0x05, u32::MAX, 1);
    let table = read(&disk);
    assert_eq!(table.partitions.len(), 2);
    assert_eq!(table.damage.unwrap(), "sector 4294967303 of the logical partitions is missing");
}

#[test]
fn other_first_sectors_are_no_tables() {
    let mut disk = vec![0; 1 << 20];
    assert_eq!(mbr::read(&disk).unwrap(), None);
    disk[510..512].copy_from_slice(&[0x55, 0xAA]);
    assert_eq!(mbr::read(&disk).unwrap(), None, "no entry");
    entry(&mut disk, 0, 1, 0x83, 1, 1);
    assert!(mbr::read(&disk).unwrap().is_some());
    disk[446] = 0x20;
    assert_eq!(mbr::read(&disk).unwrap(), None, "code in the place of an entry");
    assert!(mbr::read(&vec![0; 511]).is_err());
}

proptest! {
    #[test]
    fn random_entries_never_panic(
        entries in prop::collection::vec((0usize..40, 0usize..4, prop::sample::select(vec![0, 5, 0x0F, 0x83, 0xEE]), 0u32..50, any::<u32>()), 0..30),
        cut in prop::option::of(0usize..(1 << 20)),
    ) {
        let mut disk = extended();
        for (sector, index, os_type, start, sectors) in entries {
            entry(&mut disk, sector, index, os_type, start, sectors);
        }
        disk.truncate(cut.unwrap_or(disk.len()));
        if let Ok(Some(table)) = mbr::read(&disk) {
            prop_assert!(table.partitions.len() <= 4 + 4 * 2 * 101);
        }
    }
}
