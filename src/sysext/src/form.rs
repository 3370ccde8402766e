//! Formats of extensions.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// Format of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExtensionFormat {
    /// NAME.raw, an ext4 file system
    Ext4,
    /// NAME.raw, a SquashFS, which is smaller
    Squashfs,
    /// NAME, a directory
    Dir,
}

/// Output options of an extension.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionForm {
    pub format: ExtensionFormat,
    /// Whether to write a dm-verity hash tree.
    pub verity: bool,
    /// Whether to replace an existing extension.
    pub force: bool,
}

/// The hash tree and root hash files of an image, by which systemd verifies it.
pub(super) fn sidecars(image: &Path) -> [PathBuf; 2] {
    ["verity", "roothash"].map(|end| image.with_extension(end))
}
