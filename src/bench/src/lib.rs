//! Common inputs of the component benchmarks: bytes and trees.

use std::error::Error;
use std::fs::File;
use std::sync::Arc;

use vmbake_disk::ext4::{Size, VolumeOptions};
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, ROOT, Timestamp, Tree};

/// Any error aborts a benchmark.
pub type Failed = Box<dyn Error>;

/// Length of the volume that [`tree`] fits into, in bytes.
pub const VOLUME: u64 = 1 << 30;

/// Bytes that compress like programs: those of this program, repeated.
pub fn program_bytes(len: usize) -> Result<Vec<u8>, Failed> {
    Ok(std::fs::read(std::env::current_exe()?)?.into_iter().cycle().take(len).collect())
}

/// A tree of `count` files of 4 to 36 KiB in directories of 100, about as a Debian root has them.
pub fn tree(count: usize) -> Result<Tree, Failed> {
    let meta = |mode| Metadata::root(mode, Timestamp { secs: 1_700_000_000, nanos: 0 });
    let mut tree = Tree::new(meta(0o755), Origin::default());
    let content = Arc::new(program_bytes(1 << 20)?);
    let source = tree.sources_mut().add(content);
    let origin = tree.inode(ROOT).origin;
    for number in 0..count {
        let directory = format!("usr/share/{}", number / 100);
        let directory = tree.make_dirs(directory.as_bytes(), &meta(0o755), origin)?;
        let len = 4096 + (number as u64 * 7919) % 32_768;
        let kind = Kind::File(Map::whole(source, len * 16, len));
        tree.insert(directory, format!("file-{number}").as_bytes(), Inode { meta: meta(0o644), kind, origin })?;
    }
    Ok(tree)
}

/// Options of a volume of [`VOLUME`] bytes.
pub fn options() -> VolumeOptions {
    VolumeOptions {
        size: Size::Exact(VOLUME),
        uuid: *b"vmbake-bench-vol",
        label: Vec::new(),
        hash_seed: [7; 16],
        epoch: 1_700_000_000,
    }
}

/// A file in memory, where a sync is free: disks are not measured.
pub fn file() -> Result<File, Failed> {
    Ok(tempfile::tempfile_in("/dev/shm")?)
}
