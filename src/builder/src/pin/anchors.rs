//! Trust anchors: the keys and authorities in `trust/`, built in or in a directory of the user's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::digest::Digest;
use crate::embedded::TRUST;
use crate::pin::proof::sigstore::ROOT;
use crate::pin::sources::Sources;

/// Largest anchor that is read; the known ones have less than 100 KB.
const MAX_LEN: u64 = 4 << 20;

/// Why a trust anchor cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum AnchorError {
    #[error("{path}: cannot read the trust anchor")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {len} bytes, more than the {MAX_LEN} a trust anchor may have")]
    TooLarge { path: PathBuf, len: u64 },
    #[error("no trust anchor {name} is built in")]
    Missing { name: String },
}

/// Where trust anchors are.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    folder: Option<PathBuf>,
}

impl Anchors {
    /// The anchors in `folder`, or those that are built in.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder }
    }

    /// SHA-256 of each anchor that proofs by `sources` may rest on and that is there, by its file name.
    pub fn digests(&self, sources: &Sources) -> BTreeMap<String, Digest> {
        let keyrings = sources.schema().archives.values().map(|archive| archive.keyring.as_str());
        let names: BTreeSet<&str> = keyrings.chain([ROOT]).collect();
        let digest = |name: &str| Some((name.to_owned(), Digest::of(&self.read(name).ok()?)));
        names.into_iter().filter_map(digest).collect()
    }

    /// The content of the anchor of that file name.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, AnchorError> {
        let Some(folder) = &self.folder else {
            let found = TRUST.iter().find(|(path, _)| *path == name);
            return match found {
                Some((_, content)) => Ok(content.to_vec()),
                None => Err(AnchorError::Missing { name: name.to_owned() }),
            };
        };
        let path = folder.join(name);
        let read = |source| AnchorError::Read { path: path.clone(), source };
        let len = std::fs::metadata(&path).map_err(read)?.len();
        if len > MAX_LEN {
            return Err(AnchorError::TooLarge { path, len });
        }
        std::fs::read(&path).map_err(read)
    }
}
