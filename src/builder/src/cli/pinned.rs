//! Options of commands that work on one manifest.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(super) struct PinnedArgs {
    /// Kind of image: the name of its top layer
    pub(super) kind: String,
    /// Operating system of the base image
    #[arg(long, default_value = "debian-13")]
    pub(super) os: String,
    /// Architecture, as Debian names it
    #[arg(long, default_value = "amd64", value_parser = ["amd64", "arm64"])]
    pub(super) arch: String,
    /// Manifest [default: manifests/<KIND>.<OS>.<ARCH>.json]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

impl PinnedArgs {
    /// Where the manifest is.
    pub(super) fn path(&self) -> PathBuf {
        let default = || PathBuf::from(format!("manifests/{}.{}.{}.json", self.kind, self.os, self.arch));
        self.manifest.clone().unwrap_or_else(default)
    }
}
