//! Volumes: whatever is read as a whole is read as a part too, and all contents that a tree has are there.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use vmbake_disk::ext4::{Depth, Want, read, read_some};
use vmbake_disk::tree::{Kind, Origin};

fuzz_target!(|bytes: &[u8]| {
    let source = Arc::new(bytes.to_vec());
    let part = read_some(source.clone(), Origin::default(), &[Want { path: b"/", depth: Depth::Targets }]);
    let Ok((_, tree)) = read(source, Origin::default()) else { return };
    assert!(part.is_ok());
    for (_, _, inode) in tree.walk() {
        let Kind::File(map) = &inode.kind else { continue };
        if let Some(last) = map.extents().last() {
            map.read_exact_at(tree.sources(), &mut [0], last.end() - 1).unwrap();
        }
    }
});
