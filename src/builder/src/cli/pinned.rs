//! Options of commands that work on manifests.

use std::path::PathBuf;

use clap::Args;

use super::Failure;

#[derive(Debug, Args)]
pub(super) struct PinnedArgs {
    /// Kinds of image: the names of their top layers
    #[arg(required = true, value_name = "KIND")]
    kinds: Vec<String>,
    /// Operating system of the base image
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Architectures, as Debian names them
    #[arg(long, value_delimiter = ',', default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: Vec<String>,
    /// Manifest of the only image [default: <KIND>.<OS>.<ARCH>.json in the directory of the manifests]
    #[arg(long, value_name = "FILE", conflicts_with = "manifests")]
    manifest: Option<PathBuf>,
    /// Directory of the manifests
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
}

/// One manifest, and what it must be for.
pub(super) struct Pinned {
    pub(super) kind: String,
    pub(super) os: String,
    pub(super) arch: String,
    pub(super) manifest: PathBuf,
}

impl PinnedArgs {
    /// Whether there is more than one architecture.
    pub(super) fn has_arches(&self) -> bool {
        self.arch.iter().any(|arch| *arch != self.arch[0])
    }

    /// Each image once: by architecture, as given, then by kind, as given.
    pub(super) fn each(self) -> Result<Vec<Pinned>, Failure> {
        let mut all: Vec<Pinned> = Vec::new();
        for arch in &self.arch {
            for kind in &self.kinds {
                if !all.iter().any(|pinned| pinned.kind == *kind && pinned.arch == *arch) {
                    let manifest = self.manifests.join(format!("{kind}.{}.{arch}.json", self.os));
                    all.push(Pinned { kind: kind.clone(), os: self.os.clone(), arch: arch.clone(), manifest });
                }
            }
        }
        match (self.manifest, &mut all[..]) {
            (None, _) => {}
            (Some(manifest), [only]) => only.manifest = manifest,
            (Some(_), _) => return Err("--manifest is of one image: choose --manifests for several".into()),
        }
        Ok(all)
    }
}
