//! Options of commands that work on manifests.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;

use super::{Failure, target};
use vmbake_common::catalog::Catalog;
use vmbake_common::output_format::OutputFormat;
use vmbake_layer::Layers;
use vmbake_manifest::Target;
use vmbake_pin::sources::Sources;

#[derive(Debug, Args)]
pub(super) struct PinnedArgs {
    /// Kinds of images (names of their top layers)
    #[arg(required = true, value_name = "KIND")]
    kinds: Vec<String>,
    /// Operating system of the base image
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Architectures, as Debian names them
    #[arg(long, value_delimiter = ',', default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: Vec<String>,
    /// Manifest, if there is only one image [default: <KIND>.<OS>.<ARCH>.json in the manifest directory]
    #[arg(long, value_name = "FILE", conflicts_with = "manifests")]
    manifest: Option<PathBuf>,
    /// Manifest directory
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
}

/// A manifest and its expected target.
pub(super) struct Pinned {
    pub(super) target: Target,
    pub(super) manifest: PathBuf,
}

impl PinnedArgs {
    pub(super) fn of(kind: String, os: String, arch: String, manifest: Option<PathBuf>, manifests: PathBuf) -> Self {
        Self { kinds: vec![kind], os, arch: vec![arch], manifest, manifests }
    }

    pub(super) fn has_arches(&self) -> bool {
        self.arch.iter().any(|arch| *arch != self.arch[0])
    }

    /// Removes names of image files from the kinds.
    pub(super) fn take_images(&mut self) -> Vec<PathBuf> {
        let is_image = |kind: &mut String| OutputFormat::split_file_name(kind).is_some();
        self.kinds.extract_if(.., is_image).map(PathBuf::from).collect()
    }

    /// Each image once, by architecture, then by kind, in the given order. Fails if a manifest is missing.
    pub(super) fn each(self, sources: &Sources, layers: &Catalog) -> Result<Vec<Pinned>, Failure> {
        let mut all: Vec<Pinned> = Vec::new();
        for arch in &self.arch {
            for kind in &self.kinds {
                let target = Target { kind: kind.clone(), os: self.os.clone(), arch: arch.clone() };
                if !all.iter().any(|pinned| pinned.target == target) {
                    let manifest = self.manifests.join(format!("{}.json", target.name()));
                    all.push(Pinned { target, manifest });
                }
            }
        }
        match (self.manifest, &mut all[..]) {
            (None, _) => {}
            (Some(_), []) => {}
            (Some(manifest), [only]) => only.manifest = manifest,
            (Some(_), _) => return Err("--manifest works for one image only: use --manifests for several".into()),
        }
        for Pinned { target, manifest } in &all {
            if let Err(ErrorKind::NotFound | ErrorKind::NotADirectory) =
                manifest.metadata().map_err(|error| error.kind())
            {
                let layers = Layers::load(layers)?;
                layers.require(&target.kind)?;
                return Err(target::missing(manifest, target.clone(), sources, &layers).into());
            }
        }
        Ok(all)
    }
}
