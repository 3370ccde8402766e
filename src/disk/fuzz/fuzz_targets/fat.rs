//! FAT volumes: all contents that a tree has are there.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use vmbake_disk::fat::{probe, read};
use vmbake_disk::tree::{Kind, Origin};

fuzz_target!(|bytes: &[u8]| {
    let source = Arc::new(bytes.to_vec());
    let known = probe(&*source).is_ok();
    let Ok(tree) = read(source, Origin::default()) else { return };
    assert!(known);
    for (_, _, inode) in tree.walk() {
        let Kind::File(map) = &inode.kind else { continue };
        if let Some(last) = map.extents().last() {
            map.read_exact_at(tree.sources(), &mut [0], last.end() - 1).unwrap();
        }
    }
});
