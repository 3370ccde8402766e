//! `vmbake fetch`: everything that manifests pin, brought into the store.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::network::NetworkArgs;
use super::{Failure, Outcome};
use crate::fetch::{Supply, fetch, fetch_base};
use crate::manifest::Manifest;
use crate::policy::LOCAL;
use crate::progress::{Progress, human_bytes};

#[derive(Debug, Args)]
pub(super) struct FetchArgs {
    /// Kind of image
    kind: String,
    /// Operating system
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Architecture, as Debian names it
    #[arg(long, default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: String,
    /// Manifest [default: manifests/<KIND>.<OS>.<ARCH>.json]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Leave out the base image
    #[arg(long)]
    without_base: bool,
    /// Downloads at the same time
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(super) fn run(args: FetchArgs) -> Result<Outcome, Failure> {
    let default = || PathBuf::from(format!("manifests/{}.{}.{}.json", args.kind, args.os, args.arch));
    let path = args.manifest.unwrap_or_else(default);
    let manifest = Manifest::load(&path)?;
    manifest.expect(&path, &args.kind, &args.os, &args.arch)?;
    let sources = args.network.sources()?;
    let (store, client) = (args.network.store()?, args.network.client(&sources)?);
    let _shared = store.share()?;
    let progress = Progress::new(false);
    let supply = Supply { store: &store, sources: &sources, client: Some(&client), threads: args.jobs };
    fetch(&manifest, &supply, &progress)?;
    let image = manifest.content().os.image.as_ref();
    if let Some(image) = image.filter(|image| !args.without_base && !image.url.starts_with(LOCAL)) {
        let base = fetch_base(&manifest, &supply, &progress)?;
        progress.step("fetched", &format!("{}, {}", base.path.display(), human_bytes(image.size)));
    }
    for image in &manifest.content().images {
        let pulled = crate::registry::pull_pinned(&client, &store, image)?;
        progress.step("fetched", &format!("{}, {}", image.image, human_bytes(pulled)));
    }
    Ok(Outcome::Clean)
}
