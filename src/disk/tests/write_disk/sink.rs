//! Disks written to a sink other than a file: blocks by number, kept in memory as in a cloud's snapshot.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use vmbake_disk::disk::Disk;
use vmbake_disk::source::{Map, Sources};
use vmbake_disk::write::{BLOCK_LEN, Block, Chunk, Needs, Sink, WriteError, write_to};

use super::{Failing, disk_of, sparse_disk};
use crate::image_tools::{mixed, noise};

const BLOCK: u64 = BLOCK_LEN as u64;
const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

#[derive(Debug, thiserror::Error)]
enum StoreError {
    #[error("block {number} is refused")]
    Refused { number: u64 },
    #[error(transparent)]
    Disk(#[from] WriteError),
}

/// Blocks with the SHA-256 that they came with.
type Kept = BTreeMap<u64, (Vec<u8>, [u8; 32])>;

/// Keeps blocks, up to the first that it refuses.
struct Store<'a> {
    kept: &'a mut Kept,
    refused: u64,
}

impl Sink for Store<'_> {
    /// How many blocks there are.
    type Written = usize;
    type Error = StoreError;

    fn needs(&self) -> Needs {
        Needs::blocks(Some(Box::new(|block| Sha256::digest(block.bytes).into())))
    }

    fn append(&mut self, chunk: &Chunk) -> Result<(), StoreError> {
        for Block { number, bytes, hash, .. } in chunk.blocks() {
            if number >= self.refused {
                return Err(StoreError::Refused { number });
            }
            assert!(self.kept.keys().all(|before| *before < number), "block {number} comes late");
            self.kept.insert(number, (bytes.to_vec(), hash.unwrap()));
        }
        Ok(())
    }

    fn finish(self) -> Result<usize, StoreError> {
        Ok(self.kept.len())
    }
}

/// Sends `disk` to a store, and checks what it has then by the raw file of the same disk.
pub fn assert_stored(disk: &Disk, raw: &Path, threads: NonZeroUsize) {
    let (mut kept, done) = (Kept::new(), AtomicU64::new(0));
    let progress = |bytes| {
        done.fetch_add(bytes, Ordering::Relaxed);
    };
    let written = write_to(disk, Store { kept: &mut kept, refused: u64::MAX }, threads, &progress).unwrap();
    assert_eq!(written, kept.len());
    assert_eq!(done.into_inner(), disk.len(), "progress");
    let raw = std::fs::read(raw).unwrap();
    for (number, bytes) in (0..).zip(raw.chunks(BLOCK_LEN)) {
        match kept.remove(&number) {
            Some((found, hash)) => {
                assert!(found == bytes, "block {number}");
                assert_eq!(hash, <[u8; 32]>::from(Sha256::digest(bytes)), "block {number}");
                assert!(bytes.iter().any(|byte| *byte != 0), "block {number} of zeros is sent");
            }
            None => assert!(bytes.iter().all(|byte| *byte == 0), "block {number} is left out"),
        }
    }
    assert_eq!(kept, Kept::new(), "blocks behind the end");
}

#[test]
fn blocks_of_a_sparse_disk_have_their_numbers() {
    let starts = [0, 3 * BLOCK - 30_000, 600 << 20, (8 << 30) - 1000];
    let mut kept = Kept::new();
    let disk = sparse_disk(8 << 30, &starts);
    let written = write_to(&disk, Store { kept: &mut kept, refused: u64::MAX }, TWO, &|_| {}).unwrap();
    assert_eq!(written, 5);
    assert_eq!(kept.keys().copied().collect::<Vec<_>>(), [0, 2, 3, (600 << 20) / BLOCK, (8 << 30) / BLOCK - 1]);
}

#[test]
fn no_block_follows_one_that_is_refused() {
    let mut kept = Kept::new();
    let store = Store { kept: &mut kept, refused: 5 };
    let error = write_to(&disk_of(noise(1, 16 << 20)), store, TWO, &|_| {}).unwrap_err();
    assert!(matches!(error, StoreError::Refused { number: 5 }), "{error}");
    assert_eq!(kept.into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_disk_that_cannot_be_read_ends_a_sink_too() {
    let mut kept = Kept::new();
    let disk = disk_of(Failing { from: (4 << 20) + 5 });
    let error = write_to(&disk, Store { kept: &mut kept, refused: u64::MAX }, TWO, &|_| {}).unwrap_err();
    let StoreError::Disk(WriteError::Read { offset: 0x40_0000, source }) = &error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::Other);
    assert_eq!(kept.len(), 8, "all before it");
}

#[test]
fn a_run_behind_the_end_of_its_source_reaches_no_sink() {
    let mut sources = Sources::default();
    let short = sources.add(Arc::new(mixed(100)));
    let disk = Disk::new(Map::whole(short, 50, 512), sources);
    let mut kept = Kept::new();
    let error = write_to(&disk, Store { kept: &mut kept, refused: u64::MAX }, TWO, &|_| {}).unwrap_err();
    assert!(matches!(error, StoreError::Disk(WriteError::ShortSource { needed: 512, len: 100, .. })), "{error}");
    assert_eq!(kept, Kept::new());
}
