//! Options for baking an image and publishing it without writing a file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::super::bundle::selection::WithArgs;
use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::NetworkArgs;
use super::super::pinned::PinnedArgs;
use super::super::target::ARCH;
use super::super::{BakeArgs, Failure, READABLE, bake, parse_size};
use vmbake_bake::BakeRequest;
use vmbake_bundle::compose::Composition;

#[derive(Debug, Args)]
pub(super) struct KindArgs {
    /// Bake an image of this kind and publish it without writing a file
    #[arg(long, value_name = "KIND", conflicts_with_all = ["image", "key", "policy", "certificate_identity"])]
    kind: Option<String>,
    /// Operating system of the base image, with --kind
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Debian architecture, with --kind
    #[arg(long, default_value = ARCH, value_parser = ["amd64", "arm64"])]
    arch: String,
    /// Manifest, with --kind [default: <KIND>.<OS>.<ARCH>.json in the manifest directory]
    #[arg(long, value_name = "FILE", conflicts_with = "manifests")]
    manifest: Option<PathBuf>,
    /// Manifest directory, with --kind
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    #[arg(help = format!("Base disk image, {READABLE}, with --kind [default: the base image that the manifest pins]"))]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Disk size in bytes, or with suffix K, M, G, T (binary), with --kind [default: size of the base image, or 3G without one]
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// Do not download artifacts, with --kind: all must be in the store
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    with: WithArgs,
    #[command(flatten)]
    layers: LayersArgs,
}

impl KindArgs {
    /// The bake request and its bundles.
    pub(super) fn request(
        &self,
        network: &NetworkArgs,
        trust: &TrustArgs,
        catalog: &CatalogArgs,
        partition: Option<u32>,
        jobs: Option<NonZeroUsize>,
        is_bake: bool,
    ) -> Result<(BakeRequest, Option<Composition>), Failure> {
        let Self { kind, os, arch, manifest, manifests, base, size, offline, with, layers } = self;
        let kind = kind.clone().unwrap_or_default();
        let args = BakeArgs {
            pinned: PinnedArgs::of(kind, os.clone(), arch.clone(), manifest.clone(), manifests.clone()),
            base: base.clone(),
            partition,
            with: with.clone(),
            layers: layers.clone(),
            offline: *offline,
            no_cache: false,
            size: *size,
            format: Vec::new(),
            compression: None,
            out: PathBuf::new(),
            builder_id: None,
            force: false,
            json: false,
            jobs,
            network: network.clone(),
            trust: trust.clone(),
            catalog: catalog.clone(),
        };
        // One kind and one architecture are one image.
        let (mut requests, mut compositions) = bake::requests(args, is_bake)?;
        Ok((requests.pop().ok_or("no kind given")?, compositions.pop().flatten()))
    }
}
