//! `vmbake fetch`: downloads pinned artifacts into the store.

use std::num::NonZeroUsize;

use clap::Args;

use super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::network::NetworkArgs;
use super::pinned::{Pinned, PinnedArgs};
use super::{Failure, Outcome, target};
use vmbake_common::progress::{Event, Progress};
use vmbake_fetch::{FetchError, Supply, fetch, fetch_base, local};
use vmbake_manifest::{Manifest, OS_IMAGE, Target};
use vmbake_pin::prove::LOCAL;
use vmbake_pin::root_base;

const EXAMPLES: &str = "\
Examples:
  vmbake fetch node                               # all inputs of `vmbake bake node --offline`
  vmbake fetch knc knd --arch amd64,arm64 --store /srv/store
  vmbake fetch node --mirror https://github.com=https://mirror.example/github";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    pinned: PinnedArgs,
    /// Do not download the base image
    #[arg(long)]
    without_base: bool,
    /// Number of concurrent downloads
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn run(args: FetchArgs) -> Result<Outcome, Failure> {
    let sources = args.network.sources(&args.catalog)?;
    // A bake refuses conflicting layers; so does this, even if a manifest is missing.
    let layers = args.layers.load(&args.catalog)?;
    let pinned = args.pinned.each(&sources, &args.layers.catalog(&args.catalog))?;
    let (store, client) = (args.network.store()?, args.network.client(&sources)?);
    let anchors = args.trust.load(&args.catalog)?;
    let _shared = store.share_if_writable()?;
    let progress = Progress::new(false);
    let supply =
        Supply { store: &store, sources: &sources, anchors: &anchors, client: Some(&client), threads: args.jobs };
    for Pinned { target, manifest: path } in pinned {
        let files = target::local_files(&layers, std::slice::from_ref(&target))?;
        local::keep(files, &store).map_err(FetchError::from)?;
        let Target { kind, os, arch } = target;
        let manifest = Manifest::load(&path)?;
        manifest.require(&path, &kind, &os, &arch)?;
        let fetched = fetch(&manifest, &supply, &progress)?;
        progress.emit(fetched.proofs.event());
        let image = manifest.content().os.image.as_ref();
        if !args.without_base && manifest.content().base_container().is_some() {
            root_base::read(&store, Some(&client), manifest.content()).map_err(FetchError::from)?;
            continue;
        }
        if let Some(image) = image.filter(|image| !args.without_base && !image.url.starts_with(LOCAL)) {
            let base = fetch_base(&manifest, &supply, &progress)?;
            if base.is_new {
                let (name, path) = (OS_IMAGE.to_owned(), Some(base.path));
                progress.emit(Event::Fetched { name, version: Some(image.version.clone()), path, bytes: image.size });
            }
        }
    }
    Ok(Outcome::Clean)
}
