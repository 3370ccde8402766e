//! The format that Google Compute Engine imports: an archive with the raw disk as its only member, `disk.raw`, in GNU
//! tar's old format with a list of its holes (GNU tar manual, "Basic Tar Format", `struct gnu_header` and `struct
//! sparse_header`). Google refuses pax headers.
//!
//! Blocks have 512 bytes. The header lists four runs of data, each following block 21 more, followed by the data
//! without the holes, and zeros up to a whole record.

use std::ops::Range;
use std::sync::Arc;

use tar::{EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};
use vmbake_disk::disk::Disk;
use vmbake_disk::source::{Extent, Map};

/// Maximum size of a disk: 64 TiB, as in Compute Engine.
pub(super) const MAX_LEN: u64 = 64 << 40;

/// The member name that Compute Engine requires.
const MEMBER: &[u8] = b"disk.raw";
/// Block size in bytes.
const BLOCK: u64 = 512;
/// Record size of GNU tar in bytes.
const RECORD: u64 = 20 * BLOCK;

/// The bytes of an archive of a disk with data in these runs.
pub(super) fn archive(disk: &Disk, runs: &[Range<u64>]) -> Disk {
    let header = header(disk.len(), runs);
    let header_len = header.len() as u64;
    let data_len: u64 = runs.iter().map(|run| run.end - run.start).sum();
    // Two blocks of zeros end an archive.
    let len = (header_len + data_len + 2 * BLOCK).next_multiple_of(RECORD);
    let (mut sources, mut map) = (disk.sources().clone(), Map::hole(len));
    let (header, image) = (sources.add(Arc::new(header)), sources.add(Arc::new(disk.clone())));
    map.push(Extent { at: 0, len: header_len, source: header, offset: 0 });
    let mut at = header_len;
    for run in runs {
        let len = run.end - run.start;
        map.push(Extent { at, len, source: image, offset: run.start });
        at += len;
    }
    Disk::new(map, sources)
}

/// The header of the member and its continuation blocks.
fn header(len: u64, runs: &[Range<u64>]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(runs.iter().map(|run| run.end - run.start).sum());
    // An empty run at the end states the length of the disk.
    let end = runs.last().is_none_or(|run| run.end < len).then_some(len..len);
    let mut left = runs.iter().cloned().chain(end).peekable();
    let mut more = Vec::new();
    if let Some(gnu) = header.as_gnu_mut() {
        gnu.name[..MEMBER.len()].copy_from_slice(MEMBER);
        gnu.set_real_size(len);
        gnu.sparse.iter_mut().zip(&mut left).for_each(|(entry, run)| fill(entry, &run));
        gnu.set_is_extended(left.peek().is_some());
    }
    header.set_cksum();
    while left.peek().is_some() {
        let mut block = GnuExtSparseHeader::new();
        block.sparse.iter_mut().zip(&mut left).for_each(|(entry, run)| fill(entry, &run));
        block.set_is_extended(left.peek().is_some());
        more.extend_from_slice(block.as_bytes());
    }
    [header.as_bytes(), &more[..]].concat()
}

fn fill(entry: &mut GnuSparseHeader, run: &Range<u64>) {
    entry.set_offset(run.start);
    entry.set_length(run.end - run.start);
}
