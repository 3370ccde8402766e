//! Bundles of an image, from `--with` and from the layers of its kind; `vmbake bundle plan` shows their effects.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::super::network::NetworkArgs;
use super::super::pinned::{Pinned, PinnedArgs};
use super::super::{Failure, Outcome, catalog, files};
use super::inspect::locate;
use vmbake_bundle::BundleError;
use vmbake_bundle::compose::{ComposeRequest, Composition};
use vmbake_bundle::inspect::BundleSummary;
use vmbake_bundle::lock::{BundleLock, LockRules};
use vmbake_bundle::publisher::FOLDER;
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_layer::Layers;
use vmbake_manifest::Target;
use vmbake_pin::anchors::Anchors;
use vmbake_proof::sigstore::{self, SigstoreRoot};

#[derive(Clone, Debug, Args)]
pub(in super::super) struct WithArgs {
    /// Add a bundle to the image: packed bundle, or HOST/NAME:TAG in a registry; may be repeated
    #[arg(long = "with", value_name = "BUNDLE")]
    with: Vec<PathBuf>,
    /// Directory of trusted publishers of bundles
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    publishers: PathBuf,
    /// Allow a version of a bundle that differs from bundles.lock.json
    #[arg(long)]
    upgrade_bundles: bool,
    /// Allow downgrading a bundle
    #[arg(long, requires = "upgrade_bundles")]
    allow_downgrade: bool,
}

const EXAMPLES: &str = "\
Examples:
  vmbake bundle plan node --with agent.oci
  vmbake bundle plan node --with ghcr.io/acme/agent:1.0 --json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct PlanArgs {
    #[command(flatten)]
    pinned: PinnedArgs,
    #[command(flatten)]
    with: WithArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    layers: catalog::LayersArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: catalog::TrustArgs,
    #[command(flatten)]
    catalog: catalog::CatalogArgs,
}

/// Context for loading bundles.
pub(in super::super) struct Reader<'a> {
    pub(in super::super) network: &'a NetworkArgs,
    pub(in super::super) layers: &'a Catalog,
    pub(in super::super) anchors: &'a Anchors,
    pub(in super::super) is_offline: bool,
}

impl WithArgs {
    /// The bundles of an image, if any. They are trusted, and compatible with the lock file and the image `before`; whether they are compatible
    /// with the image is not checked here.
    pub(in super::super) fn compose(
        &self,
        target: &Target,
        manifest: &Path,
        before: Option<&Composition>,
        reader: &Reader<'_>,
    ) -> Result<Option<Composition>, Failure> {
        let layers = Layers::load(reader.layers)?.resolve(&target.kind, &target.os)?;
        let named = layers.iter().flat_map(|layer| &layer.schema.bundles).map(PathBuf::from);
        let all: Vec<PathBuf> = named.chain(self.with.iter().cloned()).collect();
        if all.is_empty() {
            return Ok(None);
        }
        let manifests = manifest.parent().unwrap_or(Path::new("."));
        let lock = before.map_or_else(|| BundleLock::load(manifests), |before| Ok(before.lock().clone()))?;
        let open = |bundle: &PathBuf| {
            locate(bundle, |name| {
                if reader.is_offline {
                    return Err(BundleError::Remote { name: name.to_string() }.into());
                }
                let name = lock.locate(name, manifests)?;
                Ok((reader.network.repository(&name.repository, false)?, name))
            })
        };
        let places = all.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let rules = LockRules { upgrade: self.upgrade_bundles, downgrade: self.allow_downgrade };
        let request = ComposeRequest {
            publishers: &self.publishers,
            manifests,
            lock,
            rules: &|_| rules,
            layers: reader.layers,
            root: &SigstoreRoot::parse(&reader.anchors.read(sigstore::ROOT)?)?,
            now: Timestamp::now(),
        };
        Ok(Some(Composition::read(places, request)?))
    }
}

pub(super) fn plan(args: PlanArgs) -> Result<Outcome, Failure> {
    let sources = args.network.sources(&args.catalog)?;
    let (layers, anchors) = (args.layers.catalog(&args.catalog), args.trust.load(&args.catalog)?);
    let reader = Reader { network: &args.network, layers: &layers, anchors: &anchors, is_offline: false };
    let (mut images, mut text, mut outcome) = (Vec::new(), String::new(), Outcome::Clean);
    for Pinned { target, manifest } in args.pinned.each(&sources, &layers)? {
        let mut line = |what: &str, said: String| text.push_str(&format!("{what:<10}{}\n", escape::line(said)));
        line("image", target.name());
        let Some(composition) = args.with.compose(&target, &manifest, None, &reader)? else { continue };
        let conflicts = composition.conflicts(&target, &layers)?;
        let all = Layers::load(&composition.layers(&layers))?;
        let order = all.order_with(&target.kind, &target.os, &composition.additions(&target)?.layers)?;
        let order: Vec<String> = order.into_iter().map(|layer| layer.schema.name).collect();
        line("layers", order.join(", "));
        conflicts.iter().for_each(|conflict| line("conflict", conflict.clone()));
        let mut summaries = Vec::new();
        for bundle in composition.bundles() {
            summaries.push(BundleSummary::of_packed(bundle, bundle.place.signatures(&bundle.digest)?.len()));
        }
        summaries.iter().for_each(|summary| text.push_str(&summary.to_text()));
        if !conflicts.is_empty() {
            outcome = Outcome::Findings;
        }
        images.push(json!({"name": target.name(), "layers": order, "conflicts": conflicts, "bundles": summaries}));
    }
    match args.json {
        true => files::print_json(&images)?,
        false => files::show(&text)?,
    };
    Ok(outcome)
}
