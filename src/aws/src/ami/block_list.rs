//! Lists of published blocks, so that the next release uploads only the differences.
//!
//! A file in the store for each disk, named by its digest. The digest covers all contents, so a file is trusted if it
//! matches its name.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding};
use serde::{Deserialize, Serialize};

use vmbake_common::atomic_file::{PublishError, write_file};
use vmbake_common::digest::Digest;
use vmbake_common::ownership;
use vmbake_publish::ebs::blocks::{BlockDigest, Blocks};
use vmbake_publish::ebs::snapshot::SentBlock;

use super::journal::FOLDER;

/// Maximum length of a list: four million blocks, which are 2 TiB.
const MAX_LIST: u64 = 320 << 20;

/// The file format.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockListFile {
    /// Disk size in GiB.
    volume_size: u64,
    /// The boot mode.
    boot_mode: String,
    /// The key that encrypts the snapshot.
    kms_key: Option<String>,
    /// The blocks that are not all zeros.
    blocks: Vec<SentBlock>,
}

/// A published disk.
pub(super) struct BlockList {
    pub(super) blocks: Blocks,
    /// The requested key.
    pub(super) kms_key: Option<String>,
}

/// Saves the block list of a disk.
pub(super) fn save(
    store: &Path,
    digest: &Digest,
    blocks: &Blocks,
    boot_mode: &str,
    kms_key: Option<&str>,
) -> Result<(), PublishError> {
    let path = path(store, digest);
    let file = BlockListFile {
        volume_size: blocks.gib(),
        boot_mode: boot_mode.to_owned(),
        kms_key: kms_key.map(str::to_owned),
        blocks: blocks.iter().map(SentBlock::from).collect(),
    };
    let text = serde_json::to_vec(&file);
    let text = text.map_err(|error| PublishError::Write { path: path.clone(), source: error.into() })?;
    write_file(&path, &text, true)
}

/// The saved block list of a disk, if its file is intact.
pub(super) fn load(store: &Path, digest: &Digest) -> Option<BlockList> {
    let file = ownership::open(&path(store, digest)).ok()?;
    let file: BlockListFile = serde_json::from_reader(BufReader::new(file.take(MAX_LIST))).ok()?;
    let checksum = |block: &SentBlock| -> Option<(u64, BlockDigest)> {
        let mut bytes = BlockDigest::default();
        let len = Base64::decode(&block.checksum, &mut bytes).ok()?.len();
        (len == bytes.len()).then_some((block.index, bytes))
    };
    let list: Vec<_> = file.blocks.iter().map(checksum).collect::<Option<_>>()?;
    let blocks = Blocks::of_list(file.volume_size, list)?;
    let is_that = blocks.disk_digest(&file.boot_mode, file.kms_key.as_deref()) == *digest;
    is_that.then_some(BlockList { blocks, kms_key: file.kms_key })
}

fn path(store: &Path, digest: &Digest) -> PathBuf {
    store.join(FOLDER).join(format!("{}.json", digest.hex()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_digest_is_of_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let zeros = vmbake_publish::ebs::blocks::zeros();
        let list = [(0, [1; 32]), (1, zeros), (2, zeros), (2047, [2; 32])];
        let blocks = Blocks::of_list(1, list).unwrap();
        let digest = blocks.disk_digest("uefi", Some("alias/a"));
        save(dir.path(), &digest, &blocks, "uefi", Some("alias/a")).unwrap();
        let found = load(dir.path(), &digest).unwrap();
        assert_eq!(
            (found.blocks.iter().collect::<Vec<_>>(), found.kms_key.as_deref()),
            (list.to_vec(), Some("alias/a"))
        );
        assert!(load(dir.path(), &Digest::of(b"other")).is_none());
        let file = path(dir.path(), &digest);
        let text = std::fs::read_to_string(&file).unwrap();
        let changes = [
            (r#""volume_size":1"#, r#""volume_size":2"#),
            (r#""uefi""#, r#""uefi-preferred""#),
            (r#""alias/a""#, "null"),
            (r#""index":0"#, r#""index":3"#),
            (r#""index":2047"#, r#""index":2046"#),
            (r#""index":2047"#, r#""index":2048"#),
            ("AQEB", "AQEC"),
            ("AQEB", "AQE"),
            ("{", "["),
        ];
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            std::fs::write(&file, text.replacen(old, new, 1)).unwrap();
            assert!(load(dir.path(), &digest).is_none(), "{old} {new}");
        }
    }

    #[test]
    fn lists_are_in_order_and_end_with_the_disk() {
        for wrong in [&[(2048, [1; 32])][..], &[(3, [1; 32]), (3, [1; 32])], &[(4, [1; 32]), (3, [1; 32])]] {
            assert!(Blocks::of_list(1, wrong.iter().copied()).is_none(), "{wrong:?}");
        }
        assert!(Blocks::of_list(0, []).is_none());
        assert!(Blocks::of_list(65_537, []).is_none());
    }
}
