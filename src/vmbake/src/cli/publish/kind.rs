//! Options of an image that is baked to be published, without a file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::super::bundle::with::WithArgs;
use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::NetworkArgs;
use super::super::pinned::PinnedArgs;
use super::super::target::ARCH;
use super::super::{BakeArgs, Failure, bake, parse_size};
use vmbake_bake::BakeRequest;
use vmbake_distribute::bundle::compose::Composition;

#[derive(Debug, Args)]
pub(super) struct KindArgs {
    /// Bake an image of this kind and publish it, without writing a file
    #[arg(long, value_name = "KIND", conflicts_with_all = ["image", "key", "policy", "certificate_identity"])]
    kind: Option<String>,
    /// Of --kind: operating system of the base image
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Of --kind: architecture, as Debian names it
    #[arg(long, default_value = ARCH, value_parser = ["amd64", "arm64"])]
    arch: String,
    /// Of --kind: its manifest [default: <KIND>.<OS>.<ARCH>.json in the directory of the manifests]
    #[arg(long, value_name = "FILE", conflicts_with = "manifests")]
    manifest: Option<PathBuf>,
    /// Of --kind: directory of the manifests
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    /// Of --kind: base disk image, qcow2 or raw [default: the one that the manifest pins, from the store]
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    /// Of --kind: size of the disk: bytes, or with K, M, G, T (binary) [default: the base's size]
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// Of --kind: download nothing for it; everything must be in the store
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    with: WithArgs,
    #[command(flatten)]
    layers: LayersArgs,
}

impl KindArgs {
    /// What to bake, and the bundles whose layers it takes.
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
        Ok((requests.pop().ok_or("no kind is named")?, compositions.pop().flatten()))
    }
}
