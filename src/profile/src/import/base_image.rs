//! The base image of an import with `--base`.

use vmbake_disk::tree::Tree;

use vmbake_common::digest::Digest;

/// A base image, opened.
#[derive(Clone, Debug)]
pub struct ImportBase {
    /// Its architecture, by the name that Debian has for it.
    pub arch: String,
    /// Digest of its file.
    pub digest: Digest,
    /// Its root file system.
    pub tree: Tree,
}
