//! Hash trees of dm-verity, byte by byte as veritysetup writes them.

use std::num::NonZeroUsize;
use std::path::Path;

use crate::image_tools::{arg, mixed};
use crate::tools::{have, run};
use vmbake_disk::source::FileSource;
use vmbake_disk::write::{DmVerity, HashTree};

const UUID: &str = "00112233-4455-6677-8899-aabbccddeeff";
const BLOCK: usize = 4096;

fn identity() -> DmVerity {
    // As the digits of UUID.
    let mut uuid = [0; 16];
    uuid.iter_mut().zip(0_u8..).for_each(|(byte, at)| *byte = at * 0x11);
    DmVerity { salt: [0xa5; 32], uuid }
}

fn tree(path: &Path, threads: usize) -> HashTree {
    let source = FileSource::new(std::fs::File::open(path).unwrap()).unwrap();
    HashTree::of(&source, &identity(), NonZeroUsize::new(threads).unwrap()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_tree_is_the_one_that_veritysetup_writes() {
    if !have("veritysetup") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [data, theirs, ours] = ["data", "theirs", "ours"].map(|name| dir.path().join(name));
    // One block, one level and its end, two levels, and three.
    for blocks in [1, 2, 127, 128, 129, 128 * 128, 128 * 128 + 1] {
        let bytes = mixed(blocks * BLOCK);
        std::fs::write(&data, bytes).unwrap();
        if theirs.exists() {
            std::fs::remove_file(&theirs).unwrap();
        }
        let (salt, uuid) = (format!("--salt={}", hex(&[0xa5; 32])), format!("--uuid={UUID}"));
        let said = run("veritysetup", &["format", &salt, &uuid, arg(&data), arg(&theirs)]);
        let tree = tree(&data, 2);
        assert!(said.contains(&hex(&tree.root)), "{blocks} blocks: {said}");
        assert!(tree.bytes == std::fs::read(&theirs).unwrap(), "{blocks} blocks");
        std::fs::write(&ours, &tree.bytes).unwrap();
        run("veritysetup", &["verify", arg(&data), arg(&ours), &hex(&tree.root)]);
    }
}

#[test]
fn holes_and_threads_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let [sparse, full] = ["sparse", "full"].map(|name| dir.path().join(name));
    let mut bytes = vec![0; 700 * BLOCK];
    bytes[300 * BLOCK..301 * BLOCK].fill(7);
    std::fs::write(&full, &bytes).unwrap();
    let file = std::fs::File::create(&sparse).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[300 * BLOCK..301 * BLOCK], 300 * BLOCK as u64).unwrap();
    let [one, two, three] = [tree(&sparse, 1), tree(&full, 1), tree(&sparse, 2)];
    assert!(one.root == two.root && one.bytes == two.bytes && one.root == three.root && one.bytes == three.bytes);
    assert_eq!(one.bytes.len(), BLOCK * (1 + 1 + 6));
}

#[test]
fn only_whole_blocks_have_a_tree() {
    for len in [0, 1, BLOCK - 1, BLOCK + 1] {
        let refused = HashTree::of(&vec![0; len], &identity(), NonZeroUsize::MIN);
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput, "{len}");
    }
}
