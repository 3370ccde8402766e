//! `vmbake manifest`: the entries of a manifest and their proofs.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::catalog::{CatalogArgs, TrustArgs};
use super::network::NetworkArgs;
use super::{Failure, Outcome, files};
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;
use vmbake_manifest::OS_IMAGE;
use vmbake_manifest::{Manifest, Proof};
use vmbake_pin::prove::{ProveError, Prover, VerifiedProof};

#[derive(Debug, Args)]
pub(super) struct ManifestArgs {
    #[command(subcommand)]
    command: ManifestCommand,
}

const EXAMPLES: &str = "\
Examples:
  vmbake manifest show manifests/node.debian-13.amd64.json
  vmbake manifest show manifests/node.debian-13.amd64.json --json";

#[derive(Debug, Subcommand)]
enum ManifestCommand {
    /// Verify a manifest's entries from the evidence in the store, and list them; exit 1 on a failure
    #[command(after_help = EXAMPLES)]
    Show {
        /// Manifest file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        network: NetworkArgs,
        #[command(flatten)]
        trust: TrustArgs,
        #[command(flatten)]
        catalog: CatalogArgs,
    },
}

#[derive(Serialize)]
struct Line<'a> {
    name: String,
    version: String,
    size: u64,
    digest: String,
    url: String,
    /// The requesting layer, and the dependency chain from its request to this package.
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    recorded: Option<Proof>,
    /// Proof of the digest.
    standing: Option<VerifiedProof>,
    /// Why the proof failed.
    unproven: Option<String>,
    /// Overridden sources and trust anchors, which can weaken proofs.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    overridden: &'a [String],
}

pub(super) fn run(args: ManifestArgs) -> Result<Outcome, Failure> {
    let ManifestCommand::Show { file, json, network, trust, catalog } = args.command;
    show(&file, json, (&network, &trust, &catalog))
}

/// Verifies and lists the entries of one manifest.
pub(super) fn show(
    file: &Path,
    json: bool,
    (network, trust, catalog): (&NetworkArgs, &TrustArgs, &CatalogArgs),
) -> Result<Outcome, Failure> {
    let manifest = Manifest::load(file)?;
    let (store, sources, anchors) = (network.store()?, network.sources(catalog)?, trust.load(catalog)?);
    let overridden: Vec<String> =
        sources.overridden().iter().chain(anchors.overridden()).map(ToString::to_string).collect();
    let mut lines = lines(&manifest, &overridden);
    let mut failed: Option<ProveError> = None;
    let prover = Prover::new(&store, &sources, &anchors, None).looking_at_files();
    // Both are in the order of the manifest.
    for (line, (_, result)) in lines.iter_mut().zip(prover.each(manifest.content())) {
        match result {
            Ok(standing) => line.standing = Some(standing),
            Err(error) => {
                line.unproven = Some(escape::chain(&error.source));
                failed.get_or_insert(error);
            }
        }
    }
    match json {
        true => files::print_json(&lines)?,
        false => {
            let overridden = overridden.iter().map(|one| format!("override {}\n", escape::line(one)));
            files::show(&overridden.chain(lines.iter().map(shown)).collect::<String>())?
        }
    };
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(Outcome::Clean),
    }
}

fn lines<'a>(manifest: &Manifest, overridden: &'a [String]) -> Vec<Line<'a>> {
    let content = manifest.content();
    let base = content.os.image.iter().map(|image| (OS_IMAGE, image));
    let dependencies = content.dependencies.iter().map(|(name, dependency)| (name.as_str(), dependency));
    let layer = |name: &str| content.download(name).map(|(layer, _)| layer.to_owned());
    let artifacts = base.chain(dependencies).map(|(name, entry)| Line {
        name: name.to_owned(),
        version: entry.version.clone(),
        size: entry.size,
        digest: entry.digest.to_string(),
        url: entry.url.clone(),
        layer: entry.chosen.as_ref().map(|chosen| chosen.layer.clone()).or_else(|| layer(name)),
        reason: entry.chosen.as_ref().map(|chosen| chosen.reason.clone()),
        recorded: entry.proof.clone(),
        standing: None,
        unproven: None,
        overridden,
    });
    let images = content.images.iter().map(|image| Line {
        name: image.image.clone(),
        version: image.platform.clone(),
        size: image.size,
        digest: image.digest.to_string(),
        url: format!("index {}", image.index),
        layer: None,
        reason: None,
        recorded: image.proof.clone(),
        standing: None,
        unproven: None,
        overridden,
    });
    artifacts.chain(images).collect()
}

fn shown(line: &Line<'_>) -> String {
    let [name, version, url] = [&line.name, &line.version, &line.url].map(escape::line);
    let digest = &line.digest;
    let size = human_bytes(line.size);
    let proven = escape::line(match (&line.standing, &line.unproven) {
        (Some(standing), _) if standing.is_signed() => format!("proven {standing}"),
        (Some(standing), _) => standing.to_string(),
        (None, reason) => format!("NOT PROVEN: {}", reason.as_deref().unwrap_or("not checked")),
    });
    // A recorded proof counts only after verification.
    let detail = line.recorded.as_ref().filter(|_| line.standing.as_ref().is_some_and(VerifiedProof::is_signed));
    let detail = detail.map(|proof| format!("\n    proof  {}", escape::line(proof.to_string()))).unwrap_or_default();
    let reason = line.layer.as_ref().zip(line.reason.as_ref());
    let reason = reason.map(|(layer, reason)| escape::line(format!("layer {layer}: {reason}")));
    // Lists of packages are long: the text output shows details only for failures; JSON has them all.
    if let Some(reason) = reason.as_ref().filter(|_| line.standing.is_some()) {
        return format!("{name} {version}, {size}\n    {reason}\n    {proven}\n");
    }
    let reason = reason.map(|reason| format!("\n    {reason}")).unwrap_or_default();
    let layer = line.layer.as_ref().filter(|_| line.reason.is_none());
    let layer = layer.map(|layer| format!("\n    layer  {}", escape::line(layer))).unwrap_or_default();
    format!("{name} {version}, {size}{reason}{layer}\n    from   {url}\n    digest {digest}\n    {proven}{detail}\n")
}
