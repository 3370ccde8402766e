//! The content-addressed store of artifacts: `blobs/<algorithm>/<hex>`, as in an OCI image layout.

use std::path::{Path, PathBuf};

use crate::manifest::Digest;

/// A store in a directory.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The store at `root`, or the user's own: `$XDG_CACHE_HOME/vmbake/store`, by default below `~/.cache`.
    /// `None` when neither that variable nor `HOME` is set.
    pub fn open(root: Option<PathBuf>) -> Option<Self> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let default = || {
            let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
            Some(cache.join("vmbake/store"))
        };
        root.or_else(default).map(|root| Self { root })
    }

    /// Where the blob of that digest stands, or would stand.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.algorithm()).join(digest.hex())
    }

    /// The store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }
}
