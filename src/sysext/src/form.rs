//! In which form an extension is written.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A form that systemd merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExtensionFormat {
    /// NAME.raw, an ext4 file system
    Ext4,
    /// NAME.raw, a SquashFS, which is smaller
    Squashfs,
    /// NAME, a directory
    Dir,
}

/// How an extension is written.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionForm {
    /// In which form.
    pub format: ExtensionFormat,
    /// Whether a hash tree is written beside it, by which Linux verifies what it reads.
    pub verity: bool,
    /// Whether what is there may be replaced.
    pub force: bool,
}

/// The files beside an image by which systemd verifies it: the hash tree, and its root.
pub(super) fn sidecars(image: &Path) -> [PathBuf; 2] {
    ["verity", "roothash"].map(|end| image.with_extension(end))
}
