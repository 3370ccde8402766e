//! The files of an image with their digests: a tree in, a list out. All files are read, by several threads.

use std::io::Read;
use std::num::NonZeroUsize;

use sha1::{Digest as _, Sha1};
use vmbake_disk::source::{Map, MapReader};
use vmbake_disk::tree::{Kind, Tree, TreeError};

use vmbake_common::digest::{Digest, Hasher};
use vmbake_common::escape;
use vmbake_common::parallel::for_each;

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HashedFile {
    /// Escaped by [`escape::path`].
    pub(super) path: String,
    /// Required by SPDX.
    pub(super) sha1: String,
    pub(super) sha256: Digest,
}

/// The regular files of a tree, in the order of its walk.
pub(super) fn hashed(tree: &Tree, threads: NonZeroUsize) -> Result<Vec<HashedFile>, TreeError> {
    let files = tree.walk().filter_map(|(path, _, inode)| match &inode.kind {
        Kind::File(map) => Some((escape::path(&path), map)),
        _ => None,
    });
    for_each(files.collect(), threads, |(path, map)| hash(tree, path, map)).into_iter().collect()
}

fn hash(tree: &Tree, path: String, map: &Map) -> Result<HashedFile, TreeError> {
    let (mut sha1, mut sha256) = (Sha1::new(), Hasher::sha256());
    let mut reader = MapReader::new(map, tree.sources());
    let mut buffer = vec![0; 256 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(HashedFile { path, sha1: hex(&sha1.finalize()), sha256: sha256.finish() }),
            Ok(len) => {
                let bytes = buffer.get(..len).unwrap_or_default();
                sha1.update(bytes);
                sha256.update(bytes);
            }
            Err(source) => return Err(TreeError::Read { path, source }),
        }
    }
}

/// The verification code of SPDX (clause 7.9): SHA-1 of the SHA-1 digests of all files, sorted.
pub(super) fn verification_code(files: &[HashedFile]) -> String {
    let mut digests: Vec<&str> = files.iter().map(|file| file.sha1.as_str()).collect();
    digests.sort_unstable();
    hex(&Sha1::digest(digests.concat()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
