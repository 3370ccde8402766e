//! Partition tables: partitions lie on the disk, and are those of its layout. The checksums of the first table are made right, as no
//! mutation would pass them.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use vmbake_disk::layout::Layout;
use vmbake_disk::{gpt, mbr};

/// The header, in sectors of 512 bytes, and the offset of its checksum.
const HEADER: std::ops::Range<usize> = 512..512 + 92;
const CRC: usize = 512 + 16;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    sealed(&mut bytes);
    let _ = mbr::read(&bytes);
    let table = gpt::read(&bytes);
    let len = bytes.len() as u64;
    let layout = Layout::read(Arc::new(bytes));
    let Ok(table) = table else { return };
    for partition in &table.partitions {
        assert!(partition.end() <= len);
        if let Ok(layout) = &layout {
            layout.part(partition.number).unwrap();
        }
    }
});

/// Computes both checksums of the first table anew, if there is one.
fn sealed(bytes: &mut [u8]) -> Option<()> {
    let number =
        |at: usize| Some(usize::try_from(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).unwrap());
    let (at, count, size) = (number(512 + 72)?, number(512 + 80)?, number(512 + 84)?);
    let begin = at.checked_mul(512)?;
    let entries = crc32fast::hash(bytes.get(begin..begin.checked_add(count.checked_mul(size)?)?)?);
    bytes.get_mut(512 + 88..HEADER.end)?.copy_from_slice(&entries.to_le_bytes());
    bytes.get_mut(CRC..CRC + 4)?.fill(0);
    let header = crc32fast::hash(bytes.get(HEADER)?);
    bytes.get_mut(CRC..CRC + 4)?.copy_from_slice(&header.to_le_bytes());
    Some(())
}
